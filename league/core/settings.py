"""What a user may set about the league: who is in it, whom they play, when a snapshot is taken, how ratings are made.

Steps are recorded decisions that the player's learner has consumed ("trained steps") unless a name says `env_steps`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from league.core.registry import GATES, MATCHMAKERS, check_name

Weighting = Literal["squared", "variance", "linear", "linear_capped", "uniform"]

RESET_PROBABILITIES = {"main_exploiter": 1.0, "league_exploiter": 0.25}
"""Chance that a role starts again after a snapshot; roles not named here never do. Source: Vinyals et al. 2019."""

ROLE_WEIGHTINGS: dict[str, Weighting] = {"main_exploiter": "variance", "league_exploiter": "linear_capped"}
"""PFSP weighting of a role's past opponents; roles not named here use "squared". Source: as above, pseudocode."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True)
class GateSettings:
    """When a player's weights are frozen into a snapshot.

    Fields:
      kind: name of the gate, or "module:attribute". "posterior", which also fires among hundreds of rivals, or the
        published "threshold".
      win_rate: the gate fires when the player beats every rival at more than this.
      min_games: effective games against a rival below which its win rate proves nothing.
      margin: the posterior gate is held by a rival so far below `win_rate`, while the mean over all must exceed it.
      confidence: the posterior gate fires while at most `1 - confidence` rivals are expected not to be beaten.
      min_steps: trained steps since the last snapshot or reset before which no gate fires (published: 2e9).
      timeout_steps: trained steps after which a snapshot is taken whatever the win rates say (published: 4e9).
      reset_probability: chance that the player then starts again from its initial snapshot; None is the role's own:
        1 for a main exploiter, 0.25 for a league exploiter, 0 for others.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    kind: str = "posterior"
    win_rate: float = 0.7
    min_games: float = 10.0
    margin: float = 0.05
    confidence: float = 0.8
    min_steps: int = 1_000_000
    timeout_steps: int = 4_000_000
    reset_probability: float | None = None

    def __post_init__(self) -> None:
        check_name(GATES, self.kind, what="gate")
        _require(0.0 < self.win_rate < 1.0, f"win_rate must lie between 0 and 1, not {self.win_rate}")
        _require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")
        _require(
            0.0 <= self.margin < self.win_rate, f"margin must lie in [0, win_rate {self.win_rate}), not {self.margin}"
        )
        _require(0.0 < self.confidence < 1.0, f"confidence must lie between 0 and 1, not {self.confidence}")
        _require(self.min_steps >= 0, f"min_steps must not be negative, not {self.min_steps}")
        _require(
            self.timeout_steps >= max(1, self.min_steps),
            f"timeout_steps {self.timeout_steps} must be at least 1 and at least min_steps {self.min_steps}",
        )
        chance = self.reset_probability
        _require(chance is None or 0.0 <= chance <= 1.0, f"reset_probability must lie in [0, 1], not {chance}")


@dataclass(frozen=True)
class MatchmakingSettings:
    """Whom a player meets.

    Fields:
      self_play, pfsp, verification: shares of a main agent's games; they sum to 1.
      weighting: PFSP weighting of past opponents; None is the role's own: squared for a main agent, variance for a
        main exploiter, linear_capped for a league exploiter.
      too_strong_below: win rate under which a main agent meets a main's past instead of that main (published 0.3).
      exploited_below: win rate under which a past main exploiter is verified against (published 0.3).
      forgotten_below: win rate under which a main's past counts as forgotten (published 0.7).
      curriculum_below: win rate under which a main exploiter leaves the main for its past (paper 0.2, code 0.1).
      curriculum_share: share of a main exploiter's games against the mains' past in any case (paper 0.5, code 0).
      min_games: effective games below which a pair counts as unmeasured for these thresholds.
      opponents_per_lease: most distinct opponents (the player itself included) in one lease.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    self_play: float = 0.35
    pfsp: float = 0.5
    verification: float = 0.15
    weighting: Weighting | None = None
    too_strong_below: float = 0.3
    exploited_below: float = 0.3
    forgotten_below: float = 0.7
    curriculum_below: float = 0.2
    curriculum_share: float = 0.5
    min_games: float = 4.0
    opponents_per_lease: int = 4

    def __post_init__(self) -> None:
        shares = (self.self_play, self.pfsp, self.verification)
        _require(min(shares) >= 0.0, f"shares must not be negative: self_play, pfsp, verification = {shares}")
        _require(
            math.isclose(sum(shares), 1.0, abs_tol=1e-6),
            f"self_play {shares[0]} + pfsp {shares[1]} + verification {shares[2]} = {sum(shares):g}, not 1",
        )
        for name in ("too_strong_below", "exploited_below", "forgotten_below", "curriculum_below", "curriculum_share"):
            value = getattr(self, name)
            _require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], not {value}")
        _require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")
        _require(
            self.opponents_per_lease >= 1, f"opponents_per_lease is {self.opponents_per_lease}, must be at least 1"
        )


@dataclass(frozen=True)
class PlayerSettings:
    """A group of equal players.

    Fields:
      role: main_agent, main_exploiter, league_exploiter, or a role of the user's own.
      count: how many of them.
      share: weight of each one's env steps in training, against the other players' weights.
      name: what their ids begin with (`<name>-<number>`); empty takes it from the role.
      matchmaker: registered name or "module:attribute"; empty is the role's.
      matchmaking, gate: see there.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    role: str = "main_agent"
    count: int = 1
    share: float = 1.0
    name: str = ""
    matchmaker: str = ""
    matchmaking: MatchmakingSettings = field(default_factory=MatchmakingSettings)
    gate: GateSettings = field(default_factory=GateSettings)

    def __post_init__(self) -> None:
        check_name(MATCHMAKERS, self.matchmaker or self.role, what="role" if not self.matchmaker else "matchmaker")
        _require(1 <= self.count <= 100_000, f"count must lie in [1, 100000], not {self.count}")
        _require(0.0 < self.share < math.inf, f"share must be positive and finite, not {self.share}")
        _require(
            _NAME.fullmatch(self.prefix) is not None,
            f"player name {self.prefix!r} must be 1 to 48 of a-z, 0-9, - and _; set `name` for a role of your own",
        )

    @property
    def prefix(self) -> str:
        """What the ids of this group begin with: main, main-exploiter, league-exploiter, or `name`."""
        return self.name or self.role.removesuffix("_agent").replace("_", "-")

    @property
    def reset_probability(self) -> float:
        """Chance of a reset after a snapshot by the gate."""
        chance = self.gate.reset_probability
        return RESET_PROBABILITIES.get(self.role, 0.0) if chance is None else chance

    @property
    def weighting(self) -> Weighting:
        """PFSP weighting against past opponents."""
        return self.matchmaking.weighting or ROLE_WEIGHTINGS.get(self.role, "squared")


@dataclass(frozen=True)
class PayoffSettings:
    """How evidence about a pair ages.

    Fields:
      half_life_steps: trained steps of the learning side (of both if both learn) in which a game's weight halves.
      prior_games: games, half won and half lost, that every pair starts with in its posterior.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    half_life_steps: float = 2_000_000.0
    prior_games: float = 2.0

    def __post_init__(self) -> None:
        _require(self.half_life_steps > 0.0, f"half_life_steps must be positive, not {self.half_life_steps}")
        _require(0.0 < self.prior_games < math.inf, f"prior_games must be positive and finite, not {self.prior_games}")


@dataclass(frozen=True)
class RatingSettings:
    """How ratings are made; only games in which every seat is frozen move them.

    Fields:
      share: share of all env steps that rating matches take.
      parent_draws: virtual draws of a snapshot with its parent, the prior of its rating.
      anchor: policy whose rating is 0 Elo; empty is the first player's initial snapshot.
      bots: bots ("bot:NAME") that take part in rating matches; they stay out of training.
      opponents_per_lease: most distinct opponents that one snapshot meets in one rating lease.
      final_leases: rating leases at the end of the budget, which settle who is best.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    share: float = 0.05
    parent_draws: float = 4.0
    anchor: str = ""
    bots: tuple[str, ...] = ()
    opponents_per_lease: int = 4
    final_leases: int = 40

    def __post_init__(self) -> None:
        _require(self.final_leases >= 0, f"final_leases must not be negative, not {self.final_leases}")
        _require(0.0 <= self.share < 1.0, f"share must lie in [0, 1), not {self.share}")
        _require(
            0.0 < self.parent_draws < math.inf, f"parent_draws is {self.parent_draws}, must be positive and finite"
        )
        strays = [bot for bot in self.bots if not bot.startswith("bot:")]
        _require(not strays, f"bots are written bot:NAME, not {strays}")
        _require(len(set(self.bots)) == len(self.bots), f"a bot is named twice: {list(self.bots)}")
        _require(
            self.opponents_per_lease >= 1, f"opponents_per_lease is {self.opponents_per_lease}, must be at least 1"
        )


def _one_of_each_role() -> tuple[PlayerSettings, ...]:
    return (
        PlayerSettings(role="main_agent", share=2.0),
        PlayerSettings(role="main_exploiter"),
        PlayerSettings(role="league_exploiter"),
    )


@dataclass(frozen=True)
class LeagueSettings:
    """The `league:` part of a configuration.

    Fields:
      players: the groups of players; one of each role by default, half of the env steps for the main agent.
      payoff, ratings: see there.
      lease_turns: times each of an actor host's games is stepped before it answers a lease.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    players: tuple[PlayerSettings, ...] = field(default_factory=_one_of_each_role)
    payoff: PayoffSettings = field(default_factory=PayoffSettings)
    ratings: RatingSettings = field(default_factory=RatingSettings)
    lease_turns: int = 64

    def __post_init__(self) -> None:
        _require(len(self.players) > 0, "players: a league needs at least one player")
        prefixes = [group.prefix for group in self.players]
        twice = sorted({prefix for prefix in prefixes if prefixes.count(prefix) > 1})
        _require(not twice, f"players: two groups are named {twice}; give one another `name` or raise its `count`")
        _require(self.lease_turns >= 1, f"lease_turns must be at least 1, not {self.lease_turns}")
