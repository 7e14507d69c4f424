"""The tools that a model may call. `registry` says what a tool is and runs calls; each tool is a module or package.

    registry, arguments     what a tool is, how it is offered, how a call is read and answered
    shell, processes        commands, each in a process group of its own
    printed, surroundings   what commands print, and the variables that they inherit
    patch/                  changes to files: parse, match, change (pure), then files (all or nothing)
    plan, image, recall     small tools
    remembered, scripts     which memories a command line reads or searches (pure)

Invariant: whatever a model writes, a call is answered. Only a cancelled turn ends a call without an answer.
"""
