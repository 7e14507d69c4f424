"""The terminal: an input line that stays at the bottom, and printed text above it.

One prompt_toolkit application runs as long as the conversation, so the terminal is in one mode all the time: what is
typed while the agent works is taken, and Ctrl-C is a key, never a signal that hits something half done. What is
finished is printed above the application and never touched again; what still changes is part of the application, which
redraws only the cells that differ.

The terminal is never asked where its cursor is: some do not answer, and a late answer would look like typing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.widgets import SearchToolbar

from commonplace.rollout.private_folders import make_private
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.chat import markdown

_LONGEST_REMEMBERED: Final = 10_000
"""Characters of an input that is kept in the history; what is longer was pasted."""
_ESCAPE_SECONDS: Final = 0.05
"""How long a lone Esc is taken for the beginning of another key."""


class InputListener(Protocol):
    """Receives the input of the person, and says what is drawn above the input line."""

    @property
    def is_asked(self) -> bool:
        """Whether what is typed is an answer."""
        ...

    def say(self, text: str) -> bool:
        """Take what was typed; say whether it was taken."""
        ...

    def stop(self) -> None:
        """Handle Ctrl-C, with nothing typed or while the agent works."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether Ctrl-C stops something."""
        ...

    def escape(self) -> None:
        """Handle Esc, while a question is open."""
        ...

    def live(self, width: int) -> list[str]:
        """Return the lines that still change."""
        ...

    def mark(self) -> str:
        """Return what stands before the line."""
        ...


class Screen:
    """The terminal of one conversation."""

    def __init__(self, history: Path) -> None:
        self._output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
        self._output.enable_cpr = False
        self._buffer = Buffer(multiline=True, history=_history(history))
        self._app: Application[None] | None = None
        self._draft: str | None = None
        self._kind = ""
        self.was_left = True
        """The person left; if not, the terminal went away."""

    @property
    def width(self) -> int:
        """Columns."""
        return self._output.get_size().columns

    async def run(self, person: InputListener) -> None:
        """Take input until the person leaves."""
        source = create_input(sys.stdin)
        app: Application[None] = Application(
            layout=_layout(self, self._buffer, person),
            key_bindings=_keys(self, self._buffer, person),
            input=source,
            output=self._output,
            erase_when_done=True,
        )
        app.ttimeoutlen = _ESCAPE_SECONDS
        self._app = app
        try:
            await app.run_async(set_exception_handler=False)
        except (EOFError, OSError):  # the terminal is gone
            self.was_left = False
        finally:
            self._app = None

    def leave(self, *, was_left: bool = True) -> None:
        """End `run`."""
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self.was_left = was_left
            self._app.exit()

    def draw(self) -> None:
        """Draw what changes anew, soon."""
        if self._app is not None:
            self._app.invalidate()

    def print(self, painted: str, kind: str = "", *, opens: bool = False) -> None:
        """Put lines above the application; an empty one parts them from lines of another kind, and from what opens."""
        gap = "\n" if self._kind and (kind != self._kind or not kind or opens) else ""
        self._kind = kind or " "
        try:
            if self._app is not None and self._app.is_running:
                self._app.renderer.erase()
            self._output.write_raw(f"{gap}{painted}\n")
            self._output.flush()
        except OSError:  # the terminal is gone, and with it whoever looked
            self.leave(was_left=False)
        self.draw()

    def say(self, text: str, style: str = "", kind: str = "note", *, wraps: bool = True, opens: bool = False) -> None:
        """Print words."""
        self.print(markdown.plain(text, self.width, style, wraps=wraps), kind, opens=opens)

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.say(f"! {text}", "yellow")

    def set_aside(self) -> None:
        """Empty the line for an answer; what was typed comes back."""
        if self._draft is None:
            self._draft = self._buffer.text
            self._buffer.reset()

    def put_back(self, *texts: str) -> None:
        """Put what was set aside, and texts that were not taken, into the line again."""
        parts = [*texts, self._draft or "", self._buffer.text if self._draft is None else ""]
        self._draft = None
        text = "\n".join(part for part in parts if part)
        if text != self._buffer.text:
            self._buffer.text = text
            self._buffer.cursor_position = len(text)
        self.draw()

    def live(self, person: InputListener) -> AnyFormattedText:
        """Return what is drawn above the line: its end, where there is no room for all of it."""
        size = self._output.get_size()
        room = max(1, size.rows - min(self._buffer.document.line_count, _most_lines(self)) - 3)
        return ANSI("\n".join(person.live(size.columns)[-room:]))

    @property
    def rows(self) -> int:
        """Lines."""
        return self._output.get_size().rows


def _most_lines(screen: Screen) -> int:
    """Return how high the line to type in may become."""
    return max(1, screen.rows // 3)


def _layout(screen: Screen, buffer: Buffer, person: InputListener) -> Layout:
    search = SearchToolbar()

    def prefix(line: int, wrapped: int) -> AnyFormattedText:
        mark = person.mark()
        return [("bold", mark if line == wrapped == 0 else " " * len(mark))]

    typed = Window(
        BufferControl(buffer, search_buffer_control=search.control),
        height=lambda: Dimension(min=1, max=_most_lines(screen)),
        wrap_lines=True,
        dont_extend_height=True,
        get_line_prefix=prefix,
    )
    above = Window(FormattedTextControl(lambda: screen.live(person)), dont_extend_height=True)
    has_more = Condition(lambda: bool(person.live(screen.width)))
    parts = [Window(height=1), ConditionalContainer(above, has_more), typed, search]
    return Layout(HSplit(parts), focused_element=typed)


def _keys(screen: Screen, buffer: Buffer, person: InputListener) -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(buffer)
    asked = Condition(lambda: person.is_asked)

    def send(event: KeyPressEvent) -> None:
        was_asked = person.is_asked
        if not (buffer.text.strip() or was_asked) or not person.say(buffer.text):
            return
        if not was_asked:
            buffer.append_to_history()
        if not was_asked or person.is_asked:  # after the last answer stands what was typed before the question
            buffer.reset()

    def new_line(event: KeyPressEvent) -> None:
        buffer.insert_text("\n")

    def stop(event: KeyPressEvent) -> None:
        if buffer.text and not person.is_busy:
            buffer.reset()
        else:
            person.stop()

    def leave(event: KeyPressEvent) -> None:
        screen.leave()

    def escape(event: KeyPressEvent) -> None:
        person.escape()

    def pause(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    keys.add("enter", filter=typing)(send)
    keys.add("escape", "enter", filter=typing & ~asked)(new_line)
    keys.add("c-j", filter=typing)(new_line)
    keys.add("c-c", filter=typing)(stop)
    keys.add("<sigint>")(stop)
    keys.add("c-d", filter=typing & Condition(lambda: not buffer.text))(leave)
    keys.add("escape", filter=typing & asked, eager=True)(escape)
    keys.add("c-z")(pause)
    return keys


class _PrivateHistory(FileHistory):
    """The input history in a file that only its owner can read; inputs that cannot be stored are ignored."""

    def store_string(self, string: str) -> None:
        if len(string) <= _LONGEST_REMEMBERED:
            with contextlib.suppress(OSError, UnicodeError):
                super().store_string(string)


def _history(path: Path) -> History:
    try:
        make_private(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    except OSError as error:
        output.warn(f"{path} cannot be used ({error.strerror}); what you type is not kept.")
        return InMemoryHistory()
    return _PrivateHistory(path)
