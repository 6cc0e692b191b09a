"""Policies: a network, a frozen copy of one, or a scripted bot behind one protocol.

Shape letters: K slots to act for, A actions, H sub-actions, C core state size.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.nets.heads import Head
from league.agents.nets.kernels.distributions import probabilities
from league.agents.nets.network import Network
from league.agents.nets.sub_actions import SubActionsHead
from league.agents.torch_runtime import with_own_defaults
from league.agents.weights import Weights, adopt
from league.envs.bots import Bot
from league.envs.protocol import BatchedEnv, EnvError, Turn

BLOCK_SLOTS = 64
"""Forward passes take a whole number of blocks of this many rows. The number of a policy's slots changes every turn.
The matrix library builds and keeps a kernel for every number it meets, which would cost hundreds of megabytes."""


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
      seed: from which the games began. seats: int64 [N], the seat of each game whose episode counts.
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
      round: that the games are in; None where they are in none.
    """

    env: BatchedEnv
    turn: Turn
    slots: NDArray[np.int64]
    core: NDArray[np.float32]
    history: Sequence[Sequence[int]] | None = None
    core_rows: CoreRows | None = None
    round: Round | None = None

    def at(self, slots: NDArray[np.int64]) -> ActInputs:
        """Those of some of the slots, of inputs for every slot of the turn; without the history."""
        places = None if self.core_rows is None else self.core_rows.at(slots)
        return ActInputs(self.env, self.turn, slots, self.core[slots], core_rows=places, round=self.round)


@dataclass(frozen=True)
class ActOutputs:
    """Outputs of a policy.

    Fields:
      actions: [K] int64, or [K, ...] float32 for box actions.
      log_probs: float32 [K] under the sampled distribution; 0 for bots, which are never recorded.
      core: float32 [K, C], core states after this decision.
      sub_action_log_probs: float32 [K, H], term of each sub-action in `log_probs`; None without sub-actions.
    """

    actions: NDArray[np.generic]
    log_probs: NDArray[np.float32]
    core: NDArray[np.float32]
    sub_action_log_probs: NDArray[np.float32] | None = None


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

    version: int

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs: ...


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
          NotFiniteError: as `NetworkPolicy.act`.
        """
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


class NetworkPolicy:
    """A network that samples actions or, if greedy, takes the likeliest one.

    Args:
      network: has no tensor in common with any learner; converted here to `dtype`.
      dtype: compute type of the forward pass; log-probabilities are always float32.
      greedy: take the likeliest action instead of sampling.

    Attributes:
      network: the copy that acts.
      version: of the weights adopted last.
    """

    def __init__(self, network: Network, *, dtype: torch.dtype = torch.float32, greedy: bool = False) -> None:
        self.network = copy.deepcopy(network).to(dtype).eval().requires_grad_(False)
        self.greedy = greedy
        self.dtype = dtype
        self.version = 0

    @property
    def core_size(self) -> int:
        """C."""
        return self.network.core_size

    def adopt(self, weights: Weights) -> None:
        """Copy published weights. Raises WeightsError if they do not fit."""
        adopt(self.network, weights)
        self.version = weights.version

    @with_own_defaults
    @torch.inference_mode()
    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """One batched forward pass and one draw for each slot. Raises NotFiniteError."""
        dist_params, _, core = self._forward(inputs)
        noise = self.draw_noise(len(inputs.slots), rng)
        return require_finite(choose_actions(self.network.head, dist_params, noise, core=core), inputs)

    def draw_noise(self, num_slots: int, rng: np.random.Generator) -> NDArray[np.float32] | None:
        """The uniform numbers float32 [num_slots, num_noise] of its samples; None for a greedy policy."""
        return None if self.greedy else rng.random((num_slots, self.network.head.num_noise), dtype=np.float32)

    @with_own_defaults
    @torch.inference_mode()
    def evaluate(self, inputs: ActInputs) -> Evaluation:
        """See `Evaluating`; of a greedy policy too these are the probabilities that it would sample from."""
        dist_params, values, _ = self._forward(inputs)
        numbered = inputs.env.spec.actions.kind == "categorical"
        probs: NDArray[np.float32] | None = probabilities(dist_params).numpy() if numbered else None
        return Evaluation(values.float().numpy(), probs)

    def _forward(self, inputs: ActInputs) -> tuple[torch.Tensor, torch.Tensor, NDArray[np.float32]]:
        """Policy parameters [K, P], values [K] and core states [K, C]."""
        turn, slots = inputs.turn, inputs.slots
        core = np.ascontiguousarray(inputs.core[:, : self.core_size])  # rows fit the largest core state of all policies
        count = len(slots)
        filled = fill_blocks(slots)
        whole = count == len(filled) == len(turn.env_index)
        obs = {
            name: torch.from_numpy(np.ascontiguousarray(array) if whole else array.take(filled, axis=0))
            for name, array in turn.obs.items()
        }
        mask = turn.action_mask
        legal = (
            None
            if mask is None
            else torch.from_numpy(np.ascontiguousarray(mask) if whole else mask.take(filled, axis=0))
        )
        if len(filled) > count:
            core = np.concatenate([core, np.zeros((len(filled) - count, core.shape[1]), np.float32)])
        output = self.network.step(obs, core=torch.from_numpy(core), action_mask=legal)
        core = output.core[:count].numpy() if self.core_size else inputs.core
        return output.logits[:count], output.values[:count], core


def sample_actions(
    head: Head, dist_params: torch.Tensor, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Actions [K, ...], log-probabilities float32 [K], and terms of sub-actions float32 [K, H] or None.

    Args:
      dist_params: [K, P]. noise: float32 [K, num_noise], uniform in [0, 1).
    """
    if isinstance(head, SubActionsHead):
        actions, by_sub_action = head.sample_sub_actions(dist_params, noise)
        return actions, by_sub_action.sum(0), by_sub_action.t()
    return (*head.sample(dist_params, noise), None)


def padded_size(count: int) -> int:
    """Rows of the forward pass for so many slots."""
    return count + (-count % BLOCK_SLOTS if count > BLOCK_SLOTS else 0)


def fill_blocks(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pad the slots to a whole number of blocks by repeating the first one."""
    missing = padded_size(len(slots)) - len(slots)
    return np.concatenate([slots, np.full(missing, slots[0])]) if missing else slots


def choose_actions(
    head: Head, dist_params: torch.Tensor, noise: NDArray[np.float32] | None, *, core: NDArray[np.float32]
) -> ActOutputs:
    """Sample actions under dist_params [K, P] with uniform noise [K, num_noise]; without noise take the likeliest."""
    if noise is None:
        actions = head.mode(dist_params)
        log_probs = head.log_prob(dist_params, actions)
        return ActOutputs(actions=actions.numpy(), log_probs=log_probs.numpy(), core=core)
    actions, log_probs, by_sub_action = sample_actions(head, dist_params, torch.from_numpy(noise))
    return ActOutputs(
        actions=actions.numpy(),
        log_probs=log_probs.numpy(),
        core=core,
        sub_action_log_probs=None if by_sub_action is None else by_sub_action.numpy(),
    )
