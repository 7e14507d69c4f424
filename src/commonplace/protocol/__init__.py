"""Values only: the wire types of session files and of what a model sees. No I/O, no clock, no settings."""
