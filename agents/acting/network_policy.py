"""Policies that are one network: its forward pass, and the choice of actions from its outputs; alone and in a group.

Shape letters: K slots to act for, P dist_params, C core state size, H sub-actions.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.network_group import NetworkGroup, can_group
from league.agents.acting.plain_acting import PackedNetwork, PlainActing
from league.agents.acting.policy import ActInputs, ActOutputs, Evaluation, Policy, require_finite
from league.agents.acting.row_split import fill_blocks
from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.heads import Head
from league.agents.nets.network import Network
from league.agents.nets.sub_actions import SubActionsHead
from league.agents.torch_runtime import with_own_defaults
from league.agents.weights import Weights, adopt


class Estimates(NamedTuple):
    """The outputs of a network for some slots: dist_params float32 [K, P], values [K], core states float32 [K, C]."""

    dist_params: torch.Tensor
    values: torch.Tensor
    core: NDArray[np.float32]


class ActionChoice(Protocol):
    """A rule that chooses actions from the outputs of a network. Policies of equal choices act together."""

    def choose(self, head: Head, outputs: Estimates, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Actions for the slots of `inputs`, in their order, and what is recorded about them.

        A row whose outputs are no numbers has a log-probability that is none, see `require_finite`.
        """
        ...


@dataclass(frozen=True)
class Sampling:
    """Samples from the head's own distribution or, if greedy, takes the likeliest action."""

    greedy: bool = False

    def choose(self, head: Head, outputs: Estimates, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        dist_params = outputs.dist_params
        if self.greedy:
            actions = head.mode(dist_params)
            log_probs = head.log_prob(dist_params, actions)
            return ActOutputs(actions=actions.numpy(), log_probs=log_probs.numpy(), core=outputs.core)
        noise = torch.from_numpy(rng.random((len(inputs.slots), head.num_noise), dtype=np.float32))
        actions, log_probs, by_sub_action = sample_actions(head, dist_params, noise)
        return ActOutputs(
            actions=actions.numpy(),
            log_probs=log_probs.numpy(),
            core=outputs.core,
            sub_action_log_probs=None if by_sub_action is None else by_sub_action.numpy(),
        )


SAMPLED, GREEDY = Sampling(), Sampling(greedy=True)


def _expected(head: Head, dist_params: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The return that a policy expects, float32 [K]; NaN of a head beside which no state value is learnt."""
    if isinstance(head, QValuesHead):
        return head.expected_values(dist_params, values)
    return torch.full_like(values, torch.nan) if isinstance(head, DeterministicHead) else values


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


class NetworkPolicy:
    """A network, and how an action is chosen from its outputs.

    Args:
      network: has no tensor in common with any learner; converted here to `dtype`.
      dtype: compute type of the forward pass; log-probabilities are always float32.
      choice: of the actions.

    Attributes:
      network: the copy that acts.
      version: of the weights adopted last.
    """

    def __init__(self, network: Network, *, dtype: torch.dtype = torch.float32, choice: ActionChoice = SAMPLED) -> None:
        self.network = copy.deepcopy(network).to(dtype).eval().requires_grad_(False)
        self.choice = choice
        self.dtype = dtype
        self.version = 0
        self._can_group = can_group(self.network)

    @property
    def core_size(self) -> int:
        """C."""
        return self.network.core_size

    @functools.cached_property
    def packed(self) -> PackedNetwork | None:
        """The weights of a compiled step, made for the first decision: until then they may be put elsewhere.

        None where the network is another one, or another choice is made.
        """
        return PackedNetwork.of(self.network) if self.choice == SAMPLED and self.dtype == torch.float32 else None

    @functools.cached_property
    def _compiled(self) -> PlainActing | None:
        return _compiled_step([self])

    def adopt(self, weights: Weights) -> None:
        """Copy published weights. Raises WeightsError if they do not fit."""
        adopt(self.network, weights)
        if (packed := vars(self).get("packed")) is not None:  # not made for this: see there
            packed.forget()
        self.version = weights.version

    @with_own_defaults
    @torch.inference_mode()
    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """One batched forward pass and one draw for each slot. Raises NotFiniteError."""
        if self._compiled is not None and self._compiled.takes(inputs.turn):
            return _sampled(self._compiled, inputs, [len(inputs.slots)], rng)
        dist_params, values, core = self._forward(inputs)
        outputs = self.choice.choose(self.network.head, Estimates(dist_params, values, core), inputs, rng)
        return require_finite(outputs, inputs)

    def joins(self, other: Policy) -> bool:
        """As in the protocol: the other has the same architecture and chooses in the same way."""
        return (
            isinstance(other, NetworkPolicy)
            and self._can_group
            and self.network.config is not None
            and self.network.config == other.network.config
            and self.choice == other.choice
            and self.dtype == other.dtype
        )

    def together(self, policies: Sequence[Policy]) -> NetworkPolicies:
        return NetworkPolicies([policy for policy in policies if isinstance(policy, NetworkPolicy)])

    @with_own_defaults
    @torch.inference_mode()
    def evaluate(self, inputs: ActInputs) -> Evaluation:
        """See `Evaluating`; the probabilities are those of the head, whatever the choice makes of them."""
        dist_params, values, _ = self._forward(inputs)
        probs = self.network.head.probabilities(dist_params)
        known: NDArray[np.float32] | None = None if probs is None else probs.numpy()
        return Evaluation(_expected(self.network.head, dist_params, values.float()).numpy(), known)

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


class NetworkPolicies:
    """A group of network policies of one architecture, decided in one forward pass."""

    def __init__(self, policies: Sequence[NetworkPolicy]) -> None:
        self._policies = policies
        self._networks = NetworkGroup([policy.network for policy in policies])

    @functools.cached_property
    def _compiled(self) -> PlainActing | None:
        return _compiled_step(self._policies)

    @torch.inference_mode()
    def act(
        self, inputs: ActInputs, slots: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator
    ) -> ActOutputs:
        first, turn, count = self._policies[0], inputs.turn, len(slots)
        own = replace(inputs, slots=slots)
        if self._compiled is not None and self._compiled.takes(turn):
            return _sampled(self._compiled, replace(own, core=np.zeros((count, 0), np.float32)), sizes, rng)
        rows, counts = fill_blocks(slots), list(sizes)
        last = max(place for place, size in enumerate(counts) if size)
        counts[last] += len(rows) - count
        core = inputs.core[rows, : first.core_size] if first.core_size else np.zeros((len(rows), 0), np.float32)
        output = self._networks.step(
            {name: torch.from_numpy(array.take(rows, axis=0)) for name, array in turn.obs.items()},
            core=torch.from_numpy(core),
            action_mask=None if turn.action_mask is None else torch.from_numpy(turn.action_mask.take(rows, axis=0)),
            sizes=counts,
        )
        estimates = Estimates(output.logits[:count], output.values[:count], output.core[:count].numpy())
        return require_finite(first.choice.choose(first.network.head, estimates, own, rng), own)


def _compiled_step(policies: Sequence[NetworkPolicy]) -> PlainActing | None:
    """The compiled step of policies that join; None where they have none."""
    packed = [policy.packed for policy in policies if policy.packed is not None]
    return PlainActing(packed) if len(packed) == len(policies) else None


def _sampled(compiled: PlainActing, inputs: ActInputs, sizes: Sequence[int], rng: np.random.Generator) -> ActOutputs:
    """As `Sampling.choose` after a forward pass; sizes: slots of each network."""
    noise = rng.random(len(inputs.slots), dtype=np.float32)
    actions, log_probs = compiled.act(inputs.turn, inputs.slots, sizes, noise)
    return require_finite(ActOutputs(actions, log_probs, inputs.core), inputs)
