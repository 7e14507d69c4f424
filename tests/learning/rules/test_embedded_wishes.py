"""Which sentences are lasting wishes, and which are requirements, bug reports, feedback or words of others."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, refused, session, stop, user

from commonplace.learning.extract import rules
from commonplace.learning.extract.rules import preferences
from commonplace.learning.extract.rules.preferences import Where
from commonplace.learning.reading import sentences


def kinds(text: str, where: Where) -> set[str]:
    found = (preferences.kind_of(sentence, where) for sentence in sentences.of_text(text))
    return {kind for kind in found if kind is not None}


def bullets(*events: object) -> list[str]:
    _, findings = rules.findings_of(session(*events))  # pyright: ignore[reportArgumentType]
    return [finding.text for finding in findings if finding.kind in ("preference", "rule")]


@pytest.mark.parametrize(
    "text",
    [
        "From now on use ruff instead of flake8.",
        "Always write the migration by hand, never autogenerate it.",
        "In this repo we use conventional commits.",
        "I prefer early returns over nested ifs.",
        "No comments in the generated code please.",
        "We never commit to main directly here.",
        "Don't add new dependencies without asking me.",
        "Please answer in German from now on.",
        "Ab jetzt bitte immer mit uv statt pip.",
        "Wir verwenden hier nur yarn.",
        "A partir de ahora usa siempre tabuladores.",
        "En este proyecto nunca usamos var.",
        "Désormais réponds toujours en français.",
        "Dans ce projet on n'utilise pas lodash.",
        "以后都用中文回答我。",
        "这个项目里禁止使用 any。",
    ],
)
def test_a_request_may_hold_a_wish_that_outlasts_it(text: str) -> None:
    assert kinds(text, "opening")


@pytest.mark.parametrize(
    "text",
    [
        "The search box should always keep focus after a reload.",
        "Users must never see another tenant's invoices.",
        "The nightly job always fails on the first of the month.",
        "Every page needs a footer with the imprint.",
        "I want a dark mode toggle in the settings page.",
        "The API must not return null for empty lists.",
        "Add comments to the public functions in parser.go.",
        "Rename the column to created_at, not creation_date.",
        "For this release only bump the patch version.",
        "When the user logs out, always clear the cache.",
        "Write a test that the parser never hangs on empty input.",
        "My colleague says we should always use Rust.",
        "Why does this query never use the index?",
        "What if we always used UTC?",
        "Die Liste soll immer nach Datum sortiert sein.",
        "Der Export darf nie leere Zeilen enthalten.",
        "El botón nunca debe quedar deshabilitado.",
        "La página siempre tarda más de cinco segundos.",
        "Le total doit toujours inclure la TVA.",
        "La page ne charge jamais sur mobile.",
        "列表必须按时间倒序排列",
        "这个接口总是超时",
    ],
)
def test_what_the_thing_must_do_is_no_wish_about_working(text: str) -> None:
    assert set() == kinds(text, "opening")


@pytest.mark.parametrize(
    "text",
    [
        "please stop adding type annotations to private helpers",
        "use spaces, this project doesn't do tabs",
        "you forgot the changelog again",
        "we name feature branches after the ticket number",
        "no need to explain what the code does",
        "keep functions under 30 lines",
        "answer in one paragraph max",
        "commit messages in the imperative please",
        "why did you rewrite the whole file? small patches only",
        "I told you already: no mocks in integration tests",
        "ask before you install anything",
        "use pathlib instead of os.path, like in the rest of the code",
        "bitte keine englischen Variablennamen",
        "schon wieder Kommentare, die nur den Code wiederholen",
        "Tests bitte neben den Code legen, nicht in einen eigenen Ordner",
        "frag mich vorher, wenn du etwas löschst",
        "prefiero respuestas cortas",
        "ya te dije que no toques las migraciones",
        "nada de dependencias nuevas sin consultarme",
        "on écrit les messages de commit en anglais",
        "arrête de reformater mes fichiers",
        "les tests à côté du code, pas dans un dossier séparé",
        "提交信息用英文写",
        "怎么又改了我没让你改的文件",
        "删除文件之前先问我",
    ],
)
def test_once_work_was_shown_a_remark_on_how_it_was_done_is_a_wish(text: str) -> None:
    assert kinds(text, "answering")


@pytest.mark.parametrize(
    "text",
    [
        "great, thanks",
        "it still crashes on empty input",
        "tests pass, merge it",
        "run it again please",
        "the header is too small on mobile",
        "looks good but rename the variable to total",
        "I meant the second column",
        "put the limit at 50, not 100",
        "remove the debug output",
        "for now leave it as it is",
        "today only the backend, please",
        "der Button ist immer noch zu klein",
        "nimm die zweite Variante",
        "sigue fallando",
        "ça plante toujours",
        "还是报错",
        "把标题改大一点",
    ],
)
def test_feedback_and_refinements_are_no_wishes(text: str) -> None:
    assert set() == kinds(text, "answering")


@pytest.mark.parametrize(
    "text",
    [
        "look at this issue:\n\n### Expected\nAlways resume at the last page. Never reset the font.",
        'translate to French: "Always wear a helmet. Never open the hatch."',
        "from the chat:\nkim: we should always use tabs\nlee: never, spaces forever",
        "```\n# Always run as root\n```\nwhat does it do?",
        "> From now on please use the new form.\n> Regards, Ms Abt\nwhat does she want?",
        "Implement this:\nAC1: Totals should always include tax.\nAC2: Users must never pick a past date.",
        "what does this mean?\nWARN: never mix toolchains, always set CC",
        "write house rules for the cabin: always lock the door, never feed the fox",
        "tom 10:02\nwe should always use protobuf\newa 10:03\nnever, we use json here\n\nwho is right?",
        "Tom wrote: always use tabs in this repo. what do you think?",
        "our lead said: 'never use lambdas in this codebase, always named functions'. do you agree?",
        "From: Ann\nSubject: rules\n\nPlease always use form 17 from now on. Never send it.\n\nwhat does she want?",
        "# NEVER edit this file by hand\nwhat is this comment about?",
        "README excerpt:\n\n## Style\n- always use black\n- never commit to main\n\nis this still true?",
        "Reviewer comment: we never use any in this repo.\nWhat does he mean?",
        "mein Kollege schreibt: bei uns wird immer gesquasht. stimmt das?",
        "la doc dit qu'il ne faut jamais utiliser eval. c'est vrai ?",
        "文档里说必须始终使用 https,不要用 http。对吗?",
    ],
)
def test_pasted_and_dictated_text_is_nobodys_wish(text: str) -> None:
    assert [] == bullets(user(text), model(), user("thanks"))


def test_a_note_on_a_refused_command_is_a_wish_that_names_the_command() -> None:
    found = bullets(user("ship it"), refused("git push --force"), user("never force-push, open a pull request"))

    assert 1 == len(found)
    assert "git push --force" in found[0]
    assert "open a pull request" in found[0]


@pytest.mark.parametrize("text", ["never mind, lunch", "sorry, wrong window", "stop", "the phone rang, go on"])
def test_a_stop_for_other_reasons_teaches_nothing(text: str) -> None:
    assert [] == bullets(user("build it"), ran("make", 130), stop(), user(text))


def test_a_complaint_and_what_is_wanted_instead_are_one_wish() -> None:
    found = bullets(user("fix the crash"), edit(), user("way too long. Keep your answers under five lines."), model())

    assert 1 == len(found)
    assert "five lines" in found[0]


def test_a_wish_that_is_taken_back_at_once_is_none() -> None:
    assert [] == bullets(
        user("always use British spelling in the docs"), user("scratch that, forget I said it"), model()
    )


def test_what_is_asked_for_again_and_again_is_a_wish() -> None:
    found = bullets(
        user("add the price hook"),
        edit(),
        user("run eslint on it"),
        ran("npx eslint src"),
        user("ok. same thing for the cart"),
        edit(),
        user("run eslint again"),
        ran("npx eslint src"),
    )

    assert 1 == len(found)
    assert "run eslint" in found[0]


def test_a_wish_in_other_words_adds_evidence_and_the_fuller_wording_stays() -> None:
    _, findings = rules.findings_of(
        session(
            user("add a toast"),
            edit(),
            user("named exports only"),
            edit(),
            user("I keep telling you: named exports only, no default exports in this codebase"),
        )
    )

    assert 1 == len(findings)
    assert 2 == len(findings[0].evidence)
    assert "no default exports" in findings[0].text


def test_only_the_persons_part_of_a_mixed_message_counts() -> None:
    found = bullets(
        user("tickets must never go to inactive agents. only the backend today. and stop opening PRs as ready"), edit()
    )

    assert 1 == len(found)
    assert "opening PRs" in found[0]
