"""The tools that a model may call.

    registry            what a tool is, how it is offered, how a call is run and answered
    arguments           arguments of a call, decoded and checked against a struct
    shell               the tools `shell` and `process`
    processes           running commands, each in a process group of its own
    process_table       the living processes of this machine
    command_output      what a command printed, in bounded memory
    shell_environment   the environment variables that a command inherits
    shell_script        a command line → its commands, and what they do (pure)
    memory_reads        which memories a command line reads (pure)
    patch/              the tool `apply_patch`
    plan, image, recall the tools `update_plan`, `view_image` and `recall`

Invariant: whatever a model writes, a call is answered. Only a cancelled turn ends a call without an answer.
"""
