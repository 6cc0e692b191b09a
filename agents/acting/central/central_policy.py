"""A policy whose decisions an inference host makes, and the way to a host in the same process.

Shape letters: K slots to act for, R most rows of all requests at once, C core state size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.central.inference_host import InferenceHost, InferenceRequest, Part
from league.agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from league.agents.acting.policy import ActInputs, ActOutputs, Policy, require_finite
from league.agents.nets.network import Network
from league.agents.weights import Weights
from league.envs.protocol import EnvSpec

MAX_ASKED = 16
"""Policies of one request to an inference host, which must hold all of them at once."""


class InferenceLost(Exception):  # noqa: N818
    """The inference host died, did not answer in time or could not decide; core states that it kept are lost."""


@dataclass(frozen=True)
class AskedRows:
    """Rows of a request that one policy decides. weights: of the policy, for a host that does not hold it any more."""

    policy: str
    weights: Weights
    count: int


class RequestRows:
    """The rows of the requests that are not answered yet, at most two: of one the first ones, of the other the last.

    Args:
      capacity: R.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._taken: dict[int, int] = {}

    def take(self, count: int) -> int:
        """The first of so many free rows."""
        first = 0 if 0 not in self._taken else self._capacity - count
        is_free = all(first >= start + size or first + count <= start for start, size in self._taken.items())
        assert is_free and first >= 0, "two requests for the same rows"
        self._taken[first] = count
        return first

    def give_back(self, first: int) -> None:
        """Free the rows of a request."""
        del self._taken[first]

    def clear(self) -> None:
        """Free all rows."""
        self._taken.clear()


class InferenceClient(Protocol):
    """An actor host's way to its inference host.

    Attributes:
      rows: memory shared with the host. free: which of them no request has.
      returns_core: whether every core state is wanted back, so that the caller could be saved.
    """

    rows: SharedRows
    free: RequestRows
    returns_core: bool

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """Hand weights over; the host keeps its own where they are as new, unless `replace`. Raises InferenceLost."""
        ...

    def ask(self, asked: Sequence[AskedRows], *, first: int, table: int) -> int:
        """Have the rows from `first` on decided, those of each policy behind one another; returns a number at once.

        Args:
          table: of the rows' core states.
        Raises:
          InferenceLost: see there.
        """
        ...

    def wait(self, number: int) -> None:
        """Wait until the rows of a request are decided. Raises InferenceLost."""
        ...


class DirectInferenceClient:
    """The way to an inference host in the same process."""

    returns_core = True

    def __init__(self, host: InferenceHost, spec: EnvSpec, network: Network, *, capacity: int) -> None:
        sizes = RowSizes.of(network, capacity=capacity)
        self._host = host
        self.rows = SharedRows(spec, sizes, bytearray(block_size(spec, sizes)))
        self.free = RequestRows(capacity)

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        self._host.hold(policy, weights, replace=replace)

    def ask(self, asked: Sequence[AskedRows], *, first: int, table: int) -> int:
        """As in the protocol; decides before it returns."""
        parts, start = [], first
        for part in asked:
            if self._host.version_of(part.policy) is None:
                self._host.hold(part.policy, part.weights)
            parts.append(Part(part.policy, start, start + part.count))
            start += part.count
        self._host.decide([InferenceRequest(0, table, self.rows, tuple(parts))])
        return 0

    def wait(self, number: int) -> None:
        """As in the protocol: there is nothing to wait for."""


class CentralPolicy:
    """A policy of the league that acts at an inference host.

    The noise of its samples is drawn here: the same seeds give the same actions as local acting does.
    """

    max_joined = MAX_ASKED

    def __init__(self, name: str, client: InferenceClient) -> None:
        self._name = name
        self._client = client
        self._weights: Weights | None = None
        self.version = 0

    def adopt(self, weights: Weights) -> None:
        """Hand published weights over. Raises InferenceLost."""
        before = self._weights
        went_back = before is not None and weights is not before and weights.version <= before.version
        self._client.hold(self._name, weights, replace=went_back)
        self._weights = weights
        self.version = weights.version

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """One request; `version` is then that of the weights that decided. Raises InferenceLost, NotFiniteError."""
        return _ask([self], [len(inputs.slots)], inputs, rng).take()

    def asking(self, count: int) -> AskedRows:
        """Its part of a request."""
        assert self._weights is not None, "a policy without weights"
        return AskedRows(self._name, self._weights, count)

    def joins(self, other: Policy) -> bool:
        """True if both ask the same host by the same way, so that one request does for both."""
        return isinstance(other, CentralPolicy) and self._client is other._client

    def together(self, policies: Sequence[Policy]) -> CentralPolicies:
        return CentralPolicies([policy for policy in policies if isinstance(policy, CentralPolicy)])


class CentralPolicies:
    """A group of central policies, which ask by one request."""

    def __init__(self, policies: Sequence[CentralPolicy]) -> None:
        self._policies = policies

    def ask(
        self, inputs: ActInputs, slots: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator
    ) -> CentralRequest:
        """As in the protocol. Raises also InferenceLost."""
        return _ask(self._policies, sizes, inputs if slots is inputs.slots else inputs.at(slots), rng)


@dataclass(frozen=True)
class CentralRequest:
    """A request that was sent.

    Fields:
      number: of it. present: policies with their numbers of rows. inputs: of all its slots. rows: in the shared memory.
    """

    client: InferenceClient
    number: int
    present: Sequence[tuple[CentralPolicy, int]]
    inputs: ActInputs
    rows: slice

    def take(self) -> ActOutputs:
        """Wait for the answer, and set the policies' versions to those that decided.

        Raises:
          InferenceLost, NotFiniteError: as `CentralPolicy.act`.
        """
        self.client.wait(self.number)
        shared, rows, start = self.client.rows, self.rows, self.rows.start
        for policy, size in self.present:
            policy.version = int(shared.versions[start])
            start += size
        by_sub_action = shared.sub_action_log_probs
        outputs = ActOutputs(
            actions=shared.actions[rows].copy(),
            log_probs=shared.log_probs[rows].copy(),
            core=shared.core[rows].copy() if shared.sizes.core_size else self.inputs.core,
            sub_action_log_probs=None if by_sub_action is None else by_sub_action[rows].copy(),
        )
        self.client.free.give_back(rows.start)
        return require_finite(outputs, self.inputs)


def _ask(
    policies: Sequence[CentralPolicy], sizes: Sequence[int], inputs: ActInputs, rng: np.random.Generator
) -> CentralRequest:
    """Send one request for the slots, sorted by policy, so many for each."""
    client, shared = policies[0]._client, policies[0]._client.rows
    turn, slots = inputs.turn, inputs.slots
    count = len(slots)
    first = client.free.take(count)
    rows = slice(first, first + count)
    present = [(policy, size) for policy, size in zip(policies, sizes, strict=True) if size]
    in_order = count == len(turn.env_index) and len(present) == 1
    for name, array in shared.obs.items():
        array[rows] = turn.obs[name] if in_order else turn.obs[name][slots]
    if shared.action_mask is not None:
        mask = turn.action_mask
        shared.action_mask[rows] = True if mask is None else mask if in_order else mask[slots]
    shared.noise[rows] = rng.random((count, shared.sizes.num_noise), dtype=np.float32)
    core_size, table = shared.sizes.core_size, 0
    if core_size:
        places = inputs.core_rows
        assert places is not None, "a caller that numbers no core states"
        table = places.table
        shared.rows[rows], shared.wanted[rows] = places.rows, places.wanted | client.returns_core
        shared.given[rows] = shared.blank[rows] = False
        new = np.flatnonzero(places.given)
        is_blank = ~inputs.core[new, :core_size].any(axis=1)
        shared.blank[first + new[is_blank]] = True
        given = new[~is_blank]
        shared.given[first + given], shared.core[first + given] = True, inputs.core[given, :core_size]
    try:
        number = client.ask([policy.asking(size) for policy, size in present], first=first, table=table)
    except InferenceLost:
        client.free.clear()  # the other request is lost with the host as well
        raise
    return CentralRequest(client, number, present, inputs, rows)
