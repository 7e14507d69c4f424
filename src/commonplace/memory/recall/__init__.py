"""Reading memory: the section of a prompt, the memory tools, citations, and the counts of what was used."""
