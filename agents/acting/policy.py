"""The protocol of policies, its inputs and outputs, and a scripted bot behind it.

Shape letters: K slots to act for, A actions, H sub-actions, C core state size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.agents.weights import Weights
from league.envs.bots import Bot
from league.envs.protocol import BatchedEnv, EnvError, Turn


@dataclass(frozen=True)
class CoreRows:
    """Places of core states, for a policy that keeps these states itself.

    Fields:
      table: number of the table, one for each arena of a host.
      rows: int64 [K], the slots' rows in it.
      given: bool [K], True where the state in `ActInputs.core` counts: at the start of an episode.
      wanted: bool [K], True where the state after this decision is read: an unroll begins with it.
    """

    table: int
    rows: NDArray[np.int64]
    given: NDArray[np.bool_]
    wanted: NDArray[np.bool_]

    def at(self, slots: NDArray[np.int64]) -> CoreRows:
        """Those of some of the slots."""
        return CoreRows(self.table, self.rows[slots], self.given[slots], self.wanted[slots])


@dataclass(frozen=True)
class Round:
    """A round of games that began together; arenas of equal games play equal seeds on the same opponents and chance.

    Fields:
      seed: from which the games began. seats: int64 [N], the seat of each game whose episode counts; -1 where it has
        ended and the game idles.
    """

    seed: int
    seats: NDArray[np.int64]


@dataclass(frozen=True)
class ActInputs:
    """Inputs of a policy: some of the slots of a turn.

    Fields:
      env, turn: the games and their present turn.
      slots: int64 [K], positions in the turn.
      core: float32 [K, C], the slots' core states (zero at the start of an episode).
      history: [N] actions so far of each game of the env, numbered ones; None where the caller keeps none.
      core_rows: of the slots; None where the caller keeps every core state.
      plies: int64 [N], decisions so far in the episode of each game of the env; None where the caller counts none.
      round: that the games are in; None where they are in none.
      first_game: number of the env's first game among those of its host.
    """

    env: BatchedEnv
    turn: Turn
    slots: NDArray[np.int64]
    core: NDArray[np.float32]
    history: Sequence[Sequence[int]] | None = None
    core_rows: CoreRows | None = None
    plies: NDArray[np.int64] | None = None
    round: Round | None = None
    first_game: int = 0

    @property
    def games(self) -> NDArray[np.int64]:
        """int64 [K], the number of each slot's game among those of the host."""
        games: NDArray[np.int64] = self.turn.env_index[self.slots] + self.first_game
        return games

    def at(self, slots: NDArray[np.int64]) -> ActInputs:
        """Those of some of the slots, of inputs for every slot of the turn; without the history."""
        places = None if self.core_rows is None else self.core_rows.at(slots)
        return replace(self, slots=slots, core=self.core[slots], history=None, core_rows=places)


@dataclass(frozen=True)
class ActOutputs:
    """Outputs of a policy.

    Fields:
      actions: [K] int64, or [K, ...] float32 for box actions.
      log_probs: float32 [K] under the sampled distribution; 0 for bots, which are never recorded.
      core: float32 [K, C], core states after this decision.
      sub_action_log_probs: float32 [K, H], term of each sub-action in `log_probs`; None without sub-actions.
      recorded: name -> [K, ...], the further fields of an unroll that the kind of acting records.
    """

    actions: NDArray[np.generic]
    log_probs: NDArray[np.float32]
    core: NDArray[np.float32]
    sub_action_log_probs: NDArray[np.float32] | None = None
    recorded: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


class NotFiniteError(EnvError):
    """A network answered what is no number; the message names the observation, or says that it is the weights."""


def require_finite(outputs: ActOutputs, inputs: ActInputs) -> ActOutputs:
    """The outputs, of which every probability must be a number: else an action stands there that nobody chose.

    Raises:
      NotFiniteError: one is not.
    """
    if np.isfinite(outputs.log_probs).all():
        return outputs
    turn, spec = inputs.turn, inputs.env.spec
    for name, array in turn.obs.items():
        bad = np.argwhere(~np.isfinite(array[inputs.slots])) if array.dtype.kind == "f" else np.zeros((0, 1))
        if len(bad) and name not in spec.value_fields:
            slot, place = int(inputs.slots[bad[0, 0]]), tuple(bad[0, 1:].tolist())
            raise NotFiniteError(
                f"{spec.env_id}, game {turn.env_index[slot]}, seat {turn.seat[slot]}: observation {name!r} is "
                f"{array[(slot, *place)]} at {list(place)}; observations must be finite"
            )
    raise NotFiniteError(
        f"{spec.env_id}: a network answers what is no number although all observations are finite: its weights have "
        "grown beyond bounds; lower learner.learning_rate"
    )


@dataclass(frozen=True)
class Evaluation:
    """Thoughts of a policy about some slots.

    Fields:
      values: float32 [K], the expected return from here on; NaN where a policy estimates none.
      probs: float32 [K, A], of every action; None where actions are not numbered.
    """

    values: NDArray[np.float32]
    probs: NDArray[np.float32] | None


@runtime_checkable
class Evaluating(Protocol):
    """A policy that tells what it thinks."""

    def evaluate(self, inputs: ActInputs) -> Evaluation:
        """Values and action probabilities before acting; draws nothing and moves no core state."""
        ...


class Policy(Protocol):
    """Acts for a seat. `version` is the learner update that its weights come from, -1 for a bot."""

    @property
    def version(self) -> int: ...

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs: ...


class AdoptingPolicy(Policy, Protocol):
    """A policy whose weights change."""

    def adopt(self, weights: Weights) -> None:
        """Act by these weights from now on. Raises WeightsError if they do not fit."""
        ...


class PolicyGroup(Protocol):
    """Policies that act in one call."""

    def act(
        self, inputs: ActInputs, slots: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator
    ) -> ActOutputs:
        """One call and one draw for several of them.

        Args:
          inputs: every slot of the turn. slots: positions in the turn, sorted by place in the group.
          sizes: number of slots of each place.
        Returns:
          Outputs for the slots in this order. They are those of `Policy.act`, called in this order.
        Raises:
          NotFiniteError: a network answers what is no number.
        """
        ...


@runtime_checkable
class GroupingPolicy(Protocol):
    """A policy that may decide in one call with others of its kind."""

    version: int

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs: ...

    def joins(self, other: Policy) -> bool:
        """True if one call can decide for both."""
        ...

    def together(self, policies: Sequence[Policy]) -> PolicyGroup:
        """The group of policies that all join this one; this one is among them."""
        ...


class AskedOutputs(Protocol):
    """Outputs that another process makes."""

    def take(self) -> ActOutputs:
        """Wait for them. From then on the policies have the versions that decided."""
        ...


class AskingGroup(Protocol):
    """Policies for which one request is sent to another process."""

    def ask(
        self, inputs: ActInputs, slots: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator
    ) -> AskedOutputs:
        """Send it; arguments and outputs as in `PolicyGroup.act`. The outputs are taken once."""
        ...


@runtime_checkable
class AskingPolicy(Protocol):
    """A policy that another process decides.

    Attributes:
      max_joined: policies of one request.
    """

    version: int
    max_joined: int

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs: ...

    def joins(self, other: Policy) -> bool:
        """True if one request can ask for the other one too."""
        ...

    def together(self, policies: Sequence[Policy]) -> AskingGroup:
        """The group of policies that all join this one; this one is among them."""
        ...


class BotPolicy:
    """A scripted bot as a policy."""

    version = -1

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Let the bot act; `rng` is not used, because a bot has its own."""
        actions = self._bot.act(inputs.env, inputs.turn, inputs.slots)
        return ActOutputs(actions=actions, log_probs=np.zeros(len(inputs.slots), np.float32), core=inputs.core)
