"""Which of a person's words last: who wrote them, what they do, and how likely a later session needs them.

authors   who wrote each stretch of a user record: the person, a program, a plan, or somebody else who is quoted
free_answers   the question that a short answer answers
shapes    which lines nobody types by hand
own_sentences   the person's own sentences
acts, handwriting, features   numbers about a sentence, its message and what happened around it
judge     how likely the sentence lasts, and what kind of lesson it is
"""
