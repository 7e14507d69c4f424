"""One repository has one identity, however its remote is spelt."""

from __future__ import annotations

import pytest

from commonplace.protocol.remotes import remote_identity


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Owner/Repo.git",
        "git@github.com:owner/repo",
        "github.com:owner/repo.git",
        "git@github.com:/owner/repo.git",
        "org-123@github.com:owner/repo",
        "ssh://git@github.com/owner/repo.git",
        "ssh://git@github.com:22/owner/repo.git",
        "ssh://github.com:2222/owner/repo/",
        "https://github.com/owner/repo",
        "https://github.com/owner/repo/",
        "https://github.com/owner/repo.git/",
        "https://github.com:443/owner/repo.git",
        "https://user:ghp_secret@github.com/owner/repo.git",
        "https://x-access-token@GitHub.com/OWNER/REPO.GIT",
        "http://github.com//owner//repo.git",
        "HTTPS://github.com/owner/repo",
        "git://github.com/owner/repo.git",
        "git+ssh://git@github.com/owner/repo.git",
        "  https://github.com/owner/repo.git\n",
        "https://user:p@ss@github.com/owner/repo.git",
        "https://github.com:/owner/repo.git",
        "ssh://git@ssh.github.com:443/owner/repo.git",
        "git@ssh.github.com:owner/repo.git",
        "https://www.github.com/owner/repo",
        "https://github.com./owner/repo",
    ],
)
def test_every_spelling_gives_the_same_identity(url: str) -> None:
    assert "github.com/owner/repo" == remote_identity(url)


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("https://gitlab.com/group/sub/repo.git", "gitlab.com/group/sub/repo"),
        ("git@host:repo", "host/repo"),
        ("ssh://git@[2001:db8::1]:22/owner/repo", "[2001:db8::1]/owner/repo"),
        ("https://github.com/owner/repo.github.io", "github.com/owner/repo.github.io"),
        ("https://dev.azure.com/org/project/_git/repo", "dev.azure.com/org/project/_git/repo"),
        ("https://org@dev.azure.com/Org/Project/_git/Repo", "dev.azure.com/org/project/_git/repo"),
        ("git@ssh.dev.azure.com:v3/org/project/repo", "dev.azure.com/org/project/_git/repo"),
        ("ssh://git@ssh.dev.azure.com/v3/org/project/repo", "dev.azure.com/org/project/_git/repo"),
        ("org@vs-ssh.visualstudio.com:v3/org/project/repo", "dev.azure.com/org/project/_git/repo"),
        ("https://org.visualstudio.com/project/_git/repo", "dev.azure.com/org/project/_git/repo"),
        ("https://org.visualstudio.com/DefaultCollection/project/_git/repo", "dev.azure.com/org/project/_git/repo"),
        ("git@gitlab.example.org:a/b/c/d.git", "gitlab.example.org/a/b/c/d"),
        ("git@[2001:db8::1]:owner/repo.git", "[2001:db8::1]/owner/repo"),
        ("[2001:db8::1]:owner/repo", "[2001:db8::1]/owner/repo"),
        ("https://[2001:DB8::1]/owner/repo", "[2001:db8::1]/owner/repo"),
        ("host.xz:~user/repo", "host.xz/~user/repo"),
        ("ssh://host.xz:22/~user/repo.git/", "host.xz/~user/repo"),
        ("git@host:22/owner/repo", "host/22/owner/repo"),
        ("keybase://private/user/repo", "private/user/repo"),
    ],
)
def test_the_whole_path_is_part_of_the_identity(url: str, identity: str) -> None:
    assert identity == remote_identity(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "repo",
        "/srv/git/repo.git",
        "../repo",
        "./a:b/repo",
        "C:\\code\\repo",
        "C:/code/repo",
        "file:///srv/git/repo.git",
        "FILE://host/repo",
        "https://github.com",
        "https://github.com/",
        "https://github.com/.git",
        "https:///owner/repo",
        "git@github.com:",
        "file:/srv/git/repo.git",
        "~/repo.git",
        "ext::ssh -i key git@host %S owner/repo",
        "codecommit::eu-west-1://repo",
        "ssh://git@github.com:owner/repo.git",
        "https://@/owner/repo",
        "https://[::1/owner/repo",
        "./git@host:owner/repo",
    ],
)
def test_what_names_no_host_or_no_repository_has_no_identity(url: str) -> None:
    assert remote_identity(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@host.org/a/b",
        "https://secret@host.org/a/b",
        "secret@host.org:a/b",
        "https://me:sec@ret@host.org/a/b",
        "me@sec@host.org:a/b",
    ],
)
def test_no_secret_becomes_part_of_an_identity(url: str) -> None:
    assert "host.org/a/b" == remote_identity(url)
