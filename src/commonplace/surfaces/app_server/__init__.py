"""The app server: the protocol that editors and SDKs speak, over the library.

messages        one JSON-RPC message a line, without the member `jsonrpc`; error codes
params, shapes  what comes in and what goes out, as types
items           an item of a turn as clients see it
connection      one client: handshake, dispatch, order, queues, requests to the client
calls, methods  every method with its types and whether it is experimental; what works on each
server          what all clients share: the book, the threads that are open
open_thread     one open thread: its turns, its notifications, its questions
spawned_threads sub-agents: threads that open and close by themselves
stdio, sockets  the transports; `backlog` counts what waits, `addresses` says where, `proxy` joins the two
serving         the process of a server
"""
