"""Compaction in a session: when it is due, how a shorter history is made, and how it takes the place of the old one.

schedule   when it is due, and what people, hooks and the ledger are told of it
apply      the shorter history, made and put in place
summary    a model as the writer of a summary
remote     a summary that the model's server makes
"""
