"""The input of a turn: a person's words and pictures, what their client knows, and the schema of the answer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.agent.tools import image
from commonplace.context.additional import AdditionalContext
from commonplace.errors import BadInput, ToolError
from commonplace.patterns import regex
from commonplace.protocol.fragments import STDIN_PROMPT
from commonplace.protocol.items import PASSTHROUGH

MOST_CHARACTERS: Final = 1_048_576
"""Characters of one input, as in Codex."""
_STDIN_END: Final = regex(r"<\s*+/\s*+stdin", re.IGNORECASE)


class ExternalText(msgspec.Struct, frozen=True, kw_only=True):
    """What another program says: untrusted, and no words of a person."""

    name: str
    namespace: str | None = None
    output: str | list[dict[str, Any]]

    def told(self) -> dict[str, AdditionalContext]:
        """Return it as the model is told of it: its texts, and that something else was left out."""
        parts = [{"type": "input_text", "text": self.output}] if isinstance(self.output, str) else self.output
        texts = [
            str(part.get("text", "")) if part.get("type") == "input_text" else f"[{part.get('type')} is left out]"
            for part in parts
        ]
        key = f"{self.namespace}.{self.name}" if self.namespace else self.name
        return {key: AdditionalContext("\n".join(texts), "untrusted")}


class UserInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one turn."""

    parts: tuple[dict[str, Any], ...] = ()
    """The content items `input_text` and `input_image`, as they are sent."""
    kinds: tuple[str, ...] = ()
    """Whose words each part holds, as `user.text`, where not all are the person's."""
    shown: tuple[dict[str, Any], ...] = ()
    """The parts as a client sent them, in the format of Codex's ledger, where they are not those that are sent."""
    context: Mapping[str, AdditionalContext] = {}
    external: ExternalText | None = None
    """What another program says."""
    schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer."""
    client_id: str | None = None
    """What the client that sends it calls it."""
    piped: str = ""
    """What came on standard input beside a prompt: a program's text, not the person's."""
    from_stdin: bool = False
    """The prompt itself came on standard input, which was no terminal: nobody knows who wrote it."""

    def message(self, item_id: str) -> dict[str, Any]:
        """Return the input as a message item; it says what was piped, and whether the prompt was."""
        item: dict[str, Any] = {"type": "message", "id": item_id, "role": "user", "content": self.content}
        if self.piped or self.from_stdin or self.kinds:
            kinds = self.kinds or [STDIN_PROMPT if self.from_stdin else "user.text" for _ in self.parts]
            item[PASSTHROUGH] = {"content_item_kinds": [*kinds, *(["exec.stdin"] if self.piped else [])]}
        return item

    @property
    def words(self) -> str:
        """What the person said, without what was piped in or comes out of a file."""
        said = zip(self.parts, self.kinds or ("user.text",) * len(self.parts), strict=True)
        return "\n".join(
            part["text"] for part, kind in said if part.get("type") == "input_text" and kind == "user.text"
        )

    @property
    def content(self) -> list[dict[str, Any]]:
        """All content items, as they are sent."""
        if not self.piped:
            return [*self.parts]
        quoted = _STDIN_END.sub("&lt;/stdin", self.piped.rstrip())
        return [*self.parts, {"type": "input_text", "text": f"<stdin>\n{quoted}\n</stdin>"}]


class Input(msgspec.Struct, frozen=True):
    """What is said to a thread: words, pictures, and what the client knows about the moment."""

    text: str = ""
    images: tuple[str | Path, ...] = ()
    """Pictures before the words: paths of files, or `data:` addresses."""
    context: Mapping[str, AdditionalContext | str] = {}
    """What the client knows, by where it comes from. A text stands for one that is `untrusted`: passed on, not said.

    Each input brings the whole map: the model is told what is new in it, and what is left out is forgotten.
    """


def read(given: str | Input | UserInput, schema: Mapping[str, Any] | None = None) -> UserInput:
    """Return the input of a turn.

    Raises:
        BadInput: it is empty or too long, a file is no picture, or a text is no Unicode.
    """
    if isinstance(given, UserInput):
        return given if schema is None else msgspec.structs.replace(given, schema=schema)
    if isinstance(given, str):
        return text(given, schema=schema)
    context = {key: _context(entry) for key, entry in given.context.items()}
    if context and not given.text.strip() and not given.images:  # context alone can begin a turn
        return UserInput(context=context, schema=schema)
    return msgspec.structs.replace(text(given.text, given.images, schema), context=context)


def _context(entry: AdditionalContext | str) -> AdditionalContext:
    return AdditionalContext(entry, "untrusted") if isinstance(entry, str) else entry


def text(
    words: str,
    images: Sequence[str | Path] = (),
    schema: Mapping[str, Any] | None = None,
    piped: str = "",
    *,
    from_stdin: bool = False,
) -> UserInput:
    """Return an input of words and pictures, and of text that a program piped in.

    Raises:
        BadInput: the input is empty or too long, or a file is no picture.
    """
    if (size := len(words) + len(piped)) > MOST_CHARACTERS:
        raise BadInput(f"The input has {size:,} characters.", hint=f"Use at most {MOST_CHARACTERS:,}.", actual=size)
    if not words.strip() and not images:
        raise BadInput("There is nothing to do.", hint="Give a prompt.")
    try:
        f"{words}{piped}".encode()
    except UnicodeEncodeError:
        raise BadInput("The prompt is not valid Unicode.", hint="Send text that can be written as UTF-8.") from None
    pictures = [part for number, path in enumerate(images, 1) for part in _shown(number, path)]
    said = [{"type": "input_text", "text": words}] if words.strip() else []
    return UserInput(
        parts=(*pictures, *said), schema=schema, piped=piped if piped.strip() else "", from_stdin=from_stdin
    )


def _shown(number: int, image: str | Path) -> list[dict[str, Any]]:
    """Return the parts of a picture, which is a file or a `data:` address."""
    if isinstance(image, str) and image.startswith("data:image/"):
        return [{"type": "input_image", "image_url": image, "detail": "high"}]
    return picture(number, Path(image))


def picture(number: int, path: Path) -> list[dict[str, Any]]:
    """Return a picture between texts that name it, so that the model can tell several pictures apart.

    Raises:
        BadInput: the file is no picture.
    """
    try:
        url = image.data_url(path)
    except ToolError as error:
        raise BadInput(
            f"A picture cannot be used: {error.sentence().rstrip('.')}.", hint="Give a PNG, JPEG, GIF or WebP."
        ) from None
    shown = os.fsencode(path.absolute()).decode("utf-8", "replace")
    opening = f'<image name=[Image #{number}] path="{shown}">'
    return [
        {"type": "input_text", "text": opening},
        {"type": "input_image", "image_url": url, "detail": "high"},
        {"type": "input_text", "text": "</image>"},
    ]
