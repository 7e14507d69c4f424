"""MCP servers that a person configured: their tools are offered to the model beside our own.

    config             the settings of servers, and the variables and headers that each gets (pure)
    tool_list          a server's tools as the model is offered them: safe unique names, bounded schemas (pure)
    results            the result of a tool, for the model and for events (pure)
    stdio_transport    a server as a process: bounded lines, its own group, ended with its children
    http_transport     a server behind a URL: answers bounded in size and time
    messages           which messages pass between a server and the SDK's session
    connection_state   the state of one connection, for everybody who waits for it
    connection         one connection: connect, list the tools, call them, end
    pool               all servers of a session
    tool               one tool of a server

A server is not trusted. Whatever it sends is bounded in size, number and time, and its requests are refused. A server
that fails causes a warning and loses its tools; it never causes an error of the turn. `import mcp` takes a second, so
`messages`, `http_transport` and `connection` are imported only when the first server is started.
"""
