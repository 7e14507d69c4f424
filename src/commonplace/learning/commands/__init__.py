"""Commands → one line per role: what a project's sessions ran, reduced to the few commands that are worth telling.

`runs.runs_of` reads one session and returns what is stored of it; `choose.choose` reads what is stored of all sessions
of one project and returns the lines. No model takes part, and nothing here reads or writes a file of the session.
"""
