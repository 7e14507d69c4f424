"""The agent: a session, its turns, and the tools that a model calls in them.

Read it from the top down; every module imports only from modules further down.

    subagents/                          agents that an agent starts; their tree
    open_session                        open a session: a new thread, or an old one from its ledger
    turn, turn_end                      the loop, and the end of a turn
    compaction/                         when and how the history is shortened
    sampling                            one request to the model, and its answer
    tool_calls, approvals/consent       the tool calls of an answer, and the consent to each
    turn_context, prompt_sections       what the model is told besides the person's words
    session                             one open thread, composed of the owners below
    session_ledger                      the write path: history, then file, then listeners
    prompt_state, session_usage         what the model knows; tokens and limits
    turn_state, turn_snapshots          the running turn; the working tree before it
    approvals/, hooks/, sandbox/        consent, a person's own commands, confinement
    tools/, servers/, undo/             what the model can call; how its changes are undone
    events, profile, user_input,        values: what listeners are told, settings, input,
    ledger_lines, session_environment   lines of the ledger, and the program around a session
    agent_identity                      who the sub-agent is whose session this is
"""
