"""Steps that worked in two sessions become a skill; what differed between them becomes an argument."""

from __future__ import annotations

import msgspec
from taught import taught

from commonplace.learning.consolidate import repeated_steps, skills
from commonplace.memory.files.raw_memories import RawMemory

SHIP = ["./scripts/build.sh {0}", "docker push registry.example.org/api:{0}", "kubectl set image deploy/api api={0}"]


def ran(number: int, *steps: str, task: str = "ship the api") -> RawMemory:
    """A session in which these commands worked."""
    listed = "".join(f"- `{step}` (exit 0)\n" for step in steps)
    text = f"# t\n\nRollout context: 1 task(s).\n\n## Task 1: {task}\nOutcome: success\n\nKey steps:\n{listed}"
    return msgspec.structs.replace(taught(number, {}), rollout_summary=text)


def of(*sessions: RawMemory) -> list[skills.LearnedSkill]:
    projects = {each.thread_id: "example.org/acme/shop" for each in sessions}
    return skills.of_procedures(repeated_steps.procedures(list(sessions), projects), {"example.org/acme/shop": "shop"})


def test_steps_that_came_up_twice_are_a_skill() -> None:
    (skill,) = of(ran(1, *(step.format("1.0") for step in SHIP)), ran(2, *(step.format("1.1") for step in SHIP)))

    assert skill.name == "shop-ship-the-api"
    assert "1. `./scripts/build.sh $ARGUMENTS[0]`" in skill.text
    assert "- `$ARGUMENTS[0]`: earlier `1.0`, `1.1`" in skill.text


def test_steps_that_came_up_once_are_none() -> None:
    assert of(ran(1, *(step.format("1.0") for step in SHIP)), ran(2, "make all", "./run.sh", "docker ps")) == []


def test_other_commands_in_between_do_not_matter() -> None:
    first = [step.format("1.0") for step in SHIP]
    second = [step.format("1.1") for step in SHIP]
    second[1:1] = ["./scripts/clean-cache.sh"]

    (skill,) = of(ran(1, *first), ran(2, *second))

    assert "clean-cache" not in skill.text


def test_checks_and_commits_make_no_skill() -> None:
    usual = ["pytest -q", "git add -A", "git commit -m x", "git push"]

    assert of(ran(1, *usual), ran(2, *usual)) == []


def test_steps_of_two_projects_are_not_put_together() -> None:
    one, two = (ran(number, *(step.format("1.0") for step in SHIP)) for number in (1, 2))
    projects = {one.thread_id: "a/one", two.thread_id: "b/two"}

    assert repeated_steps.procedures([one, two], projects) == []


DEPLOY = ["make image TARGET=pi4", "rsync -P out/display.img deploy@{0}:/var/images/", "ssh deploy@{0} sudo swap-slot"]


def test_a_skill_is_called_by_its_first_step_where_requests_have_no_words_in_common() -> None:
    first, second, third = (
        ran(number, *(step.format(host) for step in DEPLOY), task=task)
        for number, (host, task) in enumerate(
            [("north", "get main onto the display up north"), ("south", "and the other one"), ("west", "session")], 1
        )
    )

    (skill,) = of(first, second, third)

    assert skill.name == "shop-make-image"
    assert "- asked to: and the other one" in skill.text  # the newest request that has words


def test_a_skill_without_any_request_says_what_it_runs() -> None:
    (skill,) = of(*(ran(number, *(step.format(number) for step in SHIP), task="session") for number in (1, 2)))

    assert "- asked to: `./scripts/build.sh 2` and 2 more steps" in skill.text


def test_a_host_is_no_subcommand() -> None:
    steps = [
        "./bin/renew {0}.example.org",
        "ansible {0} -b -m service -a 'name={1} state=reloaded'",
        "./bin/announce {0}.example.org",
    ]

    (skill,) = of(
        ran(1, *(step.format("mail", "dovecot") for step in steps)),
        ran(2, *(step.format("git", "nginx") for step in steps)),
    )

    assert "2. `ansible $ARGUMENTS[1] -b -m service -a 'name=$ARGUMENTS[2] state=reloaded'`" in skill.text
