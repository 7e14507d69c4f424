"""Reading one session: its events, the sentences of the person, tasks, commands, errors and outcomes."""
