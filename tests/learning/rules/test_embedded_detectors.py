"""Each detector alone: what it finds in a session made for it, and that others find nothing there."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, session, user

from commonplace.learning.extract import rules
from commonplace.learning.extract.rules.findings import RuleFinding
from commonplace.learning.reading import outcomes, tasks
from commonplace.learning.reading.session_view import ViewEvent


def alone(detector: str, *events: ViewEvent) -> list[RuleFinding]:
    found = tasks.cut(session(*events))
    outcomes.judge(found)
    return list(rules.DETECTORS[detector](found))


def only(detector: str, *events: ViewEvent) -> RuleFinding:
    """Return the one finding of a detector, where no other one finds anything."""
    for name in rules.DETECTORS:
        assert name == detector or not alone(name, *events), name
    (found,) = alone(detector, *events)
    return found


def test_fixes_a_flag_between_failing_and_working() -> None:
    found = only(
        "fixes",
        user("send a test mail"),
        ran("swaks --to me@x.example --server localhost", 1, "530 Must issue a STARTTLS command first"),
        ran("swaks --tls --to me@x.example --server localhost", 0, "250 OK"),
    )

    assert "swaks --tls" in found.text
    assert "STARTTLS" in found.text


def test_fixes_a_variable_before_the_same_check() -> None:
    (found,) = alone(
        "fixes",
        user("the date specs fail for me"),
        ran("npx ember test", 1, "expected: 2024-03-01 actual: 2024-02-29\n1 failed"),
        ran("TZ=Europe/Berlin npx ember test", 0, "# pass 14"),
    )

    assert "TZ=Europe/Berlin" in found.text


def test_fixes_a_change_of_configuration_before_a_command_that_holds_the_first() -> None:
    events = (
        user("nextflow dies on the cluster"),
        ran("nextflow run main.nf", 1, "Process requirement exceeds available memory"),
        edit("conf/test.config"),
        ran("nextflow run main.nf -resume", 0, "Completed"),
    )

    assert "conf/test.config" in only("fixes", *events).text


def test_fixes_a_removed_cache() -> None:
    (found,) = alone(
        "fixes",
        user("elm make explodes"),
        ran("elm make src/Main.elm", 1, "elm: CORRUPT CACHE"),
        ran("rm -rf elm-stuff && elm make src/Main.elm", 0, "Success!"),
    )

    assert "rm -rf elm-stuff" in found.text
    assert "CORRUPT CACHE" in found.text


def test_fixes_a_program_by_its_path_and_not_by_its_installation() -> None:
    (found,) = alone(
        "fixes",
        user("regenerate the chart docs"),
        ran("helm-docs", 127, "bash: helm-docs: command not found"),
        ran("go install example.org/helm-docs/cmd/helm-docs@latest"),
        ran("~/go/bin/helm-docs"),
    )

    assert "`~/go/bin/helm-docs`" in found.text


@pytest.mark.parametrize("detector", ["fixes", "failures"])
@pytest.mark.parametrize(
    "output", ["fatal: Unable to create '.git/index.lock': File exists.", "E: Could not get lock /var/lib/dpkg/lock"]
)
def test_a_lock_of_others_is_neither_fix_nor_failure(detector: str, output: str) -> None:
    events = (user("stage it"), ran("git add -A", 128, output), ran("rm -f .git/index.lock && git add -A"))

    assert [] == alone(detector, *events)
    assert [] == alone(detector, *events[:2])


def test_failures_the_last_error_of_a_failed_task() -> None:
    found = only(
        "failures", user("flash the board"), ran("./flash --net", 1, "bootloader 1.2 does not support TFTP error")
    )

    assert "bootloader 1.2" in found.text


def test_failures_a_check_on_work_that_was_given_up_is_none() -> None:
    events = (
        user("rotate the labels"),
        edit(),
        ran("npm run test:e2e", 1, "Error: labels overlap: 41"),
        user("forget it, revert that"),
        ran("git checkout ."),
    )

    assert [] == alone("failures", *events)


def test_failures_a_network_that_was_away_is_none() -> None:
    assert [] == alone("failures", user("fetch it"), ran("npm i", 1, "npm ERR! network ECONNRESET error"))


def test_verify_the_check_that_succeeded() -> None:
    found = only("verify", user("add a field"), edit(), ran("make check", 0, "ok"))

    assert "`make check`" in found.text


def test_procedure_steps_to_a_goal_that_comes_back() -> None:
    found = only(
        "procedure",
        user("deploy the jobs stack"),
        ran("sam build --use-container"),
        ran("aws s3 cp layer.zip s3://acme/layer.zip"),
        ran("sam deploy --stack jobs"),
        user("it is live, thanks"),
    )

    assert "sam build --use-container` -> `aws s3 cp" in found.text


def test_repeated_what_had_to_be_asked_for_again() -> None:
    found = alone(
        "repeated",
        user("write a page on webhooks, one screen docs"),
        edit(),
        user("next: the page on keys, one screen docs"),
        edit(),
    )

    assert all("asked for again" in each.text for each in found)


def test_spoken_neighbours_make_one_finding() -> None:
    (found,) = alone(
        "spoken",
        user("add a chart"),
        edit(),
        model(),
        user("no co-author trailers in commits please. they show up in our public list and I explain it every time"),
    )

    assert "trailers" in found.text
    assert "public list" in found.text


def test_spoken_takes_along_what_a_pronoun_points_at() -> None:
    (found,) = alone("spoken", user("add a chart"), edit(), user("tests live in spec/. it must never be src/ here"))

    assert "spec/" in found.text


def test_spoken_leaves_praise_and_consent_out() -> None:
    found = alone("spoken", user("add a chart"), edit(), user("great, thanks! we never use pie charts in this project"))

    assert ["great" in each.text for each in found] == [False]
