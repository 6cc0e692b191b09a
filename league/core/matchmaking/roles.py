"""Whom a player of each role meets, and whom it must beat before it is frozen.

Shape letters: P policies of the population, C candidates.
Source: Vinyals et al. 2019, methods and the released pseudocode; where the two differ, `MatchmakingSettings` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.pfsp import pfsp
from league.core.state.league_config import PlayerSettings, Weighting
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
class View:
    """The league as one player sees it.

    Fields:
      home: its number. posterior: its win rate against each of the P policies.
      settings: of its group, with the player's own tuned values in their place.
      quality: float64 [P], qualities of its own snapshots; None where none are kept.
      mixture: float64 [P], the mixture over snapshots that is best as a whole; None where none is solved.
      guests: float64 [P], shares of the player's games that its guests take; None where it has none.
    """

    home: int
    population: Population
    posterior: Posterior
    settings: PlayerSettings
    quality: Array | None = None
    mixture: Array | None = None
    guests: Array | None = None


class Matchmaker(Protocol):
    """Chooses opponents for a player in games with at least two teams. Must not change the view."""

    def opponents(self, view: View, rng: np.random.Generator) -> Array:
        """float64 [P], shares of the player's games against each policy, sum 1; its own entry is self-play."""

    def rivals(self, view: View) -> Numbers:
        """int64 [C], whom the gate demands to be beaten; none: only the timeout takes snapshots."""


class MainAgent:
    """Robust against the whole past: self-play, PFSP over all snapshots, and verification of what it lost."""

    def opponents(self, view: View, rng: np.random.Generator) -> Array:
        """Shares self_play / pfsp / verification; a share whose candidates are missing becomes self-play."""
        shares, past = view.settings.matchmaking, view.population.snapshots()
        result = _spread(view, past, shares.pfsp, view.settings.weighting, rng)
        self_play = shares.self_play if len(past) else shares.self_play + shares.pfsp
        mains = _some_mains(view, rng)
        mains = mains if len(mains) else np.array([view.home])
        for main in mains:
            verified = self._to_verify(view, int(main))
            result += _spread(view, verified, shares.verification / len(mains), "squared", rng)
            left = self_play if len(verified) else self_play + shares.verification
            result += self._against_main(view, int(main), left / len(mains), rng)
        return result

    def rivals(self, view: View) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()

    def _against_main(self, view: View, main: int, share: float, rng: np.random.Generator) -> Array:
        """Meet a main agent, or its past as a curriculum where it is another one and too strong."""
        past = view.population.snapshots_of(main)
        beaten = view.posterior.mean[main] > view.settings.matchmaking.too_strong_below
        if main != view.home and not beaten and len(past):
            return _spread(view, past, share, "variance", rng)
        result = np.zeros(len(view.population))
        result[main] = share
        return result

    def _to_verify(self, view: View, main: int) -> Numbers:
        """Past main exploiters that beat it; else the past of `main` that it forgot; else none."""
        settings, mean = view.settings.matchmaking, view.posterior.mean
        exploiters = _measured(view, view.population.snapshots(EXPLOITER_ROLE))
        if len(exploiters) and mean[exploiters].min() < settings.exploited_below:
            return exploiters
        past = _measured(view, view.population.snapshots_of(main))
        past = past[: monotone_tail_start(mean[past])]
        if len(past) and mean[past].min() < settings.forgotten_below:
            return past
        return past[:0]


class MainExploiter:
    """Finds what the present main agents are weak against."""

    def opponents(self, view: View, rng: np.random.Generator) -> Array:
        """The mains, and their past as a curriculum. Without a main agent: PFSP over all snapshots, then self-play."""
        settings = view.settings.matchmaking
        mains = _some_mains(view, rng)
        if not len(mains):
            return _pfsp_or(view, np.array([view.home]), rng)
        result = np.zeros(len(view.population))
        for main in mains:
            past = view.population.snapshots_of(int(main))
            measured = view.posterior.games[main] >= settings.min_games
            hopeless = measured and view.posterior.mean[main] < settings.curriculum_below
            past_share = 0.0 if not len(past) else 1.0 if hopeless else settings.curriculum_share
            result += _spread(view, past, past_share / len(mains), view.settings.weighting, rng)
            result[main] += (1.0 - past_share) / len(mains)
        return result

    def rivals(self, view: View) -> Numbers:
        """The main agents as they are now."""
        return view.population.players(MAIN_ROLE)


class LeagueExploiter:
    """Finds what the whole league is weak against."""

    def opponents(self, view: View, rng: np.random.Generator) -> Array:
        """PFSP over all snapshots. Before the first snapshot: the mains, and without a main itself."""
        mains = _some_mains(view, rng)
        return _pfsp_or(view, mains if len(mains) else np.array([view.home]), rng)

    def rivals(self, view: View) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()


MAIN_AGENT: Matchmaker = MainAgent()
MAIN_EXPLOITER: Matchmaker = MainExploiter()
LEAGUE_EXPLOITER: Matchmaker = LeagueExploiter()


def matchmaker_of(settings: PlayerSettings) -> Matchmaker:
    """The matchmaker that a group of players names, or its role's.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Matchmaker, load(MATCHMAKERS, settings.matchmaker or settings.role, what="matchmaker"))


def monotone_tail_start(win_rates: Array) -> int:
    """Where the tail begins in which win rates only fall toward the newest: those opponents are hard, not forgotten.

    Args:
      win_rates: float64 [C], oldest opponent first.
    Returns:
      Number of leading entries outside the tail; 0 where all of it falls.
    """
    rises = (win_rates[:-1] < win_rates[1:]).nonzero()[0]
    return int(rises[-1]) + 2 if len(rises) else 0


def _spread(view: View, candidates: Numbers, share: float, weighting: Weighting, rng: np.random.Generator) -> Array:
    """float64 [P], `share` over the candidates by PFSP on win rates drawn from their posterior; zeros without any."""
    result = np.zeros(len(view.population))
    if len(candidates) and share > 0.0:
        sampled = view.posterior.take(candidates).sample(rng)
        matchmaking = view.settings.matchmaking
        result[candidates] = share * pfsp(
            sampled, weighting, exponent=matchmaking.pfsp_exponent, rectified_below=matchmaking.rectified_below
        )
    return result


def _pfsp_or(view: View, otherwise: Numbers, rng: np.random.Generator) -> Array:
    """PFSP over all snapshots, or evenly over `otherwise` where there is none."""
    past = view.population.snapshots()
    if len(past):
        return _spread(view, past, 1.0, view.settings.weighting, rng)
    result = np.zeros(len(view.population))
    result[otherwise] = 1.0 / len(otherwise)
    return result


def _measured(view: View, candidates: Numbers) -> Numbers:
    """Those met often enough for a threshold on their win rate to mean something."""
    return candidates[view.posterior.games[candidates] >= view.settings.matchmaking.min_games]


def _some_mains(view: View, rng: np.random.Generator) -> Numbers:
    mains = view.population.players(MAIN_ROLE)
    return mains if len(mains) <= MAINS_PER_LEASE else np.sort(rng.choice(mains, MAINS_PER_LEASE, replace=False))
