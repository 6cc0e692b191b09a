"""The inference host: batched decisions of several policies for many clients, and the core states of their games.

Shape letters: R rows of a table, K rows of one policy in a batch, C core state size.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.acting.central.shared_rows import SharedRows
from agents.acting.policy import padded_size, sample_actions
from agents.nets.network import Network
from agents.weights import Weights, adopt

MAX_POLICIES = 64
"""Policies held; the one used longest ago is given up first, and its clients hand it over again."""


class PolicyNotHeld(Exception):  # noqa: N818
    """A request names policies that are not held (any more). policies: which."""

    def __init__(self, policies: tuple[str, ...]) -> None:
        super().__init__(", ".join(policies))
        self.policies = policies


@dataclass(frozen=True)
class Part:
    """Rows [start, stop) of a request, which one policy decides."""

    policy: str
    start: int
    stop: int


@dataclass(frozen=True)
class Request:
    """Rows of one client that are to be decided.

    Fields:
      client: number of the client. table: number of one of its tables of core states.
      shared: where the rows are, and where the answers go.
    """

    client: int
    table: int
    shared: SharedRows
    parts: tuple[Part, ...]


@dataclass
class Held:
    """A policy with its weights."""

    network: Network
    version: int


class InferenceHost:
    """Decides for the rows of many clients, one forward pass for each policy of a batch.

    Args:
      network: of every policy; its own weights are not used.
      dtype: compute type of the forward passes. device: where they are computed.
    """

    def __init__(
        self, network: Network, *, dtype: torch.dtype = torch.float32, device: torch.device | None = None
    ) -> None:
        self._device = device or torch.device("cpu")
        self._network = copy.deepcopy(network).to(self._device, dtype).eval().requires_grad_(False)
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._cores: dict[tuple[int, int], Tensor] = {}

    def version_of(self, policy: str) -> int | None:
        """Version of the weights that a policy has here; None if it is not held."""
        held = self._held.get(policy)
        return None if held is None else held.version

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """Give a policy weights, unless it has newer ones.

        Args:
          replace: take weights of no higher version too: those of a learner that continues from a checkpoint, its own
            or, after a transplant, another's.
        Raises:
          WeightsError: they do not fit.
        """
        held = self._held.get(policy)
        if held is not None and held.version >= weights.version and not replace:
            return
        if held is None:
            while len(self._held) >= MAX_POLICIES:
                self._held.popitem(last=False)
            held = Held(copy.deepcopy(self._network), -1)
        adopt(held.network, weights)
        held.version = weights.version
        self._held[policy] = held
        self._held.move_to_end(policy)

    def require(self, request: Request) -> None:
        """Check that every policy of a request is held. Raises PolicyNotHeld with those that are not."""
        unknown = tuple(dict.fromkeys(part.policy for part in request.parts if part.policy not in self._held))
        if unknown:
            raise PolicyNotHeld(unknown)

    @torch.inference_mode()
    def decide(self, requests: Sequence[Request]) -> None:
        """Write the answers to all requests into their rows. Raises PolicyNotHeld before anything is written."""
        by_policy: dict[str, list[tuple[Request, slice]]] = {}
        for request in requests:
            self.require(request)
            for part in request.parts:
                by_policy.setdefault(part.policy, []).append((request, slice(part.start, part.stop)))
        for policy, parts in by_policy.items():
            self._held.move_to_end(policy)
            self._decide(self._held[policy], parts)

    def forget(self, client: int) -> None:
        """Give up the core states of a client that has left."""
        for key in [key for key in self._cores if key[0] == client]:
            del self._cores[key]

    def _decide(self, held: Held, parts: Sequence[tuple[Request, slice]]) -> None:
        network = held.network
        count = sum(place.stop - place.start for _, place in parts)
        missing = padded_size(count) - count
        first = parts[0][0].shared
        obs = {name: self._batch([r.shared.obs[name][at] for r, at in parts], missing) for name in first.obs}
        masks = [r.shared.action_mask[at] for r, at in parts if r.shared.action_mask is not None]
        cores = [self._core(request, place) for request, place in parts] if network.core_size else []
        core = torch.cat([*cores, cores[0].new_zeros(missing, network.core_size)]) if cores else None
        output = network.step(obs, core=core, action_mask=self._batch(masks, missing) if masks else None)
        noise = self._batch([r.shared.noise[at] for r, at in parts], 0)
        actions, log_probs, by_sub_action = sample_actions(network.head, output.logits[:count], noise)
        answers = [actions.cpu().numpy(), log_probs.cpu().numpy()]
        split = None if by_sub_action is None else by_sub_action.cpu().numpy()
        start = 0
        for number, (request, place) in enumerate(parts):
            shared, here = request.shared, slice(start, start + place.stop - place.start)
            shared.actions[place], shared.log_probs[place] = answers[0][here], answers[1][here]
            if shared.sub_action_log_probs is not None and split is not None:
                shared.sub_action_log_probs[place] = split[here]
            shared.versions[place] = held.version
            if cores:
                self._keep(parts[number][0], place, output.core[here])
            start = here.stop

    def _batch(self, arrays: Sequence[NDArray[Any]], missing: int) -> Tensor:
        """The arrays behind one another on the device, with so many further rows like the first."""
        joined = [*arrays, np.repeat(arrays[0][:1], missing, axis=0)] if missing else arrays
        return torch.from_numpy(joined[0] if len(joined) == 1 else np.concatenate(joined)).to(self._device)

    def _core(self, request: Request, place: slice) -> Tensor:
        """Core states [K, C] of a part, after those that came with the request have been taken over."""
        shared = request.shared
        rows = shared.rows[place]
        table = self._table(request, least=int(rows.max()) + 1)
        given = np.flatnonzero(shared.given[place])
        if len(given):
            table[self._index(rows[given])] = torch.from_numpy(shared.core[place][given]).to(self._device)
        return table[self._index(rows)]

    def _keep(self, request: Request, place: slice, core: Tensor) -> None:
        """Store core states [K, C] after a decision, and hand the wanted ones back."""
        shared = request.shared
        core = core.float()
        self._table(request, least=0)[self._index(shared.rows[place])] = core
        wanted = np.flatnonzero(shared.wanted[place])
        if len(wanted):
            shared.core[place.start + wanted] = core[self._index(wanted)].cpu().numpy()

    def _table(self, request: Request, *, least: int) -> Tensor:
        """The core states [R, C] of a client's table, with room for so many rows at least."""
        key = (request.client, request.table)
        table = self._cores.get(key)
        if table is None or len(table) < least:
            rows = max(least, request.shared.sizes.capacity)
            grown = torch.zeros(rows, self._network.core_size, device=self._device)
            if table is not None:
                grown[: len(table)] = table
            self._cores[key] = table = grown
        return table

    def _index(self, places: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(places).to(self._device)
