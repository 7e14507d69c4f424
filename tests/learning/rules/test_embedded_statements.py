"""What a person states: decisions with a reason, durable facts, dead ends."""

from __future__ import annotations

import pytest
from made_sessions import edit, likely, listed, model, ran, user

from commonplace.learning.reading.session_view import ViewEvent


def deciding(text: str) -> list[ViewEvent]:
    return [user("where do we store it?"), model("There are options."), user(text), edit()]


def telling(text: str) -> list[ViewEvent]:
    return [user("how many tickets?"), ran("./count.sh"), user(text), model()]


@pytest.mark.parametrize(
    "text",
    [
        "we go with sqlite because nobody wants to run a server for this",
        "let's keep REST, since the mobile team can't do gRPC",
        "Then we stay on Qt 5, the reason is the licence",
        "wir nehmen WebP statt PNG, weil die Bilder damit kleiner sind",
        "nos quedamos con Redis porque ya lo tenemos en producción",
        "on garde Postgres parce que l'équipe le connaît",
        "我们决定用 Redis,因为写入太频繁",
    ],
)
def test_a_choice_with_its_reason_is_a_decision(text: str) -> None:
    assert [("decision", text)] == [(lesson.kind, lesson.words) for lesson in listed(*deciding(text))]


def test_an_option_that_was_offered_and_taken_with_a_reason_is_a_decision() -> None:
    (found,) = listed(
        user("sockets or polling?"),
        model("SSE would also work, it is one-way."),
        user("SSE then, the school's firewall kills websockets anyway"),
        edit(),
    )

    assert "decision" == found.kind


@pytest.mark.parametrize(
    "text", ["maybe we go with sqlite one day", "we could use Redis", "yes, go ahead", "ok thanks"]
)
def test_thoughts_and_plain_approvals_decide_nothing(text: str) -> None:
    assert [] == listed(*deciding(text))


@pytest.mark.parametrize(
    "text",
    [
        "python3 on this box is 3.8 and will stay that way",
        "the generated stubs live in gen/ and are checked in",
        "the staging database listens on port 54320",
        "prod runs Alpine 3.19 with musl",
        "der Testserver läuft auf Port 8443",
        "el servidor de pruebas está en el puerto 8443",
        "le serveur de staging tourne sur le port 8443",
        "测试环境的数据库在 5433 端口",
    ],
)
def test_a_durable_fact_with_something_exact_is_kept(text: str) -> None:
    assert [text] == [lesson.words for lesson in likely(*telling(text)) if lesson.words != "how many tickets?"]


@pytest.mark.parametrize(
    "text",
    ["staging is down today", "the server on port 8080 is slow right now", "checkout is at 9 s since 14:10", "ok, 42"],
)
def test_how_things_are_at_the_moment_is_not_listed(text: str) -> None:
    assert [] == listed(*telling(text))


def test_a_dead_end_that_the_person_states_is_kept() -> None:
    (found,) = listed(
        user("can we cut the latency?"),
        model("Streaming would help."),
        user("that is a dead end: the SIP gateway buffers 800 ms whatever we send"),
        model(),
    )

    assert "failure" == found.kind
    assert "SIP gateway" in found.words
