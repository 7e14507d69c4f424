"""Approvals: which actions may run, which are refused, and which a person must allow.

option_rules        which arguments of which programs are known (pure; `option_rules.toml`)
workplace           which program a name means, and what a model can have put there
git_repositories    whether a repository can make git run a program
harmless_commands   command lines that are known to change nothing, and those that a person allowed for good
policy              the rules (pure)
requests            the questions of one session with their answers
consent             one action on its way: judged, asked about, confined
"""
