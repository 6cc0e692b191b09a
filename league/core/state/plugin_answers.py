"""Checks of what code from outside raises or returns: a mistake is one sentence at the call that made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from league.envs.text.number_text import number_text

T = TypeVar("T")
SUM_ROUNDING = 1e-6
"""Rounding by which the probabilities of a matchmaker or a mixture may miss a sum of 1."""


class PluginFault(ValueError):  # noqa: N818
    """A plug-in raised, or returned what its protocol does not allow; the message names it."""


def is_own(name: str) -> bool:
    """True if the name is of the user's own code and not a registered one."""
    return ":" in name


def called(what: str, name: str, function: Callable[..., T], *arguments: object) -> T:
    """The answer of a plug-in; what a registered one raises is a mistake of ours and goes through."""
    if not is_own(name):
        return function(*arguments)
    try:
        return function(*arguments)
    except Exception as error:  # code of others: whatever it raises is their mistake, not ours
        line = (str(error).splitlines() or [""])[0]
        raise PluginFault(f"the {what} {name!r} raised {type(error).__name__}: {line}") from error


def distribution(what: str, name: str, values: Any, size: int, *, of: str) -> NDArray[np.float64]:
    """float64 [size], probabilities that a plug-in returned. Raises PluginFault where they are none."""
    found = array(what, name, values)
    if found.shape != (size,) or found.dtype.kind not in "fiu":
        raise PluginFault(
            f"the {what} {name!r} returned {shown(values)} of shape {list(found.shape)}; return [{size}] numbers, one "
            f"for each of the {of}"
        )
    result = found.astype(np.float64)
    total = float(result.sum())
    if not np.isfinite(result).all() or (result < 0.0).any() or abs(total - 1.0) > SUM_ROUNDING:
        raise PluginFault(
            f"the {what} {name!r} returned {shown(values)} with the sum {number_text(total, 6)}; probabilities are "
            "finite, not negative and sum to 1"
        )
    return result


def array(what: str, name: str, values: Any) -> NDArray[Any]:
    """A plug-in's answer as an array. Raises PluginFault if it is none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise PluginFault(f"the {what} {name!r} returned {shown(values)}, which is no array") from error


def shown(value: object) -> str:
    """A value in at most 60 characters, for a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
