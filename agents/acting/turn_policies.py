"""Acts for all slots of a turn: one call per policy, or one for all policies of an architecture together.

Shape letters: K slots of the turn, P policies, C core state size, H sub-actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import (
    ActInputs,
    ActOutputs,
    AskedOutputs,
    AskingGroup,
    AskingPolicy,
    GroupingPolicy,
    Policy,
    PolicyGroup,
)

ALONE = -1
"""Group of a policy that acts for itself."""


class Decisions:
    """The decisions of a turn, of which some may still be on their way.

    Args:
      policies: P of them. outputs: of what is decided. holders: int64 [K], index of the policy of each slot.
    """

    def __init__(self, policies: Sequence[Policy], outputs: _Outputs, holders: NDArray[np.int64]) -> None:
        self._policies = policies
        self._outputs = outputs
        self._holders = holders
        self._versions = np.zeros(len(policies), np.int32)
        self._asked: tuple[AskedOutputs, NDArray[np.int64], Sequence[int]] | None = None

    @property
    def is_waited_for(self) -> bool:
        """True if another process still decides some of them."""
        return self._asked is not None

    def decided(self, slots: NDArray[np.int64], part: ActOutputs, indices: Sequence[int]) -> None:
        """Take over outputs for some slots. indices: of the policies that decided."""
        self._outputs.put(slots, part)
        self._versions[indices] = [self._policies[index].version for index in indices]

    def asked(self, slots: NDArray[np.int64], part: AskedOutputs, indices: Sequence[int]) -> None:
        """Note a request that was sent, after `settle`: one at a time."""
        assert self._asked is None, "two requests of one turn"
        self._asked = part, slots, indices

    def settle(self) -> None:
        """Wait for what is on its way. Raises what the request raises."""
        if self._asked is not None:
            (part, slots, indices), self._asked = self._asked, None
            self.decided(slots, part.take(), indices)

    def take(self) -> tuple[ActOutputs, NDArray[np.int32]]:
        """Wait; returns the outputs for every slot, and the version int32 [K] that acted in each."""
        self.settle()
        return self._outputs.whole(), self._versions[self._holders]


class TurnPolicies:
    """The policies of an arena. Args: policies: P of them, in the order in which `begin` counts them."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self._members: list[list[int]] = []
        for index in range(len(policies)):
            self._join(index)
        self._asks = [isinstance(policy, AskingPolicy) for policy in policies]
        self._members = [members for members in self._members if len(members) > 1 or self._asks[members[0]]]
        self._group_of = np.full(len(policies), ALONE, np.int64)
        for group, members in enumerate(self._members):
            self._group_of[members] = group
        self._groups: dict[int, PolicyGroup] = {}
        self._asking_groups: dict[int, AskingGroup] = {}

    def begin(
        self, inputs: ActInputs, holders: NDArray[np.int64], rng: np.random.Generator, *, num_sub_actions: int
    ) -> Decisions:
        """Act for every slot; what other processes decide may still be on its way.

        Args:
          inputs: every slot of a turn in its order; its core states are overwritten with those after the decisions.
          holders: int64 [K], index of the policy of each slot.
          num_sub_actions: H of the recorded policies.
        """
        counts = np.bincount(holders, minlength=len(self._policies))
        present = np.flatnonzero(counts)
        outputs = _Outputs(inputs.core, num_sub_actions, in_order=len(present) == 1)
        decisions = Decisions(self._policies, outputs, holders)
        order, ends = inputs.slots, np.cumsum(counts)
        if len(present) > 1:  # else nothing is moved, as in most turns of self-play
            order = np.argsort(holders.astype(np.int16), kind="stable")  # by radix, three times as fast as int64
        for group, indices in self._calls(present):
            own = order
            if len(indices) < len(present):
                own = np.concatenate([order[ends[index] - counts[index] : ends[index]] for index in indices])
            if group == ALONE:
                chosen = inputs if own is inputs.slots else inputs.at(own)
                decisions.decided(own, self._policies[indices[0]].act(chosen, rng), indices)
                continue
            sizes = counts[self._members[group]].tolist()
            if self._asks[indices[0]]:
                decisions.settle()
                decisions.asked(own, self._asking_group(group).ask(inputs, own, sizes, rng), indices)
            else:
                decisions.decided(own, self._group(group).act(inputs, own, sizes, rng), indices)
        return decisions

    def _join(self, index: int) -> None:
        """Put a policy into the first group that takes it, or into one of its own."""
        policy = self._policies[index]
        if not isinstance(policy, GroupingPolicy | AskingPolicy) or not policy.joins(policy):
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
        return [(group if len(indices) > 1 or self._asks[indices[0]] else ALONE, indices) for group, indices in calls]

    def _group(self, group: int) -> PolicyGroup:
        if group not in self._groups:
            members = [self._policies[index] for index in self._members[group]]
            first = members[0]
            assert isinstance(first, GroupingPolicy)
            self._groups[group] = first.together(members)
        return self._groups[group]

    def _asking_group(self, group: int) -> AskingGroup:
        if group not in self._asking_groups:
            members = [self._policies[index] for index in self._members[group]]
            first = members[0]
            assert isinstance(first, AskingPolicy)
            self._asking_groups[group] = first.together(members)
        return self._asking_groups[group]


class _Outputs:
    """Collects the outputs of several calls in the order of the slots.

    Args:
      core: overwritten with the new ones, unless `in_order`.
      in_order: there is one call, for all slots as they stand, so that its outputs need no copy.
    """

    def __init__(self, core: NDArray[np.float32], num_sub_actions: int, *, in_order: bool) -> None:
        self._in_order = in_order
        self._single: ActOutputs | None = None
        self._core = core
        self._log_probs = np.zeros(len(core), np.float32)
        self._by_sub_action = np.zeros((len(core), num_sub_actions), np.float32) if num_sub_actions else None
        self._recorded: dict[str, NDArray[np.generic]] = {}
        self._actions: NDArray[np.generic] | None = None

    def put(self, slots: NDArray[np.int64], part: ActOutputs) -> None:
        """Take over the outputs for some slots."""
        if self._in_order:
            self._single = part
            return
        if self._actions is None:
            self._actions = np.zeros((len(self._core), *part.actions.shape[1:]), part.actions.dtype)
        self._actions[slots], self._log_probs[slots] = part.actions, part.log_probs
        if part.core.shape[1]:
            self._core[slots, : part.core.shape[1]] = part.core
        if self._by_sub_action is not None and part.sub_action_log_probs is not None:
            self._by_sub_action[slots] = part.sub_action_log_probs
        for name, values in part.recorded.items():
            if name not in self._recorded:
                self._recorded[name] = np.zeros((len(self._core), *values.shape[1:]), values.dtype)
            self._recorded[name][slots] = values

    def whole(self) -> ActOutputs:
        """The outputs for every slot of the turn."""
        if self._single is not None:
            return self._single
        assert self._actions is not None, "a turn without slots"
        return ActOutputs(self._actions, self._log_probs, self._core, self._by_sub_action, self._recorded)


def _takes(first: Policy, policy: Policy, *, size: int) -> bool:
    """True if a group of this size, whose first member is given, takes a policy."""
    if isinstance(first, AskingPolicy) and size >= first.max_joined:
        return False
    return isinstance(first, GroupingPolicy | AskingPolicy) and first.joins(policy)
