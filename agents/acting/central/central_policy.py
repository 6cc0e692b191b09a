"""A policy whose decisions an inference host makes, and the way to a host in the same process.

Shape letters: K slots to act for, C core state size.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from agents.acting.central.inference_host import InferenceHost, Part, Request
from agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from agents.acting.policy import ActInputs, ActOutputs, require_finite
from agents.nets.network import Network
from agents.weights import Weights
from envs.protocol import EnvSpec


class InferenceLost(Exception):  # noqa: N818
    """The inference host died, did not answer in time or could not decide; core states that it kept are lost."""


class InferenceClient(Protocol):
    """An actor host's way to its inference host.

    Attributes:
      rows: memory shared with the host; one request at a time.
      returns_core: whether every core state is wanted back, so that the caller could be saved.
    """

    rows: SharedRows
    returns_core: bool

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """Hand weights over; the host keeps its own where they are as new, unless `replace`. Raises InferenceLost."""
        ...

    def decide(self, policy: str, weights: Weights, *, count: int, table: int) -> None:
        """Have the first `count` rows decided.

        Args:
          weights: of the policy, for a host that does not hold it any more.
          table: of the rows' core states.
        Raises:
          InferenceLost: see there.
        """
        ...


class DirectInferenceClient:
    """The way to an inference host in the same process."""

    returns_core = True

    def __init__(self, host: InferenceHost, spec: EnvSpec, network: Network, *, capacity: int) -> None:
        sizes = RowSizes.of(network, capacity=capacity)
        self._host = host
        self.rows = SharedRows(spec, sizes, bytearray(block_size(spec, sizes)))

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """As in the protocol."""
        self._host.hold(policy, weights, replace=replace)

    def decide(self, policy: str, weights: Weights, *, count: int, table: int) -> None:
        """As in the protocol."""
        if self._host.version_of(policy) is None:
            self._host.hold(policy, weights)
        self._host.decide([Request(0, table, self.rows, (Part(policy, 0, count),))])


class CentralPolicy:
    """A policy of the league that acts at an inference host.

    The noise of its samples is drawn here: the same seeds give the same actions as local acting does.
    """

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
        assert self._weights is not None, "a policy without weights"
        shared, turn, slots = self._client.rows, inputs.turn, inputs.slots
        count = len(slots)
        whole = count == len(turn.env_index)
        for name, array in shared.obs.items():
            array[:count] = turn.obs[name] if whole else turn.obs[name][slots]
        if shared.action_mask is not None:
            mask = turn.action_mask
            shared.action_mask[:count] = True if mask is None else mask if whole else mask[slots]
        shared.noise[:count] = rng.random((count, shared.sizes.num_noise), dtype=np.float32)
        core_size, table = shared.sizes.core_size, 0
        if core_size:
            assert inputs.core_rows is not None, "a caller that numbers no core states"
            table = inputs.core_rows.table
            shared.rows[:count], shared.given[:count] = inputs.core_rows.rows, inputs.core_rows.given
            shared.wanted[:count] = inputs.core_rows.wanted | self._client.returns_core
            given = np.flatnonzero(inputs.core_rows.given)
            shared.core[given] = inputs.core[given, :core_size]
        self._client.decide(self._name, self._weights, count=count, table=table)
        self.version = int(shared.versions[0])
        by_sub_action = shared.sub_action_log_probs
        outputs = ActOutputs(
            actions=shared.actions[:count].copy(),
            log_probs=shared.log_probs[:count].copy(),
            core=shared.core[:count].copy() if core_size else inputs.core,
            sub_action_log_probs=None if by_sub_action is None else by_sub_action[:count].copy(),
        )
        return require_finite(outputs, inputs)
