"""Hooks: a person's own commands that are told what a session does, and may add context to it or refuse it.

    config          the settings of hooks, and what the end of a command means (pure)
    runner          starting commands and reading their answers, in bounded time and memory
    session_hooks   the moments of a session at which hooks are asked

A hook that cannot be started, takes too long or answers with invalid JSON changes nothing; a warning says so. Only an
explicit refusal refuses anything.
"""
