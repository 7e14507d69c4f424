"""Tools of other programs: the MCP servers that a person configured, offered to the model beside our own tools.

    values    what is configured, and what of our environment a server gets (pure)
    offered   a server's tools as we offer them: names made safe and unique, schemas kept small (pure)
    results   what a tool gave, for the model and for whoever watches (pure)
    pipes     a server as a process: bounded lines, its own group, ended with its children
    web       a server behind an address: a client that reads only so much, and only for so long
    messages  what may pass between a server and the SDK's session
    life      what is known of one life of a server
    link      one life of a server: connect, list, call, end
    pool      all servers of a session
    tool      one tool

A server is a stranger. Whatever it sends is bounded in size, number and time; it may ask us for nothing; what it does
to itself is a warning and the loss of its tools, never an error of the turn. `import mcp` takes a second, so
`messages`, `web` and `link` are imported only when the first server is started.
"""
