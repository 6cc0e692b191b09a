"""Closes the games of a factory whose construction failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator


@contextlib.contextmanager
def closed_on_error(games: Iterable[object]) -> Iterator[None]:
    """If the block raises, close every one of `games` that can be closed and raise the block's error again.

    games: read when the error occurs, so a list may still grow inside the block.
    """
    try:
        yield
    except BaseException:
        for game in games:
            close = getattr(game, "close", None)
            if callable(close):
                with contextlib.suppress(Exception):  # code of others: the error that led here says more
                    close()
        raise
