"""Token estimates: what each kind of item counts for, and what media and encrypted text cost instead."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import media, tokens
from commonplace.context.history import History
from commonplace.protocol import items
from ledgers import Json, assistant, function_call, function_output, user
from pictures import gif, jpeg, png, url, wav, webp_extended, webp_lossless, webp_lossy

EVENT: Json = {"type": "function_call_output", "name": "event", "output": "x"}


def compact(item: Json) -> bytes:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()


def bytes_of(item: Json) -> int:
    raw = compact(item)
    return tokens.item_bytes(raw, items.view(raw))


def with_part(part: Json) -> list[Json]:
    """The part in each place where media can stand."""
    return [
        {"type": "message", "role": "user", "content": [part]},
        function_output("c", [part]),
        {"type": "custom_tool_call_output", "call_id": "c", "output": [part]},
    ]


# --- Items.


@pytest.mark.parametrize(
    "item",
    [
        user("hello"),
        user("häß€😀"),
        assistant("x" * 1001),
        function_call("c", arguments='{"cmd": "ls"}'),
        function_output("c", "output"),
        EVENT,
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": None},
        {"type": "context_compaction"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "image_generation_call", "status": "completed", "result": "A" * 99},
        {"type": "additional_tools", "role": "developer", "tools": [{"name": "t"}]},
        user("<data:image/png;base64,AAAA>"),
    ],
    ids=lambda item: f"{item['type']} {item.get('role', '')}",
)
def test_an_item_counts_the_bytes_of_its_compact_json(item: Json) -> None:
    raw = compact(item)

    assert len(raw) == bytes_of(item)
    assert -(-len(raw) // 4) == tokens.item_tokens(raw, items.view(raw))


@pytest.mark.parametrize(
    "raw",
    [
        compact(user("häß/x")),
        json.dumps(user("häß/x")).encode(),
        json.dumps(user("häß/x"), indent=4).encode(),
        compact(user("häß/x")).replace(b"/", b"\\/"),
        compact({**user("häß/x"), "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}),
        compact({**user("häß/x"), "id": None}),
    ],
    ids=["compact", "escaped", "indented", "slashes", "bookkeeping", "empty id"],
)
def test_an_item_counts_the_same_however_it_was_written(raw: bytes) -> None:
    assert len(compact(user("häß/x"))) == tokens.item_bytes(raw, items.view(raw))


def test_an_item_too_deep_to_walk_counts_its_bytes() -> None:
    raw = b'{"type":"web_search_call","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"

    assert len(raw) == tokens.item_bytes(raw, items.WebSearchCall())


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (866, 0), (867, 0), (868, 1), (2_000, 850), (40_000, 29_350)])
@pytest.mark.parametrize("kind", ["reasoning", "compaction", "compaction_summary", "context_compaction"])
def test_reasoning_and_summaries_that_only_the_server_reads_count_what_they_hide(
    kind: str, length: int, expected: int
) -> None:
    item: Json = {"type": kind, "encrypted_content": "x" * length}
    if kind == "reasoning":
        item["summary"] = [{"type": "summary_text", "text": "long" * 100}]
    if not length and kind in ("reasoning", "context_compaction"):
        expected = len(compact(item))

    assert expected == bytes_of(item)


@pytest.mark.parametrize(("length", "hidden"), [(0, 0), (1, 1), (16, 9), (17, 10), (1_000, 563)])
def test_encrypted_parts_count_nine_sixteenths(length: int, hidden: int) -> None:
    part = {"type": "encrypted_content", "encrypted_content": "x" * length}
    mail: Json = {"type": "agent_message", "author": "/a", "recipient": "/b", "content": [part]}

    for item in (mail, *with_part(part)[1:]):
        assert len(compact(item)) - length + hidden == bytes_of(item)


@pytest.mark.parametrize(("count", "expected"), [(-5, 0), (0, 0), (1, 1), (4, 1), (5, 2), (7_373, 1_844)])
def test_bytes_are_tokens_by_four_rounded_up_and_never_less_than_none(count: int, expected: int) -> None:
    assert expected == tokens.tokens_of_bytes(count)


# --- Pictures.


@pytest.mark.parametrize(
    ("picture", "detail", "price"),
    [
        (png(64, 64), None, 7_373),
        (png(64, 64), "auto", 7_373),
        (png(64, 64), "low", 7_373),
        (png(64, 64), "high", 7_373),
        (png(64, 64), "original", 4 * 4),
        (png(65, 64), "original", 6 * 4),
        (png(1, 1), "original", 4),
        (png(3_200, 3_200), "original", 40_000),
        (png(3_232, 3_200), "original", 40_000),
        (png(100_000, 100_000), "original", 40_000),
        (b"not a picture", "original", 7_373),
        (png(0, 10), "original", 7_373),
    ],
)
def test_a_picture_has_a_price_or_costs_its_patches(picture: bytes, detail: str | None, price: int) -> None:
    part: Json = {"type": "input_image", "image_url": url(picture)}
    if detail:
        part["detail"] = detail
    payload = len(base64.b64encode(picture))

    for item in with_part(part):
        assert len(compact(item)) - payload + price == bytes_of(item)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "image_url": "https://example.org/picture.png"},
        {"type": "input_image", "image_url": url(png(9, 9), "text/plain")},
        {"type": "input_image", "image_url": url(png(9, 9), "audio/wav")},
        {"type": "input_image", "image_url": url(png(9, 9), parameters="")},
        {"type": "input_image", "image_url": url(png(9, 9), parameters=";base65")},
        {"type": "input_image", "image_url": url(png(9, 9), "")},
        {"type": "input_image", "image_url": "data:image/png;base64"},
        {"type": "input_image", "image_url": ""},
        {"type": "input_audio", "audio_url": "https://example.org/a.wav"},
        {"type": "input_audio", "audio_url": url(wav(16_000), "image/png")},
        {"type": "input_audio", "audio_url": url(wav(16_000), "audio/wav", "")},
        {"type": "input_audio", "audio_url": url(b"ID3 and so on", "audio/mpeg")},
        {"type": "input_text", "text": url(png(9, 9))},
    ],
)
def test_any_other_url_counts_its_letters(part: Json) -> None:
    for item in with_part(part):
        assert len(compact(item)) == bytes_of(item)


@pytest.mark.parametrize(
    "address",
    [
        url(png(64, 64)),
        url(png(64, 64)).replace("data:image/png;base64", "DATA:Image/PNG;BASE64"),
        url(png(64, 64), parameters=";charset=x;base64"),
        url(png(64, 64), parameters="; base64 ;name=y"),
    ],
)
def test_the_header_of_a_data_url_is_read_whatever_its_case_and_parameters(address: str) -> None:
    header, _, payload = address.partition(",")
    item: Json = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": address}]}

    assert payload == media.inline_payload(address, "image")
    assert len(compact(item)) - len(address) + len(header) + 1 + 7_373 == bytes_of(item)


def test_each_picture_of_an_item_has_its_own_price() -> None:
    parts = [{"type": "input_image", "image_url": url(png(9, 9, 30_000))}] * 3
    item: Json = {"type": "message", "role": "user", "content": parts}

    assert 3 * 7_373 < bytes_of(item) < 3 * 7_373 + 400


@pytest.mark.parametrize(
    "make", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended], ids=lambda make: make.__name__
)
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (33, 1_023), (4_000, 16_000)])
def test_the_size_of_a_picture_stands_in_its_header(make: Any, size: tuple[int, int]) -> None:
    payload = base64.b64encode(make(*size)).decode()

    assert size == media.image_size(payload)
    assert size == media.image_size(payload.rstrip("="))
    assert size == media.image_size("\n".join(payload[at : at + 20] for at in range(0, len(payload), 20)))


@pytest.mark.parametrize("before", [0, 1, 2, 3, 1_000, 60_000])
def test_a_jpeg_tells_its_size_behind_a_preview(before: int) -> None:
    assert (320, 200) == media.image_size(base64.b64encode(jpeg(320, 200, before)).decode())


def test_only_the_header_is_decoded() -> None:
    """What follows is not base64 at all, and nobody minds."""
    payload = base64.b64encode(png(320, 200)[:60]).decode() + "!" * 1_000

    assert (320, 200) == media.image_size(payload)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a\x01",
        b"\xff\xd8",
        b"\xff\xd8\xff\xda" + bytes(50),
        b"\xff\xd8\xff\xe1\x00\x04ab" + b"garbage" * 5,
        b"\xff\xd8" + b"\xff" * 50_000,
        b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(40),
        b"RIFF\x00\x00\x00\x00WEBPVP9 " + bytes(40),
        b"BM" + bytes(60),
    ],
)
def test_a_picture_that_cannot_be_read_has_no_size(data: bytes) -> None:
    assert media.image_size(base64.b64encode(data).decode()) is None


@pytest.mark.parametrize("payload", ["!!!!", "A", "häß€", "====", "AAAA=AAA"])
def test_what_is_not_base64_has_neither_size_nor_duration(payload: str) -> None:
    assert media.image_size(payload) is None
    assert media.audio_seconds(payload) is None


@given(st.binary(max_size=200), st.sampled_from([b"", b"\xff\xd8", b"RIFF....WAVE", b"RIFF....WEBPVP8L", b"GIF89a"]))
def test_no_bytes_make_the_headers_fail(data: bytes, start: bytes) -> None:
    payload = base64.b64encode(start + data).decode()

    media.image_size(payload)
    media.audio_seconds(payload)


# --- Recordings.


@pytest.mark.parametrize(
    ("recording", "seconds"),
    [
        (wav(16_000), 1.0),
        (wav(8_000), 0.5),
        (wav(0), 0.0),
        (wav(16_000, noted=0), 1.0),
        (wav(16_000, noted=0xFFFFFFFF), 1.0),
        (wav(16_000, noted=999_999), 1.0),
        (wav(16_000, noted=8_000), 0.5),
        (wav(16_000, before=b"LIST\x03\x00\x00\x00abc\x00"), 1.0),
        (wav(16_000, rate=0), None),
        (b"RIFF....WAVEdata" + bytes(30), None),
        (b"RIFF....WAVE", None),
        (b"ID3", None),
    ],
)
def test_a_wav_recording_tells_how_long_it_plays(recording: bytes, seconds: float | None) -> None:
    assert seconds == media.audio_seconds(base64.b64encode(recording).decode())


@pytest.mark.parametrize(("length", "cost"), [(16_000, 10), (16_001, 11), (160_000, 100), (1, 1)])
def test_a_recording_costs_ten_tokens_a_second(length: int, cost: int) -> None:
    address = url(wav(length), "audio/wav")
    payload = address.partition(",")[2]

    assert cost == tokens.audio_tokens(address)
    for item in with_part({"type": "input_audio", "audio_url": address}):
        assert len(compact(item)) - len(payload) + 4 * cost == bytes_of(item)


@pytest.mark.parametrize("address", ["https://example.org/a.wav", url(b"ID3 and so on", "audio/mpeg"), ""])
def test_a_recording_of_unknown_length_costs_its_url(address: str) -> None:
    assert -(-len(address) // 4) == tokens.audio_tokens(address)


# --- The whole.


def test_the_estimate_of_a_history_is_that_of_its_items_and_the_instructions() -> None:
    told = [user("one"), assistant("two"), function_call("c"), function_output("c", "x" * 100_000)]
    history = History()
    for item in told:
        history.record(compact(item))

    parts = [tokens.item_tokens(entry.raw, entry.view) for entry in history.entries]

    assert sum(parts) == history.estimate()
    assert sum(parts) + 3 == history.estimate("x" * 9)


@given(st.lists(st.text(max_size=40)), st.lists(st.integers(0, 5), max_size=5))
def test_an_estimate_of_the_whole_is_the_sum_of_the_parts_whenever_it_is_asked_for(
    texts: list[str], asked: list[int]
) -> None:
    history = History()
    for index, text in enumerate(texts):
        if index in asked:
            history.estimate()
        history.record(msgspec.json.encode(user(text)))

    assert sum(tokens.item_tokens(entry.raw, entry.view) for entry in history.entries) == history.estimate()


def test_an_item_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    real = tokens.item_tokens

    def counted(raw: bytes, view: items.View) -> int:
        asked.append(raw)
        return real(raw, view)

    monkeypatch.setattr(tokens, "item_tokens", counted)
    history = History()
    said = [user(f"question {number}") for number in range(20)]
    for item in random.Random(1).sample(said, len(said)):
        history.record(compact(item))
        history.estimate()
        history.used()
    history.copy().estimate()
    history.drop_last_user_turns(5)
    history.estimate()

    assert 20 == len(asked) == len(set(asked))
