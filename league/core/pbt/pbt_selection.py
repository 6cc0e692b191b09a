"""PBT selection: decides which players of a population copy which others.

Shape letter: C candidates, the player among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import win_probability
from league.core.state.built_ins import PBT_SELECTIONS, make
from league.core.state.plugin_answers import PluginFault, called, is_own, shown
from league.core.state.population_config import PbtConfig, require


@dataclass(frozen=True)
class SelectionTrial:
    """The input of a PBT selection. Every candidate is measured, past its burn-in and has a restart state.

    Fields:
      names: [C] ids. player: index of the one that may copy another.
      score: float64 [C], strength, more is better: rating in logits, or the mean return where there are no opponents.
      deviation: float64 [C], standard deviation of each score.
      is_rating: whether a difference of scores says who wins.
    """

    names: tuple[str, ...]
    player: int
    score: NDArray[np.float64]
    deviation: NDArray[np.float64]
    is_rating: bool
    config: PbtConfig


@dataclass(frozen=True)
class Copy:
    """The player is to continue from the donor, or from a mean of several candidates.

    Fields:
      donor: its index; restart state, hyperparameters and ancestry are the donor's.
      evidence: one clause for the journal.
      weights: [C] of each candidate in the mean of weights, at least 0, with sum 1 and a part of the donor; empty for
        the donor's own weights.
    """

    donor: int
    evidence: str
    weights: tuple[float, ...] = ()


class PbtSelection(Protocol):
    """Judges a trial of at least two candidates; None: the player stays as it is. A dataclass of its options."""

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator, /) -> Copy | None: ...


def selection_of(config: PbtConfig) -> PbtSelection:
    """The PBT selection that the settings name.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(PbtSelection, make(PBT_SELECTIONS, config.selection, what="selection"))


@dataclass(frozen=True)
class Truncation:
    """A player of the worst quantile copies one of the best, drawn evenly.

    Fields:
      quantile: part of the population that is the best, and that is the worst.
    Source: Jaderberg et al. 2017, PBT, truncation selection.
    """

    quantile: float = 0.25

    def __post_init__(self) -> None:
        require(0.0 < self.quantile <= 0.5, f"quantile must lie in (0, 0.5], not {self.quantile}")

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        """The donor for a player of the worst quantile."""
        size = len(trial.names)
        num_moved = min(max(1, int(self.quantile * size)), size // 2)
        order = np.argsort(trial.score, kind="stable")
        rank = int(np.flatnonzero(order == trial.player)[0])
        donor = int(rng.choice(order[size - num_moved :]))
        if rank >= num_moved or trial.score[donor] <= trial.score[trial.player]:
            return None
        return Copy(donor, f"rank {rank + 1} from below of {size}")


@dataclass(frozen=True)
class EloGap:
    """A player copies another one, drawn evenly, that it beats too rarely.

    Without opponents the gap is counted in standard deviations of the two scores.

    Fields:
      copy_below: chance to beat the other one below which it is copied.
    Source: Jaderberg et al. 2019, Quake III, PBT; Sun et al. 2020, TLeague, PBT by Elo.
    """

    copy_below: float = 0.3

    def __post_init__(self) -> None:
        require(0.0 < self.copy_below < 0.5, f"copy_below must lie between 0 and 0.5, not {self.copy_below}")

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        """The other one, where the player beats it with less than `copy_below`."""
        donor = _another(trial, rng)
        difference = trial.score[trial.player] - trial.score[donor]
        if not trial.is_rating:
            difference = difference / max(_deviation(trial, donor), 1e-12)
        chance = float(win_probability(np.array(difference)))
        return Copy(donor, f"expected to win {chance:.2f} of the games") if chance < self.copy_below else None


@dataclass(frozen=True)
class BinaryTournament:
    """A player copies another one, drawn evenly, that is very probably better.

    Fields:
      confidence: chance that the other one is better from which on it is copied.
    Source: Jaderberg et al. 2017, PBT, binary tournament and t-test selection.
    """

    confidence: float = 0.8

    def __post_init__(self) -> None:
        require(0.5 <= self.confidence < 1.0, f"confidence must lie in [0.5, 1), not {self.confidence}")

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        """The other one, where it is better with at least the chance `confidence`."""
        donor = _another(trial, rng)
        difference = trial.score[donor] - trial.score[trial.player]
        deviations = difference / max(_deviation(trial, donor), 1e-12)
        # The logistic stands in for the normal distribution: 1.702 makes the two differ by less than 0.01 everywhere.
        chance = float(win_probability(np.array(1.702 * deviations)))
        return Copy(donor, f"worse with chance {chance:.2f}") if chance >= self.confidence else None


@dataclass(frozen=True)
class WeightedMean:
    """A player of the worse part of the population continues from the weighted mean of the best players' weights.

    This makes an evolution strategy of players that learn by gradients meanwhile: the players are its offspring,
    learning is their mutation, and the mean recombines them. Weights fall with the logarithm of the rank. The mean of
    networks means something only where they descend from the same one.

    Fields:
      fraction: part of the population whose weights are averaged, at least two players.
    Source: Hansen 2016, The CMA Evolution Strategy: a Tutorial, equation 49, for the weights; Liang et al. 2018, RLlib,
      section 5.2, for the composition, PPO-ES.
    """

    fraction: float = 0.5

    def __post_init__(self) -> None:
        require(0.0 < self.fraction <= 1.0, f"fraction must lie in (0, 1], not {self.fraction}")

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        """The mean for a player that is not among the best, which are better than it."""
        size = len(trial.names)
        best = np.argsort(-trial.score, kind="stable")[: min(max(2, int(self.fraction * size)), size)]
        donor = int(best[0])
        if donor == trial.player or trial.score[donor] <= trial.score[trial.player]:
            return None
        if trial.player in best and size > 2:
            return None
        parts = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
        weights = np.zeros(size)
        weights[best] = parts / parts.sum()
        return Copy(donor, f"mean of the best {len(best)} of {size}", tuple(weights.tolist()))


def _another(trial: SelectionTrial, rng: np.random.Generator) -> int:
    others = [place for place in range(len(trial.names)) if place != trial.player]
    return others[int(rng.integers(len(others)))]


def _deviation(trial: SelectionTrial, donor: int) -> float:
    return float(np.hypot(trial.deviation[trial.player], trial.deviation[donor]))


def donor_of(trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
    """The donor that the PBT selection of a trial lets the player copy.

    Raises:
      PluginFault: it raised, or that is neither None nor a `Copy` from another candidate.
    """
    name, size = trial.config.selection_name, len(trial.names)
    answer: Any = called("selection", name, selection_of(trial.config), trial, rng)
    if answer is None or not is_own(name):
        return cast(Copy | None, answer)
    if not isinstance(answer, Copy) or not isinstance(answer.evidence, str):
        raise PluginFault(
            f"the PBT selection {name!r} returned {shown(answer)}; return None or a league.core.pbt.pbt_selection.Copy"
        )
    place = answer.donor
    if not isinstance(place, int | np.integer) or not 0 <= place < size or place == trial.player:
        raise PluginFault(
            f"the PBT selection {name!r} chose the donor {shown(place)}; give another index in [0, {size})"
        )
    if answer.weights and not _is_mean(answer.weights, place, size):
        raise PluginFault(
            f"the PBT selection {name!r} gave the weights {shown(answer.weights)}; give {size} numbers of at least 0 "
            "with sum 1, more than 0 for the donor, or none"
        )
    return Copy(int(place), answer.evidence, tuple(map(float, answer.weights)))


def _is_mean(weights: Any, donor: int, size: int) -> bool:
    """True for weights of a mean of candidates that the donor has a part in."""
    numbers = np.asarray(weights, np.float64) if isinstance(weights, tuple) and len(weights) == size else np.zeros(0)
    return bool(len(numbers) and numbers.min() >= 0 and abs(numbers.sum() - 1) < 1e-6 and numbers[donor] > 0)
