"""Simpler rules of whom to meet: the newest weights, the past, a window, by quality, by mixture, only the fixed
opponents.

All of them play the share `self_play` against the newest weights of the player itself and the rest against others;
where there are no others yet, everything. Shape letters: P policies of the population, C candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.roles import Matchmaker, MatchmakingView

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

NONE: Numbers = np.zeros(0, dtype=np.int64)


class _Unjudged:
    """No opponent is to be beaten: snapshots are taken by steps alone."""

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """None."""
        return NONE


class SelfPlay(_Unjudged):
    """The newest weights of the player itself."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """All of it self-play."""
        return _with_self_play(view, NONE, np.zeros(0))


class Fictitious(_Unjudged):
    """Every snapshot of the league alike."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Even shares."""
        past = view.population.snapshots()
        return _with_self_play(view, past, np.ones(len(past)))


class Window(_Unjudged):
    """The newest snapshots of the player itself, alike."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Even shares over the last `window`."""
        past = view.population.snapshots_of(view.home)[-view.config.matchmaking.window :]
        return _with_self_play(view, past, np.ones(len(past)))


class Quality(_Unjudged):
    """The player's own snapshots by their quality, which falls when they are beaten.

    Source: Berner et al. 2019, appendix N.
    """

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """A softmax of the qualities."""
        past = view.population.snapshots_of(view.home)
        qualities = np.zeros(len(past)) if view.quality is None else view.quality[past]
        return _with_self_play(view, past, softmax(qualities) if len(past) else qualities)


class MetaNash:
    """The mixture over snapshots that loses least, some of it spread evenly. Source: Lanctot et al. 2017."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The mixture; before the first one every snapshot alike."""
        past = view.population.snapshots()
        weights = np.ones(len(past))
        if view.mixture is not None and view.mixture[past].sum() > 0.0:
            weights = view.mixture[past]
        return _with_self_play(view, past, weights)

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot: a response that beats all of them is done before its time."""
        return view.population.snapshots()


class EvenOdds(_Unjudged):
    """The other learning players by how even the game is; win rates are drawn from their posterior.

    Source: Jaderberg et al. 2019, Quake III, matchmaking by a normal density around even odds.
    """

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Normal density of the win rate around a half; the past of the player where it is alone."""
        others = view.population.players()
        others = others[others != view.home]
        if not len(others):
            others = view.population.snapshots_of(view.home)
        distance = (view.posterior.take(others).sample(rng) - 0.5) / view.config.matchmaking.odds_width
        return _with_self_play(view, others, np.exp(-0.5 * distance**2) + MIN_DENSITY)


class FixedOpponents(_Unjudged):
    """Nobody but the player's fixed_opponents: a best response to policies that do not learn."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The fixed opponents by their shares, whatever these sum to; itself where it has none."""
        result = np.zeros(len(view.population))
        if view.fixed_opponents is None or view.fixed_opponents.sum() <= 0.0:
            result[view.home] = 1.0
            return result
        probabilities: Array = view.fixed_opponents / view.fixed_opponents.sum()
        return probabilities


MIN_DENSITY = 1e-6
"""Keeps the weights of opponents that are all very uneven from vanishing together."""

SELF_PLAY: Matchmaker = SelfPlay()
FICTITIOUS: Matchmaker = Fictitious()
WINDOW: Matchmaker = Window()
QUALITY: Matchmaker = Quality()
META_NASH: Matchmaker = MetaNash()
EVEN_ODDS: Matchmaker = EvenOdds()
FIXED_OPPONENTS: Matchmaker = FixedOpponents()


def softmax(scores: Array) -> Array:
    """float64 [C], sums to 1; empty for no score."""
    weights: Array = np.exp(scores - scores.max(initial=-np.inf))
    probabilities: Array = weights / weights.sum()
    return probabilities


def _with_self_play(view: MatchmakingView, others: Numbers, weights: Array) -> Array:
    """float64 [P], the self-play share for the player, the rest over `others` by weight."""
    result = np.zeros(len(view.population))
    probability = view.config.matchmaking.self_play if len(others) else 1.0
    if probability < 1.0:
        result[others] = (1.0 - probability) * weights / weights.sum()
    result[view.home] += probability
    return result
