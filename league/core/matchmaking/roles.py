"""Roles: the opponents that a player of each role meets, and those it must beat before it is frozen.

Shape letters: P policies of the population, C candidates.
Source: Vinyals et al. 2019, methods and the released pseudocode; where the two differ, the options say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.pfsp import Weighting, pfsp
from league.core.state.built_ins import MATCHMAKERS, make
from league.core.state.league_config import PlayerConfig
from league.core.state.payoff import Posterior
from league.core.state.population import Population
from league.core.state.population_config import require

MAIN_ROLE = "main_agent"
EXPLOITER_ROLE = "main_exploiter"
EXPLOITER_ROLES = (EXPLOITER_ROLE, "league_exploiter")
MAINS_PER_LEASE = 4
"""Most main agents that one lease considers, so that its cost does not grow with their number."""

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class MatchmakingView:
    """The league as one player sees it.

    Fields:
      home: its number. posterior: its win rate against each of the P policies.
      config: of its group, with the player's own PBT values in their place.
      quality: float64 [P], qualities of its own snapshots; None where none are kept.
      mixture: float64 [P], the mixture over snapshots that is best as a whole; None where none is solved.
      fixed_opponents: float64 [P], fractions of the player's games that its fixed opponents take; None where it has
        none.
      generator: number of the snapshot that makes its games; None where it makes them itself.
    """

    home: int
    population: Population
    posterior: Posterior
    config: PlayerConfig
    quality: Array | None = None
    mixture: Array | None = None
    fixed_opponents: Array | None = None
    generator: int | None = None


class Matchmaker(Protocol):
    """Chooses opponents for a player in games with at least two teams. Must not change the view.

    A matchmaker is a dataclass of its options.
    """

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """float64 [P], probabilities of the player's games against each policy, sum 1; its own entry is self-play."""

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """int64 [C], whom the gate demands to be beaten; none: only the timeout takes snapshots."""


@dataclass(frozen=True)
class Prioritised:
    """Options of matchmakers that meet past opponents by PFSP.

    Fields:
      weighting: of past opponents by the win rate against them, see `league.core.matchmaking.pfsp`.
      pfsp_exponent: exponent of the weighting "hard", (1 - win rate) ** exponent; 2 is "squared".
      rectified_below: win rate under which "variance_rectified" takes an opponent for one beaten that often, so that
        those that always win are met too (TLeague: 0.1 or 0.05).
    """

    weighting: Weighting = "squared"
    pfsp_exponent: float = 2.0
    rectified_below: float = 0.1

    def __post_init__(self) -> None:
        require(0.0 < self.pfsp_exponent <= 100.0, f"pfsp_exponent must lie in (0, 100], not {self.pfsp_exponent}")
        self._check_rates("rectified_below")

    def _check_rates(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], not {value}")

    def _spread(
        self,
        view: MatchmakingView,
        candidates: Numbers,
        probability: float,
        rng: np.random.Generator,
        *,
        weighting: Weighting | None = None,
    ) -> Array:
        """float64 [P], `probability` over the candidates by PFSP on win rates from their posterior; else zeros."""
        result = np.zeros(len(view.population))
        if len(candidates) and probability > 0.0:
            result[candidates] = probability * pfsp(
                view.posterior.take(candidates).sample(rng),
                weighting or self.weighting,
                exponent=self.pfsp_exponent,
                rectified_below=self.rectified_below,
            )
        return result

    def _pfsp_or(self, view: MatchmakingView, otherwise: Numbers, rng: np.random.Generator) -> Array:
        """PFSP over all snapshots, or evenly over `otherwise` where there is none."""
        past = view.population.snapshots()
        if len(past):
            return self._spread(view, past, 1.0, rng)
        result = np.zeros(len(view.population))
        result[otherwise] = 1.0 / len(otherwise)
        return result


@dataclass(frozen=True)
class MainAgent(Prioritised):
    """Robust against the whole past: self-play, PFSP over all snapshots, and verification of what it lost.

    Fields:
      self_play: share of the games against itself; the three shares sum to 1. pfsp: share against past policies.
      verification: share against those that once beat it.
      too_strong_below: win rate under which a main agent meets a main's past instead of that main (published 0.3).
      exploited_below: win rate under which a past main exploiter is verified against (published 0.3).
      forgotten_below: win rate under which a main's past counts as forgotten (published 0.7).
      min_games: effective games below which a pair counts as unmeasured for these thresholds.
    """

    self_play: float = 0.35
    pfsp: float = 0.5
    verification: float = 0.15
    too_strong_below: float = 0.3
    exploited_below: float = 0.3
    forgotten_below: float = 0.7
    min_games: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = (self.self_play, self.pfsp, self.verification)
        require(min(shares) >= 0.0, f"shares must not be negative: self_play, pfsp, verification = {shares}")
        require(
            math.isclose(sum(shares), 1.0, abs_tol=1e-6),
            f"self_play {shares[0]} + pfsp {shares[1]} + verification {shares[2]} = {sum(shares):g}, not 1",
        )
        self._check_rates("too_strong_below", "exploited_below", "forgotten_below")
        require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """Probabilities self_play / pfsp / verification; one whose candidates are missing becomes self-play."""
        past = view.population.snapshots()
        result = self._spread(view, past, self.pfsp, rng)
        self_play = self.self_play if len(past) else self.self_play + self.pfsp
        mains = _some_mains(view, rng)
        mains = mains if len(mains) else np.array([view.home])
        for main in mains:
            verified = self._to_verify(view, int(main))
            result += self._spread(view, verified, self.verification / len(mains), rng, weighting="squared")
            left = self_play if len(verified) else self_play + self.verification
            result += self._against_main(view, int(main), left / len(mains), rng)
        return result

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()

    def _against_main(self, view: MatchmakingView, main: int, probability: float, rng: np.random.Generator) -> Array:
        """Meet a main agent, or its past as a curriculum where it is another one and too strong."""
        past = view.population.snapshots_of(main)
        beaten = view.posterior.mean[main] > self.too_strong_below
        if main != view.home and not beaten and len(past):
            return self._spread(view, past, probability, rng, weighting="variance")
        result = np.zeros(len(view.population))
        result[main] = probability
        return result

    def _to_verify(self, view: MatchmakingView, main: int) -> Numbers:
        """Past main exploiters that beat it; else the past of `main` that it forgot; else none."""
        mean = view.posterior.mean
        exploiters = self._measured(view, view.population.snapshots(EXPLOITER_ROLE))
        if len(exploiters) and mean[exploiters].min() < self.exploited_below:
            return exploiters
        past = self._measured(view, view.population.snapshots_of(main))
        past = past[: monotone_tail_start(mean[past])]
        if len(past) and mean[past].min() < self.forgotten_below:
            return past
        return past[:0]

    def _measured(self, view: MatchmakingView, candidates: Numbers) -> Numbers:
        """Those met often enough for a threshold on their win rate to mean something."""
        return candidates[view.posterior.games[candidates] >= self.min_games]


@dataclass(frozen=True)
class MainExploiter(Prioritised):
    """Finds what the present main agents are weak against.

    Fields:
      curriculum_below: win rate under which it leaves the main for its past (paper 0.2, code 0.1).
      curriculum_fraction: share of its games against the mains' past in any case (paper 0.5, code 0).
      min_games: effective games below which a pair counts as unmeasured for this threshold.
    """

    weighting: Weighting = "variance"
    curriculum_below: float = 0.2
    curriculum_fraction: float = 0.5
    min_games: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_rates("curriculum_below", "curriculum_fraction")
        require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """The mains, and their past as a curriculum. Without a main agent: PFSP over all snapshots, then self-play."""
        mains = _some_mains(view, rng)
        if not len(mains):
            return self._pfsp_or(view, np.array([view.home]), rng)
        result = np.zeros(len(view.population))
        for main in mains:
            past = view.population.snapshots_of(int(main))
            measured = view.posterior.games[main] >= self.min_games
            hopeless = measured and view.posterior.mean[main] < self.curriculum_below
            past_fraction = 0.0 if not len(past) else 1.0 if hopeless else self.curriculum_fraction
            result += self._spread(view, past, past_fraction / len(mains), rng)
            result[main] += (1.0 - past_fraction) / len(mains)
        return result

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """The main agents as they are now."""
        return view.population.players(MAIN_ROLE)


@dataclass(frozen=True)
class LeagueExploiter(Prioritised):
    """Finds what the whole league is weak against."""

    weighting: Weighting = "linear_capped"

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """PFSP over all snapshots. Before the first snapshot: the mains, and without a main itself."""
        mains = _some_mains(view, rng)
        return self._pfsp_or(view, mains if len(mains) else np.array([view.home]), rng)

    def gate_opponents(self, view: MatchmakingView) -> Numbers:
        """Every snapshot of the league."""
        return view.population.snapshots()


def matchmaker_of(config: PlayerConfig) -> Matchmaker:
    """The matchmaker that a group of players names, or its role's.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Matchmaker, make(MATCHMAKERS, config.matchmaker, what="matchmaker", default=config.role))


def monotone_tail_start(win_rates: Array) -> int:
    """The start of the tail in which win rates only fall toward the newest: those opponents are hard, not forgotten.

    Args:
      win_rates: float64 [C], oldest opponent first.
    Returns:
      Number of leading entries outside the tail; 0 where all of it falls.
    """
    rises = (win_rates[:-1] < win_rates[1:]).nonzero()[0]
    return int(rises[-1]) + 2 if len(rises) else 0


def _some_mains(view: MatchmakingView, rng: np.random.Generator) -> Numbers:
    mains = view.population.players(MAIN_ROLE)
    return mains if len(mains) <= MAINS_PER_LEASE else np.sort(rng.choice(mains, MAINS_PER_LEASE, replace=False))
