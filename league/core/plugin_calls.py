"""Calls of matchmakers and gates, with a check of what code from outside returns."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import Trial, Verdict, gate_of
from league.core.matchmaking.roles import MatchmakingView, matchmaker_of
from league.core.state.events import Evidence
from league.core.state.plugin_answers import PluginFault, array, called, distribution, is_own, shown


def opponents(view: MatchmakingView, rng: np.random.Generator) -> NDArray[np.float64]:
    """float64 [P], the probabilities that the matchmaker of a view gives each policy.

    Raises:
      PluginFault: it raised, or they are not [P] numbers that are not negative and sum to 1.
    """
    name = view.config.matchmaker_name
    probabilities = called("matchmaker", name, matchmaker_of(view.config).opponents, view, rng)
    if not is_own(name):
        return probabilities
    return distribution("matchmaker", name, probabilities, len(view.population), of="policies of the population")


def gate_opponents(view: MatchmakingView) -> NDArray[np.int64]:
    """int64 [C], whom the matchmaker of a view wants to be beaten before a snapshot.

    Raises:
      PluginFault: it raised, or they are no numbers of policies.
    """
    name, size = view.config.matchmaker_name, len(view.population)
    answer = called("matchmaker", name, matchmaker_of(view.config).gate_opponents, view)
    if not is_own(name):
        return answer
    found = array("matchmaker", name, answer)
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= size)):
        raise PluginFault(
            f"the matchmaker {name!r} names the opponents {shown(answer)}; give numbers of policies, "
            f"int64 in [0, {size})"
        )
    return found.astype(np.int64)


def verdict(trial: Trial) -> Verdict | None:
    """The decision of a trial's gate.

    Raises:
      PluginFault: it raised, or that is neither None nor a `Verdict`.
    """
    name = trial.config.test_name
    answer: Any = called("gate", name, gate_of(trial.config), trial)
    if answer is None or not is_own(name):
        return cast(Verdict | None, answer)
    if not isinstance(answer, Verdict) or not isinstance(answer.reason, str):
        raise PluginFault(
            f"the gate {name!r} returned {shown(answer)}; return None or a league.core.gates.gates.Verdict"
        )
    if not isinstance(answer.evidence, tuple) or not all(isinstance(item, Evidence) for item in answer.evidence):
        raise PluginFault(f"the gate {name!r} gave the evidence {shown(answer.evidence)}; give a tuple of Evidence")
    return answer
