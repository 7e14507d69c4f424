"""Whether the words of a sentence say outright that it lasts, whose words they are, and what it is."""

from __future__ import annotations

import pytest

from commonplace.learning.lasting.judge import judge
from commonplace.learning.lasting.stated import StatedSentence
from commonplace.learning.reading.cues import likely_languages
from commonplace.memory.entries import Kind


def stated(text: str) -> StatedSentence:
    return StatedSentence(text, likely_languages(text))


def score(text: str) -> float:
    return stated(text).score(judge().stated, judge().stated_base)


@pytest.mark.parametrize(
    "text",
    [
        "always run the tests before you commit",
        "from now on use tabs",
        "never push to main",
        "next time ask me before you delete something",
        "going forward we squash our commits",
        "in all my projects I use uv",
        "don't deploy unless I ask",
        "ab jetzt nur noch mit uv",
        "frag mich nächstes Mal vorher",
        "a partir de ahora usa tabuladores",
        "la próxima vez pregunta antes",
        "désormais réponds en français",
        "la prochaine fois, demande avant",
        "以后都用中文回答",
        "下次先问我再删除文件",
    ],
)
def test_always_never_and_from_now_on_say_it_most_clearly(text: str) -> None:
    assert 2 == stated(text).outright


@pytest.mark.parametrize(
    "text",
    [
        "I prefer early returns",
        "we don't use lodash here",
        "please no comments in the code",
        "I told you already: no mocks",
        "don't add packages without asking me",
        "prefiero las respuestas cortas en este proyecto",
        "je préfère des réponses courtes",
        "bitte keine englischen Namen",
    ],
)
def test_what_somebody_prefers_or_forbids_says_it_less_clearly(text: str) -> None:
    assert 1 == stated(text).outright


@pytest.mark.parametrize(
    "text",
    [
        "rename the column",
        "the total is wrong",
        "should we always use tabs?",  # a question
        "以后都用中文吗？",
        "the list must always be sorted by date",  # how a product behaves
        "my colleague says we should always use tabs",  # somebody else's
        "for now always skip the slow tests",  # for the moment
        "Then I want you to make the changelog shorter",  # a step of today
        "Luego quiero que revises la tabla",
        "Ensuite je veux que tu relises le tableau",
        "maybe we should always use UTC",  # not meant yet
        "haha we never do that",  # a joke
    ],
)
def test_other_words_or_words_against_it_do_not_say_it(text: str) -> None:
    assert 0 == stated(text).outright


@pytest.mark.parametrize(
    "text",
    [
        "always blame the intern lol",
        "we never sleep hahaha",
        "from now on only coffee ;)",
        "never again 😂",
        "siempre igual jaja",
        "以后都这样吧哈哈",
        '"always use tabs in this project" is what the guide says',
        "„ab jetzt nehmen wir immer Tabs“ stand da",
        "« on utilise toujours des tabulations » dans le guide",
        "the reviewer said we must never use lambdas",
    ],
)
def test_jokes_quotations_and_reports_are_nobodys(text: str) -> None:
    found = stated(text)

    assert found.is_nobodys
    assert 0 == found.outright
    assert -9.0 == score(text)


@pytest.mark.parametrize(
    "text",
    [
        'always name the branch "fix/" and the ticket',
        'we say "basket", never "cart", in all texts of the shop',
        "call it the ;Done list",
    ],
)
def test_a_quoted_word_or_two_leave_a_sentence_the_persons_own(text: str) -> None:
    assert not stated(text).is_nobodys


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I prefer early returns over nested ifs", "preference"),
        ("stop adding comments again", "preference"),
        ("In this repo we use conventional commits", "rule"),
        ("never push to main", "rule"),
        ("we go with sqlite because nobody wants to run a server", "decision"),
        ("that is a dead end: the gateway buffers whatever we send", "failure"),
        ("ich bevorzuge kurze Antworten", "preference"),
        ("wir nehmen WebP, weil die Bilder kleiner sind", "decision"),
        ("prefiero las respuestas cortas en este proyecto", "preference"),
        ("nos quedamos con Redis porque ya lo tenemos", "decision"),
        ("je préfère des réponses courtes", "preference"),
        ("on garde Postgres parce que l'équipe le connaît", "decision"),
        ("我们决定用 Redis,因为写入太频繁", "decision"),
        ("rename the column", None),
    ],
)
def test_cues_tell_what_a_sentence_is(text: str, kind: Kind | None) -> None:
    assert kind == stated(text).kind


@pytest.mark.parametrize(
    ("lasting", "moment"),
    [
        ("we never commit to main directly here", "commit it to main"),
        ("I prefer early returns over nested ifs", "the nested ifs are broken"),
        ("wir verwenden hier immer uv statt pip", "installiere das mit uv"),
        ("en este proyecto usamos siempre tabuladores", "la tabla sale vacía"),
        ("dans ce projet on n'utilise pas lodash", "corrige la page d'accueil"),
        ("以后都用中文回答我", "这个接口超时"),
    ],
)
def test_what_is_stated_scores_higher_than_what_is_not(lasting: str, moment: str) -> None:
    assert score(lasting) > score(moment)


def test_the_same_sentence_has_the_same_features() -> None:
    assert stated("We don’t use 2 spaces").features() == stated("We don't use 4 spaces").features()
