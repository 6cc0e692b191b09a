"""Plays recorded games in a terminal: step, scrub, play; without a terminal it prints every state."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

CLEAR = "\x1b[H\x1b[2J"
HELP = "right/n next   left/p back   space play   g start   G end   q quit"
KEYS = {
    "\x1b[C": "next",
    "n": "next",
    "\x1b[D": "back",
    "p": "back",
    " ": "play",
    "g": "start",
    "G": "end",
    "q": "quit",
}
KEYS |= {"\x1b[H": "start", "\x1b[F": "end", "\x03": "quit", "\x04": "quit", "": "quit"}


class Scrubber:
    """The position in a game of so many states, moved by words; it knows nothing of terminals."""

    def __init__(self, count: int) -> None:
        self.at, self.last, self.playing = 0, count - 1, False

    def take(self, word: str) -> bool:
        """Move by a word of `KEYS`; False ends the show."""
        if word == "quit":
            return False
        if word == "play":
            self.playing = not self.playing
            if self.playing and self.at == self.last:
                self.at = 0
            return True
        self.playing = False
        moves = {"next": self.at + 1, "back": self.at - 1, "start": 0, "end": self.last}
        self.at = min(max(moves.get(word, self.at), 0), self.last)
        return True

    def tick(self) -> None:
        """The time of one state has passed while it plays."""
        if self.playing:
            self.at = min(self.at + 1, self.last)
            self.playing = self.at < self.last


def show_states(states: Sequence[str], *, title: str, delay_s: float, out: TextIO | None = None) -> None:
    """Show states one by one under the user's keys.

    Where standard input or output is no terminal, all are printed, one after the other.

    Args:
      states: each of several lines. out: standard output by default. delay_s: between two states while it plays.
    """
    out = sys.stdout if out is None else out
    if not (sys.stdin.isatty() and out.isatty()):
        for number, state in enumerate(states):
            out.write(f"{title}, step {number} of {len(states) - 1}\n{state}\n\n")
        return
    scrubber = Scrubber(len(states))
    with raw_keys() as read_key:
        while True:
            out.write(f"{CLEAR}{title}\nstep {scrubber.at} of {scrubber.last}   {HELP}\n\n{states[scrubber.at]}\n")
            out.flush()
            key = read_key(delay_s if scrubber.playing else None)
            if key is None:
                scrubber.tick()
            elif not scrubber.take(KEYS.get(key, "")):
                return


class _KeyReader:
    """Reads single keys of standard input."""

    def __call__(self, timeout_s: float | None) -> str | None:
        """The next key; None where none came in time, "" where the input has ended."""
        ready, _, _ = select.select([sys.stdin], [], [], timeout_s)
        if not ready:
            return None
        key = sys.stdin.read(1)
        while key.startswith("\x1b") and len(key) < 3 and select.select([sys.stdin], [], [], 0.02)[0]:
            key += sys.stdin.read(1)
        return key


@contextlib.contextmanager
def raw_keys() -> Iterator[_KeyReader]:
    """Single keys without echo, until the context ends; the terminal is then as it was."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield _KeyReader()
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
