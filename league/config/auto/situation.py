"""The situation that settings are chosen for: a game, a budget, a machine, and estimates that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from league.config.game_kind import configured, kind_of_facts
from league.config.run_config import BudgetConfig, GameConfig
from league.core.state.records import GameKind
from league.envs.facts.game_facts import GameCosts, GameFacts

NOMINAL_GAME = GameCosts(make_s=1e-5, make_mib=0.01, reset_s=1e-5, call_s=1e-4, game_s=1e-6)
"""Costs of a fast game, for runs whose settings must not depend on a clock."""

HORIZON_CORE_SECONDS = 3600.0
"""Core-seconds that settings are made for if there is no budget."""

EFFICIENCY = 0.7
"""Part of the time that acting and learning take; the rest is leases, snapshots and journal."""

SPENT_OF_CALLS, SPENT_OF_NOMINAL, SPENT_OF_MEASURED = 0.4, 0.07, 0.3
"""Of a network's costs, what whole runs take of the nominal ones of calls where none were timed, and of those of each
decision where these are nominal or measured: measured passes are short and in float32. See
benchmarks/figures/choosing-defaults.md."""


@dataclass(frozen=True)
class NetworkCosts:
    """Costs of the network on one core, with recording and sending. The defaults: two layers of 128 on a core of 2024.

    Fields:
      act_call_s: seconds of one forward pass whatever the number of decisions. act_s: seconds that each adds.
      update_call_s, learn_s: the same for one update and the decisions in its batch.
      timed_act_call_s, timed_update_call_s: seconds of such calls as timed here, at a core's usual speed; None where
        nothing was timed. They say what a budget holds, and choose nothing that is the same for all small networks.
      spent_share: of act_s and learn_s, what whole runs take. Rules weigh a game's cost against all of them.
      gpu_act_s: seconds of each decision in a large pass on a GPU of this machine; None where there is none, or where
        the network is too cheap to be measured.
      learns_on_gpu: True if there is one, which then learns; the costs of updates above are those of a core.
      weights_mib: of its weights in float32; 0 where it was not built.
    """

    act_call_s: float = 5e-4
    act_s: float = 3e-6
    update_call_s: float = 3e-3
    learn_s: float = 1.2e-5
    timed_act_call_s: float | None = None
    timed_update_call_s: float | None = None
    spent_share: float = SPENT_OF_NOMINAL
    gpu_act_s: float | None = None
    learns_on_gpu: bool = False
    weights_mib: float = 0.0


@dataclass(frozen=True)
class Situation:
    """Everything that a rule may look at beside the settings themselves.

    Fields:
      game: facts of the game. budget: of the run.
      is_exact: True if the run must repeat exactly, so that nothing here rests on a clock.
      cores: processor cores of this machine. memory_mib: its memory.
      core_share: part of a core that a busy process gets beside other programs; see `measure.core_share`.
      core_pace: seconds that a core takes here for a second's work of a core of 2024; see `measure.core_pace`.
      cluster: the Ray cluster that RAY_ADDRESS names; empty without one.
      network: costs of the network.
      chosen: what is set of the kind of the game; what is not follows from its facts.
    """

    game: GameFacts
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    is_exact: bool = False
    cores: int = 2
    memory_mib: float = 8192.0
    core_share: float = 1.0
    core_pace: float = 1.0
    cluster: str = ""
    network: NetworkCosts = NetworkCosts()
    chosen: GameConfig = field(default_factory=GameConfig)

    @property
    def kind(self) -> GameKind:
        """The kind of the game."""
        return configured(self.chosen, kind_of_facts(self.game))

    @property
    def is_mixed(self) -> bool:
        """True if something is hidden, or seats move at once."""
        return self.kind.hides or self.kind.at_once

    @property
    def costs(self) -> GameCosts:
        """Costs of the game: measured, or nominal where nothing was timed."""
        return self.game.costs or NOMINAL_GAME

    @property
    def has_budget(self) -> bool:
        """True if the budget has any limit."""
        return self.budget != BudgetConfig()

    @property
    def core_seconds(self) -> float | None:
        """Core-seconds of the budget; of a limit of wall time, what other programs leave on all cores.

        None without a time limit.
        """
        limits = [
            self.budget.core_seconds,
            None if self.budget.seconds is None else self.budget.seconds * self.cores * self.core_share,
        ]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def reset_s(self) -> float:
        """Core-seconds of a reset that fall on one turn of a game."""
        return self.costs.reset_s / max(self.game.turns.mean, 1.0)

    def turn_s(self, num_envs: int) -> float:
        """Core-seconds per game and turn if `num_envs` are stepped together.

        Steps were timed with the resets that fell among them; those of a long game may have missed all.
        """
        return max(self.costs.turn_s(num_envs), self.reset_s)

    def step_s(self, num_envs: int) -> float:
        """Core-seconds to make one decision: its part of the game's step and of the forward pass."""
        acting = max(self.game.acting, 1e-3)
        per_turn = self.turn_s(num_envs) + self.network.act_call_s / num_envs
        return per_turn / acting + self.network.act_s

    def learn_s(self, *, epochs: int, batch: int) -> float:
        """Core-seconds to learn from one decision, in so many optimizer steps on batches of so many decisions."""
        return epochs * (self.network.learn_s + self.network.update_call_s / batch)

    def decisions(self, num_envs: int, *, epochs: int = 1, batch: int = 2048) -> float:
        """Estimated decisions of all seats in the whole budget; without a budget in `HORIZON_CORE_SECONDS`.

        Env steps count only where no time is given, as for the end of a run. Costs are those of a core of 2024.
        """
        costs = self.network
        act_call_s, update_call_s = costs.timed_act_call_s, costs.timed_update_call_s
        spent = replace(
            costs,
            act_call_s=SPENT_OF_CALLS * costs.act_call_s if act_call_s is None else act_call_s,
            act_s=costs.spent_share * costs.act_s,
            update_call_s=SPENT_OF_CALLS * costs.update_call_s if update_call_s is None else update_call_s,
            learn_s=costs.spent_share * costs.learn_s,
        )
        pace = 1.0 if self.core_seconds is None else self.core_pace
        return replace(self, network=spent).least_decisions(num_envs, epochs=epochs, batch=batch) / pace

    def least_decisions(self, num_envs: int, *, epochs: int = 1, batch: int = 2048) -> float:
        """Decisions that a budget holds at least: if a network costs all that `network` says, a multiple of the truth.

        Rules that ask for a number of something at least go by this, so that a dear update leaves their choice right.
        It knows nothing of this machine's speed at the moment, so that the load of a machine chooses no setting.
        """
        core_seconds = self.core_seconds
        if core_seconds is None and self.budget.env_steps is not None:
            return self.budget.env_steps * self.game.acting
        if core_seconds is None:
            core_seconds = HORIZON_CORE_SECONDS
        decision_s = self.step_s(num_envs) + self.learn_s(epochs=epochs, batch=batch)
        return EFFICIENCY * core_seconds / decision_s


def power_of_two(value: float, *, low: int, high: int) -> int:
    """The power of two nearest to a positive number on a logarithmic scale, within bounds.

    Measured costs vary by some percent from run to run; powers of two chosen from them rarely do.
    """
    exponent = round(math.log2(max(value, 1e-9)))
    return int(min(max(2.0**exponent, low), high))


def rounded_moments(mean: float, deviation: float) -> list[float]:
    """Mean and deviation for a configuration: two digits of the deviation, and the mean to a tenth of it or less."""
    short = float(f"{deviation:.2g}")
    return [round(mean, 1 - math.floor(math.log10(short))), short]
