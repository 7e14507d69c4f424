"""Approvals: which actions may run, which are refused, and which a person must allow.

harmless_commands   commands that are known to change nothing, and prefixes that a person allowed (pure)
requests            the rules, and the questions of one session with their answers
consent             one action on its way: judged, asked about, confined
"""
