"""User settings of a whole population: a preset's numbers, fixed opponents, the meta-game, and PBT."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from league.core.state.built_ins import AUTO, PBT_SELECTIONS, SOLVERS, check_name
from league.core.state.records import BOT_PREFIX, IMPORTED_PREFIX, is_from_outside
from league.envs.component_choice import Component, kind_of
from league.envs.text.number_text import number_text


def require(condition: bool, message: str) -> None:
    """Refuse a setting.

    Raises:
      ValueError: with the message, where the condition does not hold.
    """
    if not condition:
        raise ValueError(message)


PopulationChoice = Literal["given", "measured", "always", "never"]


@dataclass(frozen=True)
class PopulationConfig:
    """The choice of a population, and the numbers of a preset; None is the preset's own.

    Fields:
      choice: what decides on it. "given": the preset, or `players`. "measured": counters in games of teams, while they
        win; elsewhere the newest weights alone, until a scout has shown that more is needed, see
        `league.core.scouting`. "always": the past too, exploiters where the budget lets them learn, and counters in
        games of teams. "never": the newest weights alone.
      main_agents: learning players (the population of `pbt`). main_exploiters: of `alphastar` and `exploit`, and the
        counters of `cross_play`.
      league_exploiters: of `alphastar`.
      save_steps: trained steps between two snapshots; for `alphastar` the least number, the timeout is twice as many.
      window: snapshots that `window` keeps meeting.
      play_against_latest_model_ratio: fraction of games against the newest weights, for `window` and `openai_five`.
      exploiters_reset_to: what the exploiters of `alphastar` start again from, see `GateConfig.reset_to`.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    choice: PopulationChoice = "given"
    main_agents: int | None = None
    main_exploiters: int | None = None
    league_exploiters: int | None = None
    save_steps: int | None = None
    window: int | None = None
    play_against_latest_model_ratio: float | None = None
    exploiters_reset_to: Literal["initial", "main"] | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("main_agents", 1),
            ("main_exploiters", 0),
            ("league_exploiters", 0),
            ("save_steps", 1),
            ("window", 1),
        ):
            value = getattr(self, name)
            require(value is None or value >= least, f"{name} must be at least {least}, not {value}")
        ratio = self.play_against_latest_model_ratio
        require(
            ratio is None or 0.0 <= ratio <= 1.0, f"play_against_latest_model_ratio must lie in [0, 1], not {ratio}"
        )

    def check_beside(self, preset: str) -> None:
        """Refuse a choice beside a preset, and numbers without one. Raises ValueError."""
        if preset:
            chosen = self.choice == "given"
            require(chosen, f"population: the preset {preset!r} is a population; leave `choice` out, or the preset")
            return
        numbers = replace(self, choice="given") != PopulationConfig()
        require(not numbers, "population: these are the numbers of a preset; give a `preset`, or set `players`")


_IMPORTED = re.compile(IMPORTED_PREFIX + r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class FixedOpponentConfig:
    """A policy that does not learn here and yet sits in the population.

    Fields:
      policy: "bot:NAME", or "imported:NAME" for a frozen policy that was trained elsewhere and is added to the run.
      probability: of the games of each player that meets it; 1 where it is met in every game, 0 where an imported
        policy only lends its weights.
      roles: roles that meet it; empty for all.
      source: of an imported policy, the run folder or the folder of one snapshot from which it is copied at the start.
      player: of that run, as for `league eval`: "best", "mixture", "average", a snapshot, a player as it was last
        saved, or a mixture of one's own. The members of a mixture join with their parts of the probability.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    policy: str
    probability: float = 0.05
    roles: tuple[str, ...] = ()
    source: str = ""
    player: str = "best"

    def __post_init__(self) -> None:
        require(
            is_from_outside(self.policy),
            f"policy is written {BOT_PREFIX}NAME or {IMPORTED_PREFIX}NAME, not {self.policy!r}",
        )
        imported = self.policy.startswith(IMPORTED_PREFIX)
        require(
            not imported or _IMPORTED.fullmatch(self.policy) is not None,
            f"{self.policy!r}: NAME must be 1 to 64 of a-z, 0-9, - and _, starting with a letter or a digit",
        )
        require(imported or not self.source, f"{self.policy} has no source; only {IMPORTED_PREFIX}NAME comes from one")
        require(
            0.0 < self.probability <= 1.0 or (imported and self.probability == 0.0),
            f"probability of {self.policy} must be above 0 and at most 1, not {self.probability}",
        )


@dataclass(frozen=True)
class MetaGameConfig:
    """The game between whole snapshots, solved while the league runs.

    Fields:
      solve: whether the mixture is kept up to date; the matchmaker "meta_nash" needs it.
      solver: "nash" (linear program; two sides), "regret_matching" (two sides), "replicator" (replicator dynamics; any
        number of sides), or "module:attribute"; "auto" is nash for two sides and replicator for more.
      growth: the mixture is solved again after a new snapshot, and when the games between frozen policies have grown by
        this fraction.
      max_policies: newest snapshots that take part, beside those in the present mixture.
      explore: fraction of the mixture spread evenly, so that no snapshot is never met.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    solve: bool = False
    solver: str = AUTO
    growth: float = 0.2
    max_policies: int = 128
    explore: float = 0.05

    def __post_init__(self) -> None:
        if self.solver != AUTO:
            check_name(SOLVERS, self.solver, what="solver")
        require(self.growth > 0.0, f"growth must be positive, not {self.growth}")
        require(self.max_policies >= 2, f"max_policies must be at least 2, not {self.max_policies}")
        require(0.0 <= self.explore <= 1.0, f"explore must lie in [0, 1], not {self.explore}")


FACTORS = ("learning_rate", "entropy_cost", "discount")
OWN_VALUES = ("pfsp_exponent", "self_play")
MAX_HYPERPARAMETER = 1e6
"""Largest factor or value: beyond it nothing is learnt."""


def check_hyperparameter(name: str, value: float) -> None:
    """Refuse a hyperparameter of a player that does not exist or cannot have that value.

    Raises:
      ValueError: saying which.
    """
    require(
        not name.startswith("reward:"),
        f"{name}: rewards have no parts that could be weighed: a game gives one number a seat; weigh them in the game",
    )
    known = name in FACTORS + OWN_VALUES
    require(known, f"no hyperparameter {name!r}; there are {', '.join(FACTORS + OWN_VALUES)}")
    require(0.0 < value < math.inf, f"{name} must be positive and finite, not {value}")
    require(value <= MAX_HYPERPARAMETER, f"{name} must be at most {number_text(MAX_HYPERPARAMETER, 9)}, not {value}")
    require(name != "self_play" or value <= 1.0, f"self_play is a probability, {value} is above 1")


@dataclass(frozen=True)
class HyperparameterConfig:
    """One hyperparameter that PBT may change.

    Fields:
      name: "learning_rate", "entropy_cost" (factors on what is configured), "discount" (factor on
        1 - gamma), "pfsp_exponent" or "self_play" (the values themselves).
      initial: value that the first player keeps at first and the others start around.
      low, high: bounds.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    initial: float = 1.0
    low: float = 0.1
    high: float = 10.0

    def __post_init__(self) -> None:
        require(
            0.0 < self.low <= self.initial <= self.high < math.inf,
            f"{self.name}: 0 < low {self.low} <= initial {self.initial} <= high {self.high} must hold",
        )
        check_hyperparameter(self.name, self.high)


@dataclass(frozen=True)
class PbtConfig:
    """Population based training: who copies whom, and how values change.

    Fields:
      selection: "truncation", "elo_gap", "tournament", "weighted_mean" or "module:attribute", or a mapping of its name
        as `kind` and its options; empty for no PBT.
      hyperparameters: those that PBT changes.
      period_steps: trained steps of a player between two looks at it.
      burn_in_steps: trained steps after a transplant or a reset before a player may copy or be copied.
      min_games: effective games of a player below which nothing is known of it.
      factor: a copied value is multiplied or divided by it.
      mutation: chance that a value changes at all. resample: chance that it is drawn again within its bounds instead.
      across_roles: whether players of different roles copy each other.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    selection: Component = field(default="", hash=False)
    hyperparameters: tuple[HyperparameterConfig, ...] = ()
    period_steps: int = 500_000
    burn_in_steps: int = 1_000_000
    min_games: float = 50.0
    factor: float = 1.2
    mutation: float = 1.0
    resample: float = 0.25
    across_roles: bool = False

    def __post_init__(self) -> None:
        if self.selection:
            require(bool(self.selection_name), "selection: its options are given, and no `kind`")
            check_name(PBT_SELECTIONS, self.selection_name, what="selection")
        names = [item.name for item in self.hyperparameters]
        require(len(set(names)) == len(names), f"a hyperparameter is named twice: {names}")
        require(self.period_steps >= 1, f"period_steps must be at least 1, not {self.period_steps}")
        require(self.burn_in_steps >= 0, f"burn_in_steps must not be negative, not {self.burn_in_steps}")
        require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")
        require(1.0 < self.factor < math.inf, f"factor must be above 1, not {self.factor}")
        for name in ("mutation", "resample"):
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], not {value}")

    @property
    def selection_name(self) -> str:
        """Name of the selection; empty for no PBT."""
        return kind_of(self.selection)
