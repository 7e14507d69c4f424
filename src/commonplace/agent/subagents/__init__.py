"""Sub-agents: threads that an agent starts, talks to, waits for and closes.

    status         what an agent is doing, from its events and from its ledger
    limits         how deep, how many, how long to wait
    nicknames      a name for each agent, from a list
    roles          what a person says about kinds of agents, in `[agents.NAME]`
    arguments      what the tools take, and the input that a message or items make
    inheritance    the settings that a sub-agent gets from its parent, its role and the call
    fork_filter    which items of its parent a sub-agent begins with
    notices        what a parent is told when a sub-agent is done
    agent          one sub-agent of a tree
    delivery       input reaches an agent: into its running turn, else as a new one
    tree           the sub-agents of one session: start, input, wait, close, interrupt
    spawn_store    which agent started which, as the database keeps it
    restoration    the tree of a session that is gone on with
    tools          the tools that a model calls
    delegates      agents for this program's own use: one answers once, with the other one can talk

A sub-agent is a thread like any other, with its own ledger. What opens such a thread stands in `app`, which hands it in
as a `ThreadMaker`.
"""
