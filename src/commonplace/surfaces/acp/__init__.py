"""The agent for editors that speak the Agent Client Protocol (Zed, JetBrains, Neovim), over the library.

agent      what an editor may ask: sessions, prompts, modes
session    one open session: a prompt from its words to its end, questions on the way
prompts    what an editor sends as input, and the servers that it brings along
updates    items and events of a session as updates for an editor (pure)
serving    the process: lines on stdin and stdout

The package `agent-client-protocol` speaks the protocol itself.
"""
