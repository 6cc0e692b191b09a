"""Acts for all slots of a turn: one call per policy, or one for all policies of an architecture together.

Shape letters: K slots of the turn, P policies, C core state size, H sub-actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from agents.acting.network_group import NetworkGroup, can_group
from agents.acting.policy import (
    ActInputs,
    ActOutputs,
    JoiningPolicy,
    NetworkPolicy,
    Policy,
    PolicyGroup,
    choose_actions,
    fill_blocks,
    require_finite,
)

ALONE = -1
"""Group of a policy that acts for itself."""


class NetworkPolicies:
    """A group of network policies of one architecture, decided in one forward pass."""

    def __init__(self, policies: Sequence[NetworkPolicy]) -> None:
        self._policies = policies
        self._networks = NetworkGroup([policy.network for policy in policies])

    @torch.inference_mode()
    def act(
        self, inputs: ActInputs, slots: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator
    ) -> ActOutputs:
        """As in the protocol."""
        first, turn, count = self._policies[0], inputs.turn, len(slots)
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
        noise = first.draw_noise(count, rng)
        core = output.core[:count].numpy()
        outputs = choose_actions(first.network.head, output.logits[:count], noise, core=core)
        return require_finite(outputs, replace(inputs, slots=slots))


class TurnPolicies:
    """The policies of an arena. Args: policies: P of them, in the order in which `act` counts them."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self._members: list[list[int]] = []
        for index in range(len(policies)):
            self._join(index)
        self._members = [members for members in self._members if len(members) > 1]
        self._group_of = np.full(len(policies), ALONE, np.int64)
        for group, members in enumerate(self._members):
            self._group_of[members] = group
        self._groups: dict[int, PolicyGroup] = {}

    def act(
        self, inputs: ActInputs, holders: NDArray[np.int64], rng: np.random.Generator, *, num_sub_actions: int
    ) -> tuple[ActOutputs, NDArray[np.int32]]:
        """Act for every slot; returns also the version int32 [K] that acted in each.

        Args:
          inputs: every slot of a turn in its order; its core states are overwritten with those after the decisions.
          holders: int64 [K], index of the policy of each slot.
          num_sub_actions: H of the recorded policies.
        """
        counts = np.bincount(holders, minlength=len(self._policies))
        present = np.flatnonzero(counts)
        if len(present) == 1:  # the usual case in self-play: no copies of slots and results
            policy = self._policies[int(present[0])]
            choice = policy.act(inputs, rng)
            return choice, np.full(len(holders), policy.version, np.int32)
        order = np.argsort(holders.astype(np.int16), kind="stable")  # sorted by radix, three times as fast as int64
        ends = np.cumsum(counts)
        outputs = _Outputs(inputs.core, num_sub_actions)
        for group, indices in self._calls(present):
            own = order
            if len(indices) < len(present):
                own = np.concatenate([order[ends[index] - counts[index] : ends[index]] for index in indices])
            if group == ALONE:
                outputs.put(own, self._policies[indices[0]].act(inputs.at(own), rng))
            else:
                sizes = counts[self._members[group]].tolist()
                outputs.put(own, self._group(group).act(inputs, own, sizes, rng))
        versions = np.array([policy.version for policy in self._policies], np.int32)
        return outputs.whole(), versions[holders]

    def _join(self, index: int) -> None:
        """Put a policy into the first group that takes it, or into one of its own."""
        policy = self._policies[index]
        if not isinstance(policy, JoiningPolicy) and not _can_group(policy):
            return
        for members in self._members:
            if _takes(self._policies[members[0]], policy, size=len(members)):
                members.append(index)
                return
        self._members.append([index])

    def _calls(self, present: NDArray[np.int64]) -> list[tuple[int, list[int]]]:
        """Calls as (group, indices of the policies that act together), in the order of their first index."""
        calls: list[tuple[int, list[int]]] = []
        joined: dict[int, list[int]] = {}
        for index, group in zip(present.tolist(), self._group_of[present].tolist(), strict=True):
            if group in joined:
                joined[group].append(index)
                continue
            calls.append((group, [index]))
            if group != ALONE:
                joined[group] = calls[-1][1]
        return [(group if len(indices) > 1 else ALONE, indices) for group, indices in calls]

    def _group(self, group: int) -> PolicyGroup:
        if group not in self._groups:
            members = [self._policies[index] for index in self._members[group]]
            first = members[0]
            if isinstance(first, JoiningPolicy):
                self._groups[group] = first.together(members)
            else:
                self._groups[group] = NetworkPolicies([one for one in members if isinstance(one, NetworkPolicy)])
        return self._groups[group]


class _Outputs:
    """Collects the outputs of several calls in the order of the slots. Args: core: overwritten with the new ones."""

    def __init__(self, core: NDArray[np.float32], num_sub_actions: int) -> None:
        self._core = core
        self._log_probs = np.zeros(len(core), np.float32)
        self._by_sub_action = np.zeros((len(core), num_sub_actions), np.float32) if num_sub_actions else None
        self._actions: NDArray[np.generic] | None = None

    def put(self, slots: NDArray[np.int64], part: ActOutputs) -> None:
        """Take over the outputs for some slots."""
        if self._actions is None:
            self._actions = np.zeros((len(self._core), *part.actions.shape[1:]), part.actions.dtype)
        self._actions[slots], self._log_probs[slots] = part.actions, part.log_probs
        if part.core.shape[1]:
            self._core[slots, : part.core.shape[1]] = part.core
        if self._by_sub_action is not None and part.sub_action_log_probs is not None:
            self._by_sub_action[slots] = part.sub_action_log_probs

    def whole(self) -> ActOutputs:
        """The outputs for every slot of the turn."""
        assert self._actions is not None, "a turn without slots"
        return ActOutputs(self._actions, self._log_probs, self._core, self._by_sub_action)


def _can_group(policy: Policy) -> bool:
    return isinstance(policy, NetworkPolicy) and can_group(policy.network)


def _takes(first: Policy, policy: Policy, *, size: int) -> bool:
    """True if a group of this size, whose first member is given, takes a policy."""
    if isinstance(first, JoiningPolicy):
        return size < first.max_joined and first.joins(policy)
    if not isinstance(first, NetworkPolicy) or not isinstance(policy, NetworkPolicy):
        return False
    config = first.network.config
    return (
        config is not None
        and config == policy.network.config
        and first.greedy == policy.greedy
        and first.dtype == policy.dtype
    )
