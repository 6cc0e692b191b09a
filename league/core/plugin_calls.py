"""Calls of code from outside, and checks of what it returns: a mistake is one sentence at the call that made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import Trial, Verdict, gate_of
from league.core.matchmaking.roles import View, matchmaker_of
from league.core.metagame.solvers import solver_of
from league.core.pbt.pbt_selection import Copy, TuningTrial, tuner_of
from league.core.state.events import Evidence

T = TypeVar("T")
SHARE_ROUNDING = 1e-6
"""By so much the shares of a matchmaker or a mixture may sum to something else than 1."""


class PluginFault(ValueError):  # noqa: N818
    """A plug-in raised, or returned what its protocol does not allow; the message names it."""


def opponents(view: View, rng: np.random.Generator) -> NDArray[np.float64]:
    """float64 [P], the shares that the matchmaker of a view gives each policy.

    Raises:
      PluginFault: it raised, or they are not [P] numbers that are not negative and sum to 1.
    """
    name = view.settings.matchmaker or view.settings.role
    shares = _called("matchmaker", name, matchmaker_of(view.settings).opponents, view, rng)
    if not _is_own(name):
        return shares
    return _distribution("matchmaker", name, shares, len(view.population), of="policies of the population")


def rivals(view: View) -> NDArray[np.int64]:
    """int64 [C], whom the matchmaker of a view wants to be beaten before a snapshot.

    Raises:
      PluginFault: it raised, or they are no numbers of policies.
    """
    name, size = view.settings.matchmaker or view.settings.role, len(view.population)
    answer = _called("matchmaker", name, matchmaker_of(view.settings).rivals, view)
    if not _is_own(name):
        return answer
    found = _array("matchmaker", name, answer)
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= size)):
        raise PluginFault(
            f"the matchmaker {name!r} names the rivals {_shown(answer)}; give numbers of policies, int64 in [0, {size})"
        )
    return found.astype(np.int64)


def verdict(trial: Trial) -> Verdict | None:
    """What the gate of a trial decides.

    Raises:
      PluginFault: it raised, or that is neither None nor a `Verdict`.
    """
    name = trial.settings.kind
    answer: Any = _called("gate", name, gate_of(trial.settings), trial)
    if answer is None or not _is_own(name):
        return cast(Verdict | None, answer)
    if not isinstance(answer, Verdict) or not isinstance(answer.reason, str):
        raise PluginFault(
            f"the gate {name!r} returned {_shown(answer)}; return None or a league.core.gates.gates.Verdict"
        )
    if not isinstance(answer.evidence, tuple) or not all(isinstance(item, Evidence) for item in answer.evidence):
        raise PluginFault(f"the gate {name!r} gave the evidence {_shown(answer.evidence)}; give a tuple of Evidence")
    return answer


def donor(trial: TuningTrial, rng: np.random.Generator) -> Copy | None:
    """Whom the tuner of a trial lets the player copy.

    Raises:
      PluginFault: it raised, or that is neither None nor a `Copy` from another candidate.
    """
    name, size = trial.settings.tuner, len(trial.names)
    answer: Any = _called("tuner", name, tuner_of(trial.settings), trial, rng)
    if answer is None or not _is_own(name):
        return cast(Copy | None, answer)
    if not isinstance(answer, Copy) or not isinstance(answer.evidence, str):
        raise PluginFault(
            f"the tuner {name!r} returned {_shown(answer)}; return None or a league.core.pbt.pbt_selection.Copy"
        )
    place = answer.donor
    if not isinstance(place, int | np.integer) or not 0 <= place < size or place == trial.player:
        raise PluginFault(f"the tuner {name!r} chose the donor {_shown(place)}; give another place in [0, {size})")
    return Copy(int(place), answer.evidence)


def solved(name: str, win_rates: NDArray[np.float64], *, num_sides: int) -> NDArray[np.float64]:
    """float64 [N], the mixture that a solver finds for win rates float64 [N, N].

    Raises:
      PluginFault: it raised, or they are not [N] weights that are not negative and sum to 1.
    """
    mixture = _called("solver", name, solver_of(name, num_sides=num_sides), win_rates)
    return _distribution("solver", name, mixture, len(win_rates), of="policies") if _is_own(name) else mixture


def _is_own(name: str) -> bool:
    return ":" in name


def _called(what: str, name: str, function: Callable[..., T], *arguments: object) -> T:
    """The answer of a plug-in; what a registered one raises is a mistake of ours and goes through."""
    if not _is_own(name):
        return function(*arguments)
    try:
        return function(*arguments)
    except Exception as error:  # code of others: whatever it raises is their mistake, not ours
        line = (str(error).splitlines() or [""])[0]
        raise PluginFault(f"the {what} {name!r} raised {type(error).__name__}: {line}") from error


def _distribution(what: str, name: str, values: Any, size: int, *, of: str) -> NDArray[np.float64]:
    found = _array(what, name, values)
    if found.shape != (size,) or found.dtype.kind not in "fiu":
        raise PluginFault(
            f"the {what} {name!r} returned {_shown(values)} of shape {list(found.shape)}; return [{size}] numbers, one "
            f"for each of the {of}"
        )
    result = found.astype(np.float64)
    total = float(result.sum())
    if not np.isfinite(result).all() or (result < 0.0).any() or abs(total - 1.0) > SHARE_ROUNDING:
        raise PluginFault(
            f"the {what} {name!r} returned {_shown(values)} with the sum {total:g}; shares are finite, not negative "
            "and sum to 1"
        )
    return result


def _array(what: str, name: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise PluginFault(f"the {what} {name!r} returned {_shown(values)}, which is no array") from error


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
