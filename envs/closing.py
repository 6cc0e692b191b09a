"""Closes the games of a factory that is given up because something raised."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator


@contextlib.contextmanager
def closed_on_error(games: Iterable[object]) -> Iterator[None]:
    """Close every one of `games` that can be closed when the block raises; the block's error goes on.

    games: read when the error comes, so a list may still grow inside the block.
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
