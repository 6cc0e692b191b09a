"""User settings of the league: players, matchmaking, gates, payoff and ratings.

Steps are recorded decisions that the player's learner has consumed ("trained steps") unless a name says `env_steps`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from league.core.state.built_ins import (
    GATES,
    MATCHMAKERS,
    PBT_SELECTIONS,
    PRESETS,
    ComponentOptionsError,
    KeyPath,
    Options,
    check_name,
    completed,
    load,
)
from league.core.state.population_config import (
    FixedOpponentConfig,
    MetaGameConfig,
    PbtConfig,
    PopulationConfig,
    check_hyperparameter,
    require,
)
from league.core.state.records import Hyperparameter, is_bot
from league.core.state.scoring import Score
from league.envs.component_choice import Component, kind_of

RESET_PROBABILITIES = {"main_exploiter": 1.0, "league_exploiter": 0.25}
"""Chance that a role starts again after a snapshot; roles not named here never do. Source: Vinyals et al. 2019."""

SUM_ROUNDING = 1e-9
"""Rounding by which probabilities may sum to more than 1."""

DEFAULT_GATE = "posterior"
MAIN = "main_agent"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


@dataclass(frozen=True)
class GateConfig:
    """Settings of a gate, which freezes a player's weights into a snapshot.

    Fields:
      test: decides when it fires: "posterior", which also fires among hundreds of opponents, the published
        "threshold", or "module:attribute"; or a mapping of its name as `kind` and its options.
      min_steps: trained steps since the last snapshot or reset before which no gate fires (published: 2e9).
      timeout_steps: trained steps after which a snapshot is taken whatever the win rates say (published: 4e9).
      reset_probability: chance that the player then starts again from its initial snapshot; None is the role's own:
        1 for a main exploiter, 0.25 for a league exploiter, 0 for others.
      reset_to: what it starts again from: "initial", its own first snapshot (published, where that was trained from
        human games), or "main", the newest snapshot of a main agent: an exploiter that starts from random weights
        needs as long as its prey took.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    test: Component = field(default=DEFAULT_GATE, hash=False)
    min_steps: int = 1_000_000
    timeout_steps: int = 4_000_000
    reset_probability: float | None = None
    reset_to: Literal["initial", "main"] = "initial"

    def __post_init__(self) -> None:
        check_name(GATES, self.test_name, what="gate")
        require(self.min_steps >= 0, f"min_steps must not be negative, not {self.min_steps}")
        require(
            self.timeout_steps >= max(1, self.min_steps),
            f"timeout_steps {self.timeout_steps} must be at least 1 and at least min_steps {self.min_steps}",
        )
        chance = self.reset_probability
        require(chance is None or 0.0 <= chance <= 1.0, f"reset_probability must lie in [0, 1], not {chance}")

    @property
    def test_name(self) -> str:
        """Name of the test."""
        return kind_of(self.test, DEFAULT_GATE)


@dataclass(frozen=True)
class PlayerConfig:
    """A group of equal players.

    Fields:
      role: main_agent, main_exploiter, league_exploiter, or a role of the user's own.
      count: how many of them.
      step_weight: weight of each one's env steps in training, against the other players' weights.
      name: what their ids begin with (`<name>-<number>`); empty takes it from the role.
      matchmaker: registered name or "module:attribute", or a mapping of its name as `kind` and its options; without a
        name it is the role's.
      opponents_per_lease: most distinct opponents (the player itself included) in one lease.
      learn_from_past: its newest snapshots, so many, from whose decisions it learns too where it meets them, by the
        probabilities with which they acted; 0 learns from its own alone. Beyond `learner.max_policy_lag` nothing is
        learnt from them.
      gate: see there.
      starts_from: imported policy of `fixed_opponents` whose weights its players begin with; empty for new weights.
      hyperparameters: names and values that its players learn with, as in `HyperparameterConfig`: an "entropy_cost" of
        0.25 is a quarter of what is configured. Values that PBT changes take precedence.
      learner: keys of their own over the run's `learner`, such as another `algorithm`; the core only notes them.
      network: the same over `network`. actors: `acting` and `acting_frozen` of their own.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    role: str = "main_agent"
    count: int = 1
    step_weight: float = 1.0
    name: str = ""
    matchmaker: Component = field(default="", hash=False)
    opponents_per_lease: int = 4
    learn_from_past: int = 0
    gate: GateConfig = field(default_factory=GateConfig)
    starts_from: str = ""
    hyperparameters: tuple[Hyperparameter, ...] = ()
    learner: Options = field(default_factory=dict, hash=False)
    network: Options = field(default_factory=dict, hash=False)
    actors: Options = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name(MATCHMAKERS, self.matchmaker_name, what="matchmaker" if kind_of(self.matchmaker) else "role")
        require(self.opponents_per_lease >= 1, f"opponents_per_lease is {self.opponents_per_lease}, must be at least 1")
        require(self.learn_from_past >= 0, f"learn_from_past is {self.learn_from_past}, must be at least 0")
        require(1 <= self.count <= 100_000, f"count must lie in [1, 100000], not {self.count}")
        require(0.0 < self.step_weight < math.inf, f"step_weight must be positive and finite, not {self.step_weight}")
        for item in self.hyperparameters:
            check_hyperparameter(item.name, item.value)
        names = [item.name for item in self.hyperparameters]
        require(len(set(names)) == len(names), f"a hyperparameter is named twice: {names}")
        require(
            _NAME.fullmatch(self.prefix) is not None,
            f"player name {self.prefix!r} must be 1 to 48 of a-z, 0-9, - and _; set `name` for a role of your own",
        )

    @property
    def prefix(self) -> str:
        """Prefix of the ids of this group: main, main-exploiter, league-exploiter, or `name`."""
        return self.name or self.role.removesuffix("_agent").replace("_", "-")

    def player_id(self, number: int) -> str:
        """Id of the player of that number in the group, counted from 0."""
        return f"{self.prefix}-{number}"

    @property
    def player_ids(self) -> tuple[str, ...]:
        """Ids of the players of this group."""
        return tuple(map(self.player_id, range(self.count)))

    @property
    def matchmaker_name(self) -> str:
        """Name of the matchmaker: as given, or the role's."""
        return kind_of(self.matchmaker, self.role)

    @property
    def reset_probability(self) -> float:
        """Chance of a reset after a snapshot by the gate."""
        chance = self.gate.reset_probability
        return RESET_PROBABILITIES.get(self.role, 0.0) if chance is None else chance


@dataclass(frozen=True)
class PayoffConfig:
    """Settings of the payoff: the value of a game, and the ageing of evidence about a pair.

    Fields:
      half_life_steps: trained steps of the learning side (of both if both learn) in which a game's weight halves; None
        follows the gates, see `LeagueConfig.half_life_steps`, or the snapshots.
      half_life_snapshots: the same as a number of snapshots of a main agent, where no steps are given: for snapshots
        that do not follow the gates.
      prior_games: games, half won and half lost, that every pair starts with in its posterior.
      score: "wins" or "returns", see `league.core.state.scoring`; None is by the game: returns where it tells their
        range and they say more than won, drawn or lost, else wins. Fixed when the league is created.
      return_scale: margin between the returns of two sides that counts as a certain win; None is the largest that the
        game knows. A smaller one spreads scores further from a half, and cuts a mean margin beyond it. Intervals are
        true where it is the standard deviation of a game's margin, and too wide where it is larger.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    half_life_steps: float | None = None
    half_life_snapshots: float | None = None
    prior_games: float = 2.0
    score: Score | None = None
    return_scale: float | None = None

    @property
    def follows_snapshots(self) -> bool:
        """True if the half-life is a number of snapshots."""
        return self.half_life_steps is None and self.half_life_snapshots is not None

    def __post_init__(self) -> None:
        for name, half_life in (("steps", self.half_life_steps), ("snapshots", self.half_life_snapshots)):
            require(half_life is None or half_life > 0.0, f"half_life_{name} must be positive, not {half_life}")
        require(0.0 < self.prior_games < math.inf, f"prior_games must be positive and finite, not {self.prior_games}")
        scale = self.return_scale
        require(scale is None or 0.0 < scale < math.inf, f"return_scale must be positive and finite, not {scale}")
        require(
            scale is None or self.score != "wins",
            f"return_scale {scale} has no meaning with score: wins; leave it out, or use score: returns",
        )


@dataclass(frozen=True)
class RatingConfig:
    """Settings of the ratings; only games in which every seat is frozen move them.

    Fields:
      step_fraction: fraction of all env steps that rating matches take.
      parent_draws: virtual draws of a snapshot with its parent, the prior of its rating.
      anchor: policy whose rating is 0 Elo; empty is the first player's initial snapshot.
      bots: bots ("bot:NAME") that take part in rating matches; they stay out of training.
      opponents_per_lease: most distinct opponents that one snapshot meets in one rating lease.
      final_leases: most rating leases once training is over, which settle who is best.
      final_share: most that they take, of the env steps before them, and of the time too where the run is limited by
        time; they are the shorter for it.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    step_fraction: float = 0.05
    parent_draws: float = 1.0
    anchor: str = ""
    bots: tuple[str, ...] = ()
    opponents_per_lease: int = 4
    final_leases: int = 40
    final_share: float = 0.05

    def __post_init__(self) -> None:
        require(self.final_leases >= 0, f"final_leases must not be negative, not {self.final_leases}")
        require(0.0 <= self.step_fraction < 1.0, f"step_fraction must lie in [0, 1), not {self.step_fraction}")
        require(
            0.0 <= self.final_share < math.inf,
            f"final_share must be finite and not negative, not {self.final_share}",
        )
        require(0.0 < self.parent_draws < math.inf, f"parent_draws is {self.parent_draws}, must be positive and finite")
        strays = [bot for bot in self.bots if not is_bot(bot)]
        require(not strays, f"bots are written bot:NAME, not {strays}")
        require(len(set(self.bots)) == len(self.bots), f"a bot is named twice: {list(self.bots)}")
        require(self.opponents_per_lease >= 1, f"opponents_per_lease is {self.opponents_per_lease}, must be at least 1")


ONE_OF_EACH_ROLE = (
    PlayerConfig(role="main_agent", step_weight=2.0),
    PlayerConfig(role="main_exploiter"),
    PlayerConfig(role="league_exploiter"),
)
RATINGS, META_GAME, PBT = RatingConfig(), MetaGameConfig(), PbtConfig()
"""Defaults. A preset replaces these very objects and nothing that was given in their place, equal or not."""


@dataclass(frozen=True)
class LeagueConfig:
    """The `league:` part of a configuration.

    Fields:
      preset: a population by its name (`league.core.state.built_ins.PRESETS`) or "module:attribute"; empty for none.
        Settings given beside it replace their part of the preset.
      population: the choice of a population, and the numbers of the preset.
      players: the groups of players; one of each role by default, half of the env steps for the main agent.
      fixed_opponents: bots and frozen policies from outside that the players also meet.
      payoff, ratings, meta_game, pbt: see there.
      lease_steps: times each of an actor host's games is stepped before it answers a lease.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    preset: str = ""
    population: PopulationConfig = field(default_factory=PopulationConfig)
    players: tuple[PlayerConfig, ...] = ONE_OF_EACH_ROLE
    fixed_opponents: tuple[FixedOpponentConfig, ...] = ()
    payoff: PayoffConfig = field(default_factory=PayoffConfig)
    ratings: RatingConfig = RATINGS
    meta_game: MetaGameConfig = META_GAME
    pbt: PbtConfig = PBT
    lease_steps: int = 64

    def __post_init__(self) -> None:
        self.population.check_beside(self.preset)
        if self.preset:
            self._expand()
        require(len(self.players) > 0, "players: a league needs at least one player")
        prefixes = [group.prefix for group in self.players]
        twice = sorted({prefix for prefix in prefixes if prefixes.count(prefix) > 1})
        require(not twice, f"players: two groups are named {twice}; give one another `name` or raise its `count`")
        self._check_fixed_opponents()
        self._check_copies()
        self._complete_options()
        require(self.lease_steps >= 1, f"lease_steps must be at least 1, not {self.lease_steps}")

    def _expand(self) -> None:
        """Put the preset in the place of what was not given."""
        check_name(PRESETS, self.preset, what="preset")
        defaults = {"players": ONE_OF_EACH_ROLE, "ratings": RATINGS, "meta_game": META_GAME, "pbt": PBT}
        missing = [name for name, default in defaults.items() if getattr(self, name) is default]
        if not missing:  # a journal holds every part: reading it runs no preset
            return
        preset = load(PRESETS, self.preset, what="preset")
        try:
            made = preset(self.population)  # type: ignore[operator]  # the registry's protocol
            parts = {name: getattr(made, name) for name in missing}
        except ValueError:
            raise
        except Exception as error:  # code of others: whatever a preset raises or returns is a sentence for its user
            raise ValueError(f"the preset {self.preset!r} failed, {type(error).__name__}: {error}") from error
        for name, part in parts.items():
            if part is not None:
                object.__setattr__(self, name, part)  # a frozen record is completed before it is seen

    def _complete_options(self) -> None:
        """Write out every option of a registered component, so that a journal tells what its league was made with."""
        problems: list[tuple[KeyPath, str]] = []

        def complete(registry: Mapping[str, str], choice: Component, default: str, *path: str | int) -> Component:
            try:
                return completed(registry, choice, what=str(path[-1]), default=default)
            except ComponentOptionsError as error:
                problems.extend(error.under(*path).problems)
                return choice

        players = tuple(
            replace(
                group,
                matchmaker=complete(MATCHMAKERS, group.matchmaker, group.role, "players", index, "matchmaker"),
                gate=replace(
                    group.gate, test=complete(GATES, group.gate.test, DEFAULT_GATE, "players", index, "gate", "test")
                ),
            )
            for index, group in enumerate(self.players)
        )
        pbt = self.pbt
        if pbt.selection:
            pbt = replace(pbt, selection=complete(PBT_SELECTIONS, pbt.selection, "", "pbt", "selection"))
        if problems:
            raise ComponentOptionsError(problems)
        object.__setattr__(self, "players", players)  # a frozen record is completed before it is seen
        object.__setattr__(self, "pbt", pbt)

    def _check_copies(self) -> None:
        """Refuse copies of weights between players whose networks differ."""
        everyone = self.players if self.pbt.selection and self.pbt.across_roles else ()
        for group in self.players:
            mains = [main for main in self.players if main.role == MAIN and group.gate.reset_to == "main"]
            for others, setting in ((everyone, "pbt.across_roles: true"), (mains, "gate.reset_to: main")):
                other = next((other.prefix for other in others if other.network != group.network), "")
                require(
                    not other,
                    f"players: {setting} gives {group.prefix} weights of {other}, and their `network` differs; "
                    "change one of them",
                )

    def _check_fixed_opponents(self) -> None:
        names = [opponent.policy for opponent in self.fixed_opponents]
        require(len(set(names)) == len(names), f"fixed_opponents: a policy is named twice: {names}")
        roles = {group.role for group in self.players}
        for opponent in self.fixed_opponents:
            strays = sorted(set(opponent.roles) - roles)
            require(
                not strays, f"fixed_opponents: {opponent.policy} is to meet {strays}; the roles are {sorted(roles)}"
            )
        for role in sorted(roles):
            total = sum(probability for _, probability in self.fixed_opponents_of(role))
            rule = f"fixed_opponents: they take {total:g} of the games of {role}, which must not exceed 1"
            require(total <= 1.0 + SUM_ROUNDING, rule)

    def fixed_opponents_of(self, role: str) -> tuple[tuple[str, float], ...]:
        """(policy, fraction of the games) of the fixed opponents that players of a role meet."""
        return tuple(
            (opponent.policy, opponent.probability)
            for opponent in self.fixed_opponents
            if not opponent.roles or role in opponent.roles
        )

    @property
    def half_life_steps(self) -> float:
        """Trained steps in which the weight of a game halves; where none are given, about the way between snapshots.

        That is half the timeout of the slowest gate, or its least steps where these are more. In simulated leagues of
        twelve players and 100 to 400 snapshots, some of a main agent's opponents had too few games to be judged: two
        thirds of them with a twenty-fifth of this half-life, a tenth with a quarter, 2 % with all of it. Twice as much
        left 1 %, but win rates then lag. In a world of fast learners gates fired half as often.
        """
        if self.payoff.half_life_steps is not None:
            return self.payoff.half_life_steps
        return float(max(max(group.gate.min_steps, group.gate.timeout_steps / 2) for group in self.players))

    @property
    def bots(self) -> tuple[str, ...]:
        """Every bot of the population: fixed opponents, and those that only take part in rating matches."""
        fixed_opponents = [opponent.policy for opponent in self.fixed_opponents if is_bot(opponent.policy)]
        return tuple(dict.fromkeys((*self.ratings.bots, *fixed_opponents)))
