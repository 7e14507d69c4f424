"""Hooks: commands of the person's own that are told what a session does, and may add to it or refuse it.

    values   what is configured, what a command is told, what its answer means (pure)
    running  starting commands and reading their answers, in bounded time and memory
    points   where in a session they are asked

A hook that cannot be started, takes too long or answers nonsense changes nothing; a person is told. Only an answer that
says so refuses anything.
"""
