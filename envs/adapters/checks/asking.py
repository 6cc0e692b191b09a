"""Asks games of others for what they are outside of `reset` and `step`: whatever they raise there is one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from league.envs.protocol import EnvError

T = TypeVar("T")


READ_EARLY = "; it is read before the first reset, so it has to be there once the game is made"


def asked(env_id: str, what: str, question: Callable[[], T], *, advice: str = READ_EARLY) -> T:
    """The answer to a question.

    Args:
      what: the attribute or call, as a user would write it. advice: the end of the message.
    Raises:
      EnvError: the game raised; the message names it, the attribute and the error.
    """
    try:
        return question()
    except EnvError:
        raise
    except Exception as error:  # code of others: whatever it raises is their env's error, not ours
        said = (str(error).splitlines() or [""])[0]
        raise EnvError(f"{env_id}: its {what} raised {type(error).__name__}: {said}{advice}") from error


def unpacked(env_id: str, call: str, returned: Any, parts: str) -> tuple[Any, ...]:
    """The parts of what `reset` or `step` returned.

    Args:
      parts: their names, separated by commas.
    Raises:
      EnvError: it has another number of parts.
    """
    wanted = parts.count(",") + 1
    if isinstance(returned, tuple | list) and len(returned) == wanted:
        return tuple(returned)
    shown = f"{len(returned)} values" if isinstance(returned, tuple | list) else f"a {type(returned).__name__}"
    raise EnvError(f"{env_id}: {call} returned {shown}; it must return {parts}")
