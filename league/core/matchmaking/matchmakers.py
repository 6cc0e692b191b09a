"""Simpler rules of whom to meet: the newest weights, the past, a window, by quality, by mixture, only the fixed
opponents.

Those that have a share `self_play` play it against the newest weights of the player itself and the rest against
others; where there are no others yet, everything. Shape letters: P policies of the population, C candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.roles import MatchmakingView
from league.core.state.population_config import require

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

NONE: Numbers = np.zeros(0, dtype=np.int64)


class _Unjudged:
    """No opponent is to be beaten: snapshots are taken by steps alone."""

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """None."""
        return NONE


@dataclass(frozen=True)
class _SelfPlayAndOthers:
    """Options of matchmakers that play a share against the player itself. self_play: that share."""

    self_play: float = 0.35

    def __post_init__(self) -> None:
        require(0.0 <= self.self_play <= 1.0, f"self_play must lie in [0, 1], not {self.self_play}")

    def _with_self_play(self, view: MatchmakingView, others: Numbers, weights: Array) -> Array:
        """float64 [P], the self-play probability for the player, the rest over `others` by weight."""
        result = np.zeros(len(view.population))
        probability = self.self_play if len(others) else 1.0
        if probability < 1.0:
            result[others] = (1.0 - probability) * weights / weights.sum()
        result[view.home] += probability
        return result


@dataclass(frozen=True)
class SelfPlay(_Unjudged):
    """The newest weights of the player itself."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """All of it self-play."""
        result = np.zeros(len(view.population))
        result[view.home] = 1.0
        return result


@dataclass(frozen=True)
class Fictitious(_SelfPlayAndOthers, _Unjudged):
    """Every snapshot of the league alike.

    Fields:
      self_play: share of the games against itself.
    """

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Even probabilities."""
        past = view.population.snapshots()
        return self._with_self_play(view, past, np.ones(len(past)))


@dataclass(frozen=True)
class Window(_SelfPlayAndOthers, _Unjudged):
    """The newest snapshots of the player itself, alike.

    Fields:
      self_play: share of the games against itself.
      window: how many of the newest snapshots are met.
    """

    window: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.window >= 1, f"window must be at least 1, not {self.window}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Even probabilities over the last `window`."""
        past = view.population.snapshots_of(view.home)[-self.window :]
        return self._with_self_play(view, past, np.ones(len(past)))


@dataclass(frozen=True)
class Quality(_SelfPlayAndOthers, _Unjudged):
    """The player's own snapshots by their quality, which falls when they are beaten.

    Fields:
      self_play: share of the games against itself.
      quality_rate: how fast the quality of a beaten snapshot falls (published: 0.01).
    Source: Berner et al. 2019, appendix N.
    """

    quality_rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0.0 <= self.quality_rate <= 1.0, f"quality_rate must lie in [0, 1], not {self.quality_rate}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """A softmax of the qualities."""
        past = view.population.snapshots_of(view.home)
        qualities = np.zeros(len(past)) if view.quality is None else view.quality[past]
        return self._with_self_play(view, past, softmax(qualities) if len(past) else qualities)


@dataclass(frozen=True)
class MetaNash(_SelfPlayAndOthers):
    """The mixture over snapshots that loses least, some of it spread evenly.

    Fields:
      self_play: share of the games against itself.
    Source: Lanctot et al. 2017.
    """

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The mixture; before the first one every snapshot alike."""
        past = view.population.snapshots()
        weights = np.ones(len(past))
        if view.mixture is not None and view.mixture[past].sum() > 0.0:
            weights = view.mixture[past]
        return self._with_self_play(view, past, weights)

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot: a response that beats all of them is done before its time."""
        return view.population.snapshots()


@dataclass(frozen=True)
class EvenOdds(_SelfPlayAndOthers, _Unjudged):
    """The other learning players by how even the game is; win rates are drawn from their posterior.

    Fields:
      self_play: share of the games against itself.
      odds_width: win rates within about this much of a half are preferred.
    Source: Jaderberg et al. 2019, Quake III, matchmaking by a normal density around even odds.
    """

    odds_width: float = 1.0 / 6.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.odds_width > 0.0, f"odds_width must be positive, not {self.odds_width}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Normal density of the win rate around a half; the past of the player where it is alone."""
        others = view.population.players()
        others = others[others != view.home]
        if not len(others):
            others = view.population.snapshots_of(view.home)
        distance = (view.posterior.take(others).sample(rng) - 0.5) / self.odds_width
        return self._with_self_play(view, others, np.exp(-0.5 * distance**2) + MIN_DENSITY)


@dataclass(frozen=True)
class FixedOpponents(_Unjudged):
    """Only the player's fixed opponents: a best response to policies that do not learn."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The fixed opponents by their probabilities, scaled to sum to 1; itself where it has none."""
        result = np.zeros(len(view.population))
        if view.fixed_opponents is None or view.fixed_opponents.sum() <= 0.0:
            result[view.home] = 1.0
            return result
        probabilities: Array = view.fixed_opponents / view.fixed_opponents.sum()
        return probabilities


MIN_DENSITY = 1e-6
"""Keeps the weights of opponents that are all very uneven from vanishing together."""


def softmax(scores: Array) -> Array:
    """float64 [C], sums to 1; empty for no score."""
    weights: Array = np.exp(scores - scores.max(initial=-np.inf))
    probabilities: Array = weights / weights.sum()
    return probabilities
