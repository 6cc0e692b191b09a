"""Who copies whom in a population that tunes itself.

Shape letter: C candidates, the player among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import win_probability
from league.core.state.plugin_answers import PluginFault, called, is_own, shown
from league.core.state.population_config import PbtConfig
from league.core.state.registry import PBT_SELECTIONS, load


@dataclass(frozen=True)
class SelectionTrial:
    """What a tuner judges. Every candidate is measured, past its burn-in and has a restart state.

    Fields:
      names: [C] ids. player: place of the one that may copy another.
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
    """The player is to go on from the donor. donor: its place; evidence: one clause for the journal."""

    donor: int
    evidence: str


class Selection(Protocol):
    """Judges a trial of at least two candidates; None: the player stays as it is."""

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator, /) -> Copy | None: ...


def selection_of(config: PbtConfig) -> Selection:
    """The tuner that the settings name.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Selection, load(PBT_SELECTIONS, config.selection, what="selection"))


def truncation(trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
    """A player of the worst quantile copies one of the best, drawn evenly.

    Source: Jaderberg et al. 2017, PBT, truncation selection.
    """
    size = len(trial.names)
    num_moved = min(max(1, int(trial.config.quantile * size)), size // 2)
    order = np.argsort(trial.score, kind="stable")
    rank = int(np.flatnonzero(order == trial.player)[0])
    donor = int(rng.choice(order[size - num_moved :]))
    if rank >= num_moved or trial.score[donor] <= trial.score[trial.player]:
        return None
    return Copy(donor, f"rank {rank + 1} from below of {size}")


def elo_gap(trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
    """A player copies another one, drawn evenly, that it beats with less than `copy_below`.

    Without opponents the gap is counted in standard deviations of the two scores.

    Source: Jaderberg et al. 2019, Quake III, PBT; Sun et al. 2020, TLeague, PBT by Elo.
    """
    donor = _another(trial, rng)
    difference = trial.score[trial.player] - trial.score[donor]
    if not trial.is_rating:
        difference = difference / max(_deviation(trial, donor), 1e-12)
    chance = float(win_probability(np.array(difference)))
    return Copy(donor, f"expected to win {chance:.2f} of the games") if chance < trial.config.copy_below else None


def tournament(trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
    """A player copies another one, drawn evenly, that is better with at least the chance `confidence`.

    Source: Jaderberg et al. 2017, PBT, binary tournament and t-test selection.
    """
    donor = _another(trial, rng)
    difference = trial.score[donor] - trial.score[trial.player]
    deviations = difference / max(_deviation(trial, donor), 1e-12)
    # The logistic stands in for the normal distribution: 1.702 makes the two differ by less than 0.01 everywhere.
    chance = float(win_probability(np.array(1.702 * deviations)))
    return Copy(donor, f"worse with chance {chance:.2f}") if chance >= trial.config.confidence else None


def _another(trial: SelectionTrial, rng: np.random.Generator) -> int:
    others = [place for place in range(len(trial.names)) if place != trial.player]
    return others[int(rng.integers(len(others)))]


def _deviation(trial: SelectionTrial, donor: int) -> float:
    return float(np.hypot(trial.deviation[trial.player], trial.deviation[donor]))


def donor_of(trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
    """Whom the tuner of a trial lets the player copy.

    Raises:
      PluginFault: it raised, or that is neither None nor a `Copy` from another candidate.
    """
    name, size = trial.config.selection, len(trial.names)
    answer: Any = called("selection", name, selection_of(trial.config), trial, rng)
    if answer is None or not is_own(name):
        return cast(Copy | None, answer)
    if not isinstance(answer, Copy) or not isinstance(answer.evidence, str):
        raise PluginFault(
            f"the tuner {name!r} returned {shown(answer)}; return None or a league.core.pbt.pbt_selection.Copy"
        )
    place = answer.donor
    if not isinstance(place, int | np.integer) or not 0 <= place < size or place == trial.player:
        raise PluginFault(f"the tuner {name!r} chose the donor {shown(place)}; give another place in [0, {size})")
    return Copy(int(place), answer.evidence)
