"""Which commands only look, row by row, and what of a command a person can allow for good."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pygit2
import pytest
from manifests import commit, repository

from commonplace.agent.approvals import git_repositories
from commonplace.agent.approvals.harmless_commands import Prefix, is_allowed, is_harmless, prefixes_of, programs_of
from commonplace.agent.approvals.workplace import Workplace

PATH = "/usr/local/bin:/usr/bin:/bin"
GIT = shutil.which("git", path=PATH) or "/usr/bin/git"
TOUCH = shutil.which("touch", path=PATH) or "/usr/bin/touch"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """A repository with a commit, in which a session works."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "names").write_text("b\na\n")
    commit(repository(folder))
    (tmp_path / "person").mkdir()
    return Workplace(folder, (folder,), {"PATH": PATH, "HOME": "/nonexistent"})


def _shell(script: str) -> tuple[str, ...]:
    return ("/bin/bash", "-c", script)


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _configure(place: Workplace, text: str) -> None:
    with (place.folder / ".git" / "config").open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    "script",
    [
        "ls -la",
        "cat a.txt | grep -n needle | head -5",
        "cd src && grep -rn retry .",
        "git status",
        "git status -sb --porcelain=v2",
        "git log --oneline -5 && git diff HEAD~1",
        "git log -n 3 --format='%h %s'",
        "git grep -n needle",
        "find . -name '*.py' -not -path './x/*'",
        "sed -n 10,20p file",
        "sed -n '5,$p' file",
        "sort names | uniq -c",
        "sort -t, -k2 names",
        "wc -l a b; pwd",
        "test -f a && echo yes",
        "date +%F",
        "/bin/ls",
    ],
)
def test_what_only_looks_is_harmless(place: Workplace, script: str) -> None:
    assert is_harmless(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf .",
        "ls && rm x",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprintf out x",
        "rg --pre=./x y",
        "rg -z y",
        "sort -o out in",
        "sort -oout in",
        "sort -uo out in",
        "sort -nruoout in",
        "sort --out=x in",
        "sort --o x in",
        "sort --compress-prog=./x in",
        "sort -S1 -T. in",
        "uniq in out",
        "uniq -c in out",
        "tree -o out",
        "tree -Ro out -H . -L 1",
        "diff -l a b",
        "diff --to-file=x a",
        "file -C -m x",
        "file -z x",
        "fd -l x",
        "fd -Hx rm",
        "date -s now",
        "date 010100002030",
        "date --se=now",
        "git commit -m x",
        "git -c core.pager=./x log",
        "git --git-dir=x status",
        "git --exec-path=. status",
        "git -C sub status",
        "git -p log",
        "git diff --output=x",
        "git diff --outp=x",
        "git diff --ext-diff",
        "git diff --no-index a b",
        "git log --show-signature",
        "git log --format=%G?",
        "git log --textconv -p",
        "git show --textconv HEAD",
        "git grep -O./x y",
        "git grep -nO./x y",
        "git grep -nOsh y",
        "git grep --open-files-in-pager=./x y",
        "git grep --open=./x y",
        "git grep --textconv y",
        "git cat-file --filters HEAD:x",
        "git branch new",
        "git branch -D main",
        "git remote add x y",
        "git mine",
        "cd sub && git status",
        "sed -i s/a/b/ x",
        "sed -n 'w out' x",
        "sed -n 1p '-e1e touch x'",
        "sed -n 1p -i x",
        "sed -n 1p x --expression=1e",
        "sed -n '1,2p;1e ls' x",
        "sed -n 1p -s -f script",
        "sed -ni 1p x",
        "sed --quiet 1p x -ix",
        "test -v 'a[$(touch x)]'",
        "test -R 'a[$(touch x)]'",
        "echo hi > file",
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "ls & rm x",
        "X=1 ls",
        "env rm x",
        "alias ls=rm; ls x",
        "hash -p ./x ls; ls",
        "xargs rm",
        "tee x",
        "awk 1 x",
        "ls() { rm x; }; ls",
        "./ls",
        "bin/ls",
        "jq -n --rawfile a b 1 -o",
        "find -- . -delete",
        "find . -- -delete",
        "find -H -- t -exec rm {} +",
        "find -- . -fprintf out x",
        "git diff -U --output=x",
        "git diff --unified --output=x",
        "git diff --abbrev --output=x",
        "git log --pretty --output=x",
        "git log -U --output=x",
        "git log --abbrev --ext-diff -p",
        "git show --pretty --output=x",
        "git show --abbrev --textconv",
        "git blame --abbrev --contents=/etc/shadow x",
        "git status --column --output=x",
        "git log --since --output=x",
        "git grep -e -Ox y",
        "git grep --context -O./x y",
        "git ls-files --exclude --recurse-submodules",
        "date --iso-8601 --set=now",
        "date --iso-8601 010100002030",
        "date -d --set=now",
        "rg --sort --pre=./x y",
        "rg -e --pre=./x y",
        "fd --type --exec rm",
        "fd -E -x rm",
        "du --exclude --files0-from=x",
        "tree -I -o out",
        "sort -k --output=x y",
        "head -n --x",
        "",
    ],
)
def test_what_may_do_more_is_not(place: Workplace, script: str) -> None:
    assert not is_harmless(_shell(script), place.folder, place)


def test_a_program_and_its_arguments_are_judged_without_a_shell(place: Workplace) -> None:
    assert is_harmless(("ls", "$(rm x)"), place.folder, place)
    assert not is_harmless(("rm", "x"), place.folder, place)
    assert not is_harmless(("cd", "x"), place.folder, place)


@pytest.mark.parametrize(
    "command",
    [
        ("./bash", "-c", "ls"),
        ("bin/bash", "-c", "ls"),
        ("node_modules/.bin/bash", "-c", "git status"),
        ("./ls",),
        ("PROJECT/bash", "-c", "ls"),
        ("PROJECT/../project/bash", "-c", "ls"),
        ("/bin/../PROJECT/bash", "-c", "ls"),
        ("/tmp/bash", "-c", "ls"),
        ("bash", "-lic", "ls"),
        ("bash", "-c", "ls", "x"),
        ("zsh", "-c", "ls"),
    ],
)
def test_a_shell_that_a_model_can_have_put_there_runs_nothing_harmless(
    place: Workplace, command: tuple[str, ...]
) -> None:
    for name in ("bash", "ls", "bin/bash", "node_modules/.bin/bash"):
        _program(place.folder / name)
    words = tuple(word.replace("PROJECT", str(place.folder)) for word in command)

    assert not is_harmless(words, place.folder, place)
    assert () == prefixes_of(words, place.folder, place)


@pytest.mark.parametrize("where", [".venv/bin", "node_modules/.bin", "bin", "", "/LINK"])
def test_a_name_that_means_a_program_of_the_workspace_is_not_known(
    place: Workplace, where: str, tmp_path: Path
) -> None:
    for name in ("git", "ls", "touch"):
        _program(place.folder / (where.strip("/") or ".") / name)
    folder = str(place.folder / where) if where and not where.startswith("/") else where
    if where == "/LINK":  # a folder elsewhere that is a link into the workspace
        folder = str(tmp_path / "person" / "bin")
        os.symlink(place.folder / "LINK", folder)  # noqa: PTH211
    planted = Workplace(place.folder, place.roots, {**place.variables, "PATH": f"{folder}:{PATH}"})

    assert not is_harmless(_shell("ls"), place.folder, planted)
    assert not is_harmless(_shell("git status"), place.folder, planted)
    for script in ("git commit -m x", "touch x"):
        assert () == prefixes_of(_shell(script), place.folder, planted)
        assert not is_allowed(_shell(script), place.folder, planted, {(GIT, "commit"), (TOUCH,)})
    shown = programs_of(_shell("git commit -m x"), place.folder, planted)
    assert GIT not in shown
    assert str(place.folder) not in planted.trusted_path()


@pytest.mark.parametrize(
    ("script", "prefixes"),
    [
        ("git commit -m x", ((GIT, "commit"),)),
        ("git commit -am 'x y' --amend --no-edit", ((GIT, "commit"),)),
        ("git add -A && git commit -m x", ((GIT, "add"), (GIT, "commit"))),
        ("git push -u origin main", ((GIT, "push"),)),
        ("touch a b", ((TOUCH,),)),
        ("git status && git commit -m x", ((GIT, "status"), (GIT, "commit"))),
    ],
)
def test_what_is_remembered_is_the_path_of_the_program_and_its_sub_command(
    place: Workplace, script: str, prefixes: tuple[Prefix, ...]
) -> None:
    _configure(place, '[remote "origin"]\n\turl = git@host.example:a/b.git\n')

    assert prefixes == prefixes_of(_shell(script), place.folder, place)
    assert is_allowed(_shell(script), place.folder, place, set(prefixes))
    assert not is_allowed(_shell(script), place.folder, place, set(prefixes[1:]))


RUNNERS = """
    python python3 node deno bun ruby perl php lua awk gawk mawk sed find fd xargs parallel env sudo su doas nohup time
    timeout nice setsid stdbuf watch npx npm pnpm yarn make cmake ninja just task cargo go gcc cc ld tar zip unzip rsync
    cp mv ln install dd tee bash sh zsh dash fish busybox ssh scp curl wget docker podman kubectl pip uv poetry pytest
    tox nox gdb strace vim vi ed ex emacs less more man git-lfs gh glab crontab at systemctl chmod chown rm eval exec
    source . alias command builtin hash export set trap
"""


@pytest.mark.parametrize("program", RUNNERS.split())
def test_what_runs_other_programs_or_code_of_the_workspace_is_never_remembered(place: Workplace, program: str) -> None:
    for script in (program, f"{program} x", f"{program} test", f"/usr/bin/{program} x"):
        assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "script",
    [
        "sort -uo OUT f; git commit -m x",
        "git grep -nO'CMD' x; git commit -m x",
        "cd sub && git commit -m x",
        "cd . && git commit -m x",
        "pushd sub; git commit -m x",
        "git -C sub commit -m x",
        "git --git-dir=sub/.git commit -m x",
        "git --work-tree=sub commit -m x",
        "git -c core.hooksPath=sub commit -m x",
        "git -c alias.commit='!sh' commit",
        "git --exec-path=sub commit -m x",
        "GIT_DIR=sub git commit -m x",
        "export GIT_DIR=sub; git commit -m x",
        "env git commit -m x",
        "./git commit -m x",
        "git commit -m x && rm x",
        "git commit -m x; ls > y",
        "git commit -m $(rm x)",
        'git commit -m "$(rm x)"',
        "git commit -m x > /etc/passwd",
        "git commit -m x & ls",
        "git commit -F ~/.ssh/id_rsa",
        "git commit -em x --cleanup=x",
        "git commit -t x",
        "git commit --template=x",
        "git commit -S -m x",
        "git commit --gpg-sign=x -m x",
        "git commit -m x --trailer=a",
        "git commit --fixup=x",
        "git commit -p",
        "git add -e",
        "git add -i",
        "git add -p x",
        "git add sub && git add -A",
        "git add sub && git commit -am x",
        "git add sub && git commit",
        "git add sub && git status",
        "git push --receive-pack=CMD origin",
        "git push --receive=CMD origin",
        "git push --exec=CMD origin",
        "git push ./evil main",
        "git push evil main",
        "git push 'ext::sh -c CMD' main",
        "git push file:///tmp/evil main",
        "git fetch --upload-pack=CMD origin",
        "git fetch ./evil",
        "git tag -s x",
        "git tag -e -m x y",
        "git rebase --exec CMD",
        "git submodule foreach CMD",
        "git bisect run CMD",
        "git stash",
        "git commit\n./evil",
        "git() { ./evil; }; git commit -m x",
        "alias git=./evil; git commit -m x",
        "hash -p ./evil git; git commit -m x",
        ". ./evil; git commit -m x",
        "trap ./evil EXIT; git commit -m x",
    ],
)
def test_an_allowed_commit_takes_nothing_else_along(place: Workplace, script: str) -> None:
    (place.folder / "sub").mkdir()
    (place.folder / "evil").mkdir()
    _program(place.folder / "git")
    _configure(place, '[remote "origin"]\n\turl = https://host.example/a/b\n')
    allowed = {(GIT, name) for name in ("commit", "add", "push", "fetch", "tag", "grep", "status")} | {("sort",)}

    assert not is_allowed(_shell(script), place.folder, place, allowed)


@pytest.mark.parametrize(
    "script",
    [
        "git commit",
        "git commit -a",
        "git commit -q --amend",
        "git commit --author='- m'",
        "git commit -m",
        "git commit --message --amend",
        "git commit -m --amend",
        "git tag -a v1",
        "git tag --annotate v1",
        "git tag -fa v1",
        "touch .git/hooks/x",
        "touch .git",
        "touch .GIT/index.lock",
        "touch a/.git/x",
        "mkdir -p .git/hooks",
        "mkdir .git",
    ],
)
def test_what_starts_an_editor_or_writes_into_gits_folder_is_not_remembered(place: Workplace, script: str) -> None:
    (place.folder / "a").mkdir()

    assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASH_ENV", "PROJECT/env"),
        ("BASH_ENV", "./env"),
        ("BASH_ENV", "/tmp/env"),
        ("BASH_ENV", "env"),
        ("LD_LIBRARY_PATH", "."),
        ("LD_LIBRARY_PATH", ":/usr/lib"),
        ("GIT_CONFIG_SYSTEM", "gitconfig"),
        ("ENV", "PROJECT/env"),
        ("LD_PRELOAD", "PROJECT/x.so"),
        ("LD_PRELOAD", "/usr/lib/a.so:./x.so"),
        ("LD_PRELOAD", "/usr/lib/a.so PROJECT/x.so"),
        ("LD_LIBRARY_PATH", "/usr/lib:PROJECT/lib"),
        ("LD_AUDIT", "PROJECT/x.so"),
        ("GIT_EXTERNAL_DIFF", "./evil"),
        ("GIT_SSH_COMMAND", "ssh -F PROJECT/config"),
        ("GIT_SSH", "PROJECT/ssh"),
        ("GIT_PROXY_COMMAND", "PROJECT/proxy"),
        ("GIT_CONFIG_SYSTEM", "PROJECT/config"),
        ("GIT_TEMPLATE_DIR", "PROJECT/template"),
        ("RIPGREP_CONFIG_PATH", "PROJECT/rg"),
        ("MAGIC", "PROJECT/magic"),
        ("PS4", "$(PROJECT/evil)"),
        ("EDITOR", "PROJECT/edit"),
        ("BASH_FUNC_git%%", "() { ./evil; }"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_PARAMETERS", "'core.hookspath'='hooks'"),
    ],
)
def test_variables_that_load_what_a_model_can_write_leave_nothing_known(
    place: Workplace, name: str, value: str
) -> None:
    planted = Workplace(
        place.folder, place.roots, {**place.variables, name: value.replace("PROJECT", str(place.folder))}
    )
    elsewhere = {**place.variables, "BASH_ENV": "/etc/bash_env", "LD_PRELOAD": "/usr/lib/a.so", "EDITOR": "vi"}

    assert not is_harmless(_shell("git status"), place.folder, planted)
    assert () == prefixes_of(_shell("git commit -m x"), place.folder, planted)
    assert is_harmless(_shell("git status"), place.folder, Workplace(place.folder, place.roots, elsewhere))


@pytest.mark.parametrize("login", ["-lc", "-ic", "-lic", "-xc", "-euc"])
def test_a_shell_with_other_options_is_not_what_was_allowed(place: Workplace, login: str) -> None:
    assert not is_allowed(("/bin/bash", login, "git commit -m x"), place.folder, place, {(GIT, "commit")})


def test_an_approval_holds_in_the_folder_of_the_session_only(place: Workplace) -> None:
    for folder in (place.folder / "sub", place.folder.parent, Path("/"), place.folder / "sub" / ".."):
        assert not is_allowed(_shell("touch x"), folder, place, {(TOUCH,)})
        assert not is_allowed(_shell("git commit -m x"), folder, place, {(GIT, "commit")})
    assert is_allowed(_shell("touch x"), place.folder, place, {(TOUCH,)})


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = ./evil\n",
        "[core] fsmonitor = ./evil\n",
        "[CORE]\n\tFsMonitor=./evil\n",
        "[core]\n\thooksPath = .husky\n",
        "[core]\n\tpager = ./evil\n",
        "[core]\n\teditor = ./evil\n",
        "[core]\n\tsshCommand = ./evil\n",
        "[core]\n\tworktree = ../other\n",
        "[core]\n\tbare = true\n",
        "[core]\n\tattributesFile = x\n",
        "[diff]\n\texternal = ./evil\n",
        '[diff "x"]\n\ttextconv = ./evil\n',
        '[diff "x"]\n\tcommand = ./evil\n',
        '[filter "x"]\n\tclean = ./evil\n',
        '[merge "x"]\n\tdriver = ./evil\n',
        "[include]\n\tpath = ../evil\n",
        '[includeIf "gitdir:x"]\n\tpath = ../evil\n',
        "[gpg]\n\tprogram = ./evil\n",
        "[log]\n\tshowSignature = true\n",
        "[commit]\n\tgpgSign = true\n",
        "[alias]\n\tst = !evil\n",
        "[pager]\n\tlog = ./evil\n",
        "[credential]\n\thelper = ./evil\n",
        '[remote "x"]\n\tuploadpack = ./evil\n',
        '[remote "x"]\n\tvcs = evil\n',
        '[url "ext::sh"]\n\tinsteadOf = x\n',
        "[gc]\n\trecentObjectsHook = ./evil\n",
        '[submodule "x"]\n\tupdate = !./evil\n',
        '[core]\n\tquotepath = "\\\n[core]\n\tfsmonitor=./evil\n',
        "[core]\n\tfilemode = true \\\n\tfsmonitor=x\n",
        "\ufeff[core]\n",
        '[trailer "x"]\n\tcommand = ./evil\n',
    ],
)
def test_a_repository_whose_configuration_may_name_a_program_is_asked_about(place: Workplace, settings: str) -> None:
    _configure(place, settings)

    assert not is_harmless(_shell("git status"), place.folder, place)
    assert not is_allowed(_shell("git commit -m x"), place.folder, place, {(GIT, "commit")})


@pytest.mark.parametrize(
    "address", ["../evil", "/tmp/evil", "file:///tmp/evil", "./evil", "evil", "ext::sh -c x", "~/x"]
)
def test_a_remote_on_this_machine_would_run_its_own_hooks(place: Workplace, address: str) -> None:
    _configure(place, f'[remote "origin"]\n\turl = {address}\n')

    for script in ("git push origin main", "git push", "git fetch --all"):
        assert () == prefixes_of(_shell(script), place.folder, place)


def _bare(folder: Path) -> None:
    pygit2.init_repository(str(folder), bare=True)


def _make_bare_at_top(place: Workplace) -> None:
    shutil.rmtree(place.folder / ".git")
    _bare(place.folder)


def _link_git(place: Workplace) -> None:
    (place.folder / ".git").rename(place.folder / "real")
    (place.folder / ".git").symlink_to("real")


def _plant_above(place: Workplace) -> None:
    shutil.rmtree(place.folder / ".git")
    repository(place.folder.parent)


def _add_hook(place: Workplace) -> None:
    _program(place.folder / ".git" / "hooks" / "pre-commit")


def _link_hook(place: Workplace) -> None:
    (place.folder / ".git" / "hooks").mkdir(exist_ok=True)
    (place.folder / ".git" / "hooks" / "pre-push").symlink_to("../../hook")


def _add_submodule(place: Workplace) -> None:
    repo = pygit2.Repository(str(place.folder))
    repo.index.add(pygit2.IndexEntry("sub", repo.head.target, 0o160000))  # pyright: ignore[reportArgumentType]
    repo.index.write()


def _name_submodule(place: Workplace) -> None:
    (place.folder / ".gitmodules").write_text("")


def _point_elsewhere(place: Workplace) -> None:
    (place.folder / ".git").rename(place.folder / "real")
    (place.folder / ".git").write_text("gitdir: nowhere\n")


def _break_index(place: Workplace) -> None:
    (place.folder / ".git" / "index").write_text("?")


def _break_head(place: Workplace) -> None:
    (place.folder / ".git" / "HEAD").write_text("?")  # git would go on to look for a bare repository around it


def _link_head(place: Workplace) -> None:
    (place.folder / ".git" / "HEAD").unlink()
    (place.folder / ".git" / "HEAD").symlink_to("../HEAD")


def _remove_refs(place: Workplace) -> None:
    shutil.rmtree(place.folder / ".git" / "refs")


def _remove_objects(place: Workplace) -> None:
    (place.folder / ".git" / "objects").rename(place.folder / "objects")


def _add_config_of_work_tree(place: Workplace) -> None:
    (place.folder / ".git" / "config.worktree").write_text("[core]\n\tfsmonitor = ./evil\n")


@pytest.mark.parametrize(
    ("plant", "harmless"),
    [
        (_make_bare_at_top, False),
        (_link_git, False),
        (_plant_above, False),
        (_add_hook, True),
        (_link_hook, True),
        (_add_submodule, False),
        (_name_submodule, False),
        (_point_elsewhere, False),
        (_break_index, False),
        (_add_config_of_work_tree, False),
        (_break_head, False),
        (_link_head, False),
        (_remove_refs, False),
        (_remove_objects, False),
    ],
)
def test_a_repository_that_a_model_can_have_made_is_asked_about(
    place: Workplace, plant: object, harmless: bool
) -> None:
    assert callable(plant)
    plant(place)

    assert harmless is is_harmless(_shell("git status"), place.folder, place)
    assert not is_allowed(_shell("git commit -m x"), place.folder, place, {(GIT, "commit")})


def _bare_by_reference(folder: Path) -> None:
    _bare(folder / "parts")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "commondir").write_text("parts\n")


@pytest.mark.parametrize("nested", [repository, _bare, _bare_by_reference])
def test_a_repository_within_the_workspace_is_asked_about(place: Workplace, nested: object) -> None:
    assert callable(nested)
    nested(place.folder / "sub")

    assert not is_harmless(_shell("git status"), place.folder / "sub", place)
    assert is_harmless(_shell("git status"), place.folder, place)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("HOME", ".gitconfig"),
        ("HOME", ".config/git/config"),
        ("XDG_CONFIG_HOME", "git/config"),
        ("GIT_CONFIG_GLOBAL", ""),
        ("GIT_DIR", None),
        ("GIT_WORK_TREE", None),
        ("GIT_COMMON_DIR", None),
        ("GIT_INDEX_FILE", None),
        ("GIT_EXEC_PATH", None),
    ],
)
def test_where_a_model_can_write_the_settings_of_git_they_must_be_plain(
    place: Workplace, name: str, file: str | None
) -> None:
    where = place.folder / "settings"
    own = Workplace(place.folder, place.roots, {**place.variables, name: str(where)})
    if file is not None:
        (where / file).parent.mkdir(parents=True, exist_ok=True)
        (where / file).write_text("[user]\n\tname = A\n")
        assert is_harmless(_shell("git status"), place.folder, own)
        (where / file).write_text("[core]\n\tfsmonitor = ./evil\n")

    assert not is_harmless(_shell("git status"), place.folder, own)
    assert not is_allowed(_shell("git commit -m x"), place.folder, own, {(GIT, "commit")})


def test_where_a_model_can_write_the_home_no_login_shell_and_no_remote_is_known(place: Workplace) -> None:
    _configure(place, '[remote "origin"]\n\turl = git@host.example:a/b.git\n')
    own = Workplace(place.folder, place.roots, {**place.variables, "HOME": str(place.folder)})

    assert is_harmless(("/bin/bash", "-lc", "ls"), place.folder, place)
    assert not is_harmless(("/bin/bash", "-lc", "ls"), place.folder, own)
    assert () != prefixes_of(_shell("git push"), place.folder, place)
    assert () == prefixes_of(_shell("git push"), place.folder, own)


def test_the_programs_of_a_script_are_shown_by_their_paths(place: Workplace) -> None:
    planted = _program(place.folder / "node_modules" / ".bin" / "bash")

    shown = programs_of(("./node_modules/.bin/bash", "-c", "git status"), place.folder, place)
    assert (str(planted),) == shown
    assert ("/bin/bash", GIT) == programs_of(_shell("cd x && git status"), place.folder, place)
    assert ("nothing-of-the-kind",) == programs_of(("nothing-of-the-kind",), place.folder, place)


def test_a_program_behind_a_link_of_the_workspace_is_shown_as_what_it_is(place: Workplace) -> None:
    for name, target in (("ls", GIT), ("tool", "ls"), ("sub", "/usr/bin")):
        (place.folder / name).symlink_to(target)

    for command in ("./ls", "./tool"):
        shown = f"{place.folder}/{command[2:]} -> {os.path.realpath(GIT)}"
        assert (shown,) == programs_of((command, "status"), place.folder, place)
    assert (f"{place.folder}/sub/git -> {os.path.realpath(GIT)}",) == programs_of(("sub/git",), place.folder, place)


@pytest.mark.parametrize(
    "before",
    [
        "alias git=./evil",
        "export PATH=.",
        "hash -p ./evil git",
        "enable -f ./evil.so git",
        "source ./evil",
        ". ./evil",
        "eval 'git() { ./evil; }'",
        "printf -v PATH .",
        "declare -x PATH=.",
        "readonly PATH=.",
        "pushd sub",
        "builtin cd sub",
        "command cd sub",
        "trap ./evil EXIT",
        "set -a",
        "PATH=.",
        "git() { ./evil; }",
        "function git { ./evil; }",
        "cat <<x\n$(./evil)\nx",
        "PATH=. :",
    ],
)
@pytest.mark.parametrize("then", ["git status", "./git status", "ls"])
def test_a_name_that_a_script_may_have_changed_is_not_shown_as_a_program(
    place: Workplace, before: str, then: str
) -> None:
    _program(place.folder / "git")
    joined = _shell(f"{before}\n{then}")

    assert ("/bin/bash",) == programs_of(joined, place.folder, place)
    assert not is_harmless(joined, place.folder, place)
    assert () == prefixes_of(joined, place.folder, place)


@pytest.mark.parametrize("folder", ["/proc/self/cwd", "/proc/self/root/usr/bin", "/proc/1/root/bin", "/dev/shm"])
def test_a_program_is_not_trusted_where_a_process_decides_what_its_path_means(place: Workplace, folder: str) -> None:
    program = f"{folder}/ls"

    assert not is_harmless((program,), place.folder, place)
    assert () == prefixes_of((program,), place.folder, place)
    assert () == prefixes_of((f"{folder}/bash", "-c", "ls"), place.folder, place)


def test_a_name_means_another_program_behind_cd_where_the_path_is_relative(place: Workplace) -> None:
    relative = Workplace(place.folder, place.roots, {**place.variables, "PATH": f"bin:{PATH}"})

    assert ("/bin/bash",) == programs_of(_shell("cd sub && git status"), place.folder, relative)


@pytest.mark.parametrize(
    "script",
    [
        "git log --format='%G?'",
        "git log --format=%+GK",
        "git log --pretty='format:%-GK'",
        "git log '--format=% G?'",
        "git show --format='%h%+GS'",
        "git log --format='%<(10)%GF'",
        "git log --pretty='%C(auto)%+GP'",
        "git log --format='%%%GG'",
        "git log --format='%(describe)'",
        "git shortlog --group='%GK'",
        "git shortlog --group='format:%+GS'",
        "strings @options",
    ],
)
def test_a_format_for_which_git_runs_a_program_is_not_harmless(place: Workplace, script: str) -> None:
    assert not is_harmless(_shell(script), place.folder, place)
    assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "script",
    [
        "git log --format='%h %an %ad%n%s%n%b'",
        "git log --pretty=oneline",
        "git log --pretty='format:%C(yellow)%h%Creset %<(20,trunc)%s %+d'",
        "git log --date=format:%G-%V --format=%cd",
        "git shortlog --group=author",
    ],
)
def test_a_format_of_plain_placeholders_is_harmless(place: Workplace, script: str) -> None:
    assert is_harmless(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "script",
    [
        "git push --force",
        "git push -f origin main",
        "git push -uf origin main",
        "git push --force-with-lease origin main",
        "git push origin +main",
        "git push origin :main",
        "git push origin main:release",
        "git push --delete origin main",
        "git push --mirror origin",
        "git push --prune origin",
        "git fetch origin +refs/heads/a:refs/heads/main",
        "git fetch origin a:b",
        "touch /etc/nologin",
        "touch ~/.ssh/authorized_keys",
        "touch ../x",
        "touch a ../x",
        "touch out/x",
        "touch -- out/x",
        "mkdir -p /etc/x",
        "mkdir ~/.config/x",
        "mkdir -p sub/../../x",
    ],
)
def test_what_overwrites_elsewhere_is_asked_about_each_time(place: Workplace, tmp_path: Path, script: str) -> None:
    _configure(place, '[remote "origin"]\n\turl = git@host.example:a/b.git\n')
    (place.folder / "out").symlink_to(tmp_path / "person")

    assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "upstream", ["./evil", "/srv/evil", "ext::sh -c x", "file:///srv/evil", "https://evil.example/x"]
)
def test_a_branch_whose_upstream_is_no_remote_of_the_repository_is_not_fetched_unasked(
    place: Workplace, upstream: str
) -> None:
    _configure(place, '[remote "origin"]\n\turl = git@host.example:a/b.git\n')
    assert prefixes_of(_shell("git fetch"), place.folder, place)

    _configure(place, f'[branch "main"]\n\tremote = {upstream}\n')
    for script in ("git fetch", "git push", "git push origin main"):
        assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize(
    "settings",
    [
        '[remote "here"]\n\tfetch = +refs/heads/*:refs/remotes/here/*\n',  # git takes `here` for a path then
        '[remote "here"]\n\tpushurl = https://host.example/a/b\n',
        '[remote "origin"]\n\tpushurl = ../evil\n',
        '[remote "origin"]\n\tpush = +main:release\n',
        '[remote "origin"]\n\tpush = :main\n',
        '[remote "origin"]\n\tpush = main:release\n',
    ],
)
def test_a_remote_without_an_address_or_with_forced_pushes_is_asked_about(place: Workplace, settings: str) -> None:
    _configure(place, '[remote "origin"]\n\turl = git@host.example:a/b.git\n')
    assert prefixes_of(_shell("git push"), place.folder, place)

    _configure(place, settings)
    for script in ("git push", "git fetch", "git push here main", "git fetch here"):
        assert () == prefixes_of(_shell(script), place.folder, place)


@pytest.mark.parametrize("kind", ["remotes", "branches"])
def test_a_remote_that_no_setting_names_is_asked_about(place: Workplace, kind: str) -> None:
    assert prefixes_of(_shell("git fetch"), place.folder, place)

    (place.folder / ".git" / kind).mkdir(exist_ok=True)
    (place.folder / ".git" / kind / "origin").write_text("URL: ./evil\n")
    assert () == prefixes_of(_shell("git fetch"), place.folder, place)
    assert () == prefixes_of(_shell("git push"), place.folder, place)


@pytest.mark.parametrize(
    "settings", ["[core]\n\thooksPath = .githooks\n", "[core] HOOKSPATH=/srv/hooks\n", '[core]\n  hookspath = "x"\n']
)
def test_nothing_of_git_is_remembered_where_a_persons_settings_move_the_hooks(
    place: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    # A file that no model can write is looked at for this alone; a person's own is such a file outside of these tests.
    monkeypatch.setattr(git_repositories, "_SYSTEM", str(tmp_path / "person" / "gitconfig"))
    assert prefixes_of(_shell("git commit -m x"), place.folder, place)

    (tmp_path / "person" / "gitconfig").write_text(settings)
    assert () == prefixes_of(_shell("git commit -m x"), place.folder, place)
