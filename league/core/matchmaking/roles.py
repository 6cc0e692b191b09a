"""Whom a player of each role meets, and whom it must beat before it is frozen.

Shape letters: P policies of the population, C candidates.
Source: Vinyals et al. 2019, methods and the released pseudocode; where the two differ, `MatchmakingConfig` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.pfsp import pfsp
from league.core.state.league_config import PlayerConfig, Weighting
from league.core.state.payoff import Posterior
from league.core.state.population import Population
from league.core.state.registry import MATCHMAKERS, load

MAIN_ROLE = "main_agent"
EXPLOITER_ROLE = "main_exploiter"
MAINS_PER_LEASE = 4
"""Most main agents that one lease considers, so that its cost does not grow with their number."""

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class MatchmakingView:
    """The league as one player sees it.

    Fields:
      home: its number. posterior: its win rate against each of the P policies.
      config: of its group, with the player's own tuned values in their place.
      quality: float64 [P], qualities of its own snapshots; None where none are kept.
      mixture: float64 [P], the mixture over snapshots that is best as a whole; None where none is solved.
      fixed_opponents: float64 [P], shares of the player's games that its fixed opponents take; None where it has none.
    """

    home: int
    population: Population
    posterior: Posterior
    config: PlayerConfig
    quality: Array | None = None
    mixture: Array | None = None
    fixed_opponents: Array | None = None


class Matchmaker(Protocol):
    """Chooses opponents for a player in games with at least two teams. Must not change the view."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """float64 [P], shares of the player's games against each policy, sum 1; its own entry is self-play."""

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """int64 [C], whom the gate demands to be beaten; none: only the timeout takes snapshots."""


class MainAgent:
    """Robust against the whole past: self-play, PFSP over all snapshots, and verification of what it lost."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Shares self_play / pfsp / verification; a share whose candidates are missing becomes self-play."""
        probabilities, past = view.config.matchmaking, view.population.snapshots()
        result = _spread(view, past, probabilities.pfsp, view.config.weighting, rng)
        self_play = probabilities.self_play if len(past) else probabilities.self_play + probabilities.pfsp
        mains = _some_mains(view, rng)
        mains = mains if len(mains) else np.array([view.home])
        for main in mains:
            verified = self._to_verify(view, int(main))
            result += _spread(view, verified, probabilities.verification / len(mains), "squared", rng)
            left = self_play if len(verified) else self_play + probabilities.verification
            result += self._against_main(view, int(main), left / len(mains), rng)
        return result

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()

    def _against_main(self, view: MatchmakingView, main: int, probability: float, rng: np.random.Generator) -> Array:
        """Meet a main agent, or its past as a curriculum where it is another one and too strong."""
        past = view.population.snapshots_of(main)
        beaten = view.posterior.mean[main] > view.config.matchmaking.too_strong_below
        if main != view.home and not beaten and len(past):
            return _spread(view, past, probability, "variance", rng)
        result = np.zeros(len(view.population))
        result[main] = probability
        return result

    def _to_verify(self, view: MatchmakingView, main: int) -> Numbers:
        """Past main exploiters that beat it; else the past of `main` that it forgot; else none."""
        config, mean = view.config.matchmaking, view.posterior.mean
        exploiters = _measured(view, view.population.snapshots(EXPLOITER_ROLE))
        if len(exploiters) and mean[exploiters].min() < config.exploited_below:
            return exploiters
        past = _measured(view, view.population.snapshots_of(main))
        past = past[: monotone_tail_start(mean[past])]
        if len(past) and mean[past].min() < config.forgotten_below:
            return past
        return past[:0]


class MainExploiter:
    """Finds what the present main agents are weak against."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The mains, and their past as a curriculum. Without a main agent: PFSP over all snapshots, then self-play."""
        config = view.config.matchmaking
        mains = _some_mains(view, rng)
        if not len(mains):
            return _pfsp_or(view, np.array([view.home]), rng)
        result = np.zeros(len(view.population))
        for main in mains:
            past = view.population.snapshots_of(int(main))
            measured = view.posterior.games[main] >= config.min_games
            hopeless = measured and view.posterior.mean[main] < config.curriculum_below
            past_fraction = 0.0 if not len(past) else 1.0 if hopeless else config.curriculum_fraction
            result += _spread(view, past, past_fraction / len(mains), view.config.weighting, rng)
            result[main] += (1.0 - past_fraction) / len(mains)
        return result

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """The main agents as they are now."""
        return view.population.players(MAIN_ROLE)


class LeagueExploiter:
    """Finds what the whole league is weak against."""

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """PFSP over all snapshots. Before the first snapshot: the mains, and without a main itself."""
        mains = _some_mains(view, rng)
        return _pfsp_or(view, mains if len(mains) else np.array([view.home]), rng)

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()


MAIN_AGENT: Matchmaker = MainAgent()
MAIN_EXPLOITER: Matchmaker = MainExploiter()
LEAGUE_EXPLOITER: Matchmaker = LeagueExploiter()


def matchmaker_of(config: PlayerConfig) -> Matchmaker:
    """The matchmaker that a group of players names, or its role's.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Matchmaker, load(MATCHMAKERS, config.matchmaker or config.role, what="matchmaker"))


def monotone_tail_start(win_rates: Array) -> int:
    """Where the tail begins in which win rates only fall toward the newest: those opponents are hard, not forgotten.

    Args:
      win_rates: float64 [C], oldest opponent first.
    Returns:
      Number of leading entries outside the tail; 0 where all of it falls.
    """
    rises = (win_rates[:-1] < win_rates[1:]).nonzero()[0]
    return int(rises[-1]) + 2 if len(rises) else 0


def _spread(
    view: MatchmakingView, candidates: Numbers, probability: float, weighting: Weighting, rng: np.random.Generator
) -> Array:
    """float64 [P], `probability` over the candidates by PFSP on win rates drawn from their posterior; zeros without
    any."""
    result = np.zeros(len(view.population))
    if len(candidates) and probability > 0.0:
        sampled = view.posterior.take(candidates).sample(rng)
        matchmaking = view.config.matchmaking
        result[candidates] = probability * pfsp(
            sampled, weighting, exponent=matchmaking.pfsp_exponent, rectified_below=matchmaking.rectified_below
        )
    return result


def _pfsp_or(view: MatchmakingView, otherwise: Numbers, rng: np.random.Generator) -> Array:
    """PFSP over all snapshots, or evenly over `otherwise` where there is none."""
    past = view.population.snapshots()
    if len(past):
        return _spread(view, past, 1.0, view.config.weighting, rng)
    result = np.zeros(len(view.population))
    result[otherwise] = 1.0 / len(otherwise)
    return result


def _measured(view: MatchmakingView, candidates: Numbers) -> Numbers:
    """Those met often enough for a threshold on their win rate to mean something."""
    return candidates[view.posterior.games[candidates] >= view.config.matchmaking.min_games]


def _some_mains(view: MatchmakingView, rng: np.random.Generator) -> Numbers:
    mains = view.population.players(MAIN_ROLE)
    return mains if len(mains) <= MAINS_PER_LEASE else np.sort(rng.choice(mains, MAINS_PER_LEASE, replace=False))
