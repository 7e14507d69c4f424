"""Other agents' configuration files: what we write into them, and how we take it out again."""
