"""The memory as an MCP server: one protocol core, served over stdio and over HTTP on loopback.

`protocol` reads and writes messages, `session` answers those of one client, `stdio` and `http` carry them. The official
SDK is not used here: it takes longer to import than some clients wait; tests prove conformance with the SDK's client.
"""
