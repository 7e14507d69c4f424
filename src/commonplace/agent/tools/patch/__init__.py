"""`apply_patch`: changes of files, all or nothing.

parse    the text of a patch → its operations
match    where the lines of a hunk stand in a file
change   a file's text and hunks → its new text (pure)
files    reading and writing files: all of them, or none
tool     the tool: everything is computed before anything is written
"""
