"""The inference host: batched decisions of several policies for many clients, and the core states of their games.

Shape letters: K rows of a batch, H sub-actions, C core state size.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.acting.central.shared_rows import SharedRows
from league.agents.acting.network_group import NetworkGroup, can_group
from league.agents.acting.network_policy import sample_actions
from league.agents.acting.row_split import padded_size
from league.agents.nets.network import Network, NetworkOutput
from league.agents.weights import Weights, adopt

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
class InferenceRequest:
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
    """Decides for the rows of many clients, in one forward pass where the networks' modules allow it.

    Otherwise every policy of a batch has a pass of its own. All are begun before the first answer is read, so that a
    GPU is waited for once.

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
        self._groups = can_group(self._network)
        self._together: _Together | None = None
        self._cores = CoreTable(network.core_size, self._device)

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
            self._together = None
        adopt(held.network, weights)
        held.version = weights.version
        self._held[policy] = held
        self._held.move_to_end(policy)

    def require(self, request: InferenceRequest) -> None:
        """Check that every policy of a request is held. Raises PolicyNotHeld with those that are not."""
        unknown = tuple(dict.fromkeys(part.policy for part in request.parts if part.policy not in self._held))
        if unknown:
            raise PolicyNotHeld(unknown)

    @torch.inference_mode()
    def decide(self, requests: Sequence[InferenceRequest]) -> None:
        """Write the answers to all requests into their rows. Raises PolicyNotHeld before anything is written."""
        by_policy: dict[str, list[_Place]] = {}
        for request in requests:
            self.require(request)
            for part in request.parts:
                held, rows = self._held[part.policy], slice(part.start, part.stop)
                place = _Place(request.shared, (request.client, request.table), rows, held.version)
                by_policy.setdefault(part.policy, []).append(place)
        for policy in by_policy:
            self._held.move_to_end(policy)
        if len(by_policy) == 1 or not self._groups:
            passes = [self._begin(places, self._held[policy].network.step) for policy, places in by_policy.items()]
        else:
            passes = [self._begin_together(by_policy)]
        for begun in passes:
            begun.write()

    def forget(self, client: int) -> None:
        """Give up the core states of a client that has left."""
        self._cores.forget(client)

    def _begin_together(self, by_policy: Mapping[str, list[_Place]]) -> _Pass:
        """Begin one pass for several policies."""
        if self._together is None:
            self._together = _Together({policy: held.network for policy, held in self._held.items()})
        group = self._together
        present = sorted(by_policy, key=group.order.__getitem__)
        sizes = [0] * len(group.order)
        for policy in present:
            sizes[group.order[policy]] = sum(place.count for place in by_policy[policy])
        total = sum(sizes)
        sizes[group.order[present[-1]]] += padded_size(total) - total
        step = functools.partial(group.networks.step, sizes=sizes)
        return self._begin([place for policy in present for place in by_policy[policy]], step)

    def _begin(self, places: Sequence[_Place], step: Callable[..., NetworkOutput]) -> _Pass:
        """Begin a pass, and keep the core states that it makes."""
        count = sum(place.count for place in places)
        missing = padded_size(count) - count
        obs = {
            name: self._batch([place.shared.obs[name][place.rows] for place in places], missing)
            for name in places[0].shared.obs
        }
        masks = [place.shared.action_mask[place.rows] for place in places if place.shared.action_mask is not None]
        mask = self._batch(masks, missing) if masks else None
        core_size, kept = self._network.core_size, None
        core = torch.zeros(count + missing, core_size, device=self._device)
        if core_size:
            kept = self._kept_at(places)
            core[:count] = self._cores.states[kept]
        output = step(obs, core=core, action_mask=mask)
        noise = self._batch([place.shared.noise[place.rows] for place in places], 0)
        actions, log_probs, by_sub_action = sample_actions(self._network.head, output.logits[:count], noise)
        wanted = None
        if kept is not None:
            self._cores.states[kept] = output.core[:count].float()
            chosen = np.flatnonzero(np.concatenate([place.shared.wanted[place.rows] for place in places]))
            wanted = output.core[self._moved(chosen)].float() if len(chosen) else None
        return _Pass(places, actions, log_probs, by_sub_action, wanted)

    def _kept_at(self, places: Sequence[_Place]) -> Tensor:
        """Rows of the core states in the table, after those that the requests begin with are put there."""
        for place in places:  # first, since a table that grows moves
            least = int(place.shared.rows[place.rows].max()) + 1
            self._cores.make_room(place.table, rows=max(least, place.shared.sizes.capacity))
        found, blank, given, cores = [], [], [], []
        for place in places:
            shared, kept = place.shared, place.shared.rows[place.rows] + self._cores.start_of(place.table)
            found.append(kept)
            blank.append(kept[shared.blank[place.rows]])
            fresh = np.flatnonzero(shared.given[place.rows])
            if len(fresh):
                given.append(kept[fresh])
                cores.append(shared.core[place.rows][fresh])
        emptied = np.concatenate(blank)
        if len(emptied):  # most episodes begin so, and zeros need not travel
            self._cores.states.index_fill_(0, self._moved(emptied), 0.0)
        if given:
            self._cores.states[self._batch(given, 0)] = self._batch(cores, 0)
        return self._batch(found, 0)

    def _batch(self, arrays: Sequence[NDArray[Any]], missing: int) -> Tensor:
        """The arrays behind one another on the device, with so many further rows like the first."""
        joined = [*arrays, np.repeat(arrays[0][:1], missing, axis=0)] if missing else arrays
        return self._moved(joined[0] if len(joined) == 1 else np.concatenate(joined))

    def _moved(self, array: NDArray[Any]) -> Tensor:
        """The array on the device; nobody waits for the copy."""
        tensor = torch.from_numpy(array)
        return tensor if self._device.type == "cpu" else tensor.pin_memory().to(self._device, non_blocking=True)


class _Together:
    """All policies held as one group of networks. order: policy -> its place in the group."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self.networks = NetworkGroup(list(networks.values()))
        self.order = {policy: place for place, policy in enumerate(networks)}


@dataclass(frozen=True)
class _Place:
    """Rows of a request that one policy decides.

    Fields:
      table: number of the client, and of its table of core states. rows: where they are.
      version: of the weights that decide.
    """

    shared: SharedRows
    table: tuple[int, int]
    rows: slice
    version: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True)
class _Pass:
    """A pass that was begun, for K rows.

    Fields:
      places: of the rows, in order.
      actions: [K, ...]. log_probs: float32 [K]. by_sub_action: float32 [K, H], None without sub-actions.
      wanted: float32 [rows that want it, C], core states after the decision; None for none.
    """

    places: Sequence[_Place]
    actions: Tensor
    log_probs: Tensor
    by_sub_action: Tensor | None
    wanted: Tensor | None

    def write(self) -> None:
        """Wait for the pass, and write the answers into the rows of the requests."""
        actions, log_probs = self.actions.cpu().numpy(), self.log_probs.cpu().numpy()
        split = None if self.by_sub_action is None else self.by_sub_action.cpu().numpy()
        cores = None if self.wanted is None else self.wanted.cpu().numpy()
        start, handed = 0, 0
        for place in self.places:
            shared, here = place.shared, slice(start, start + place.count)
            shared.actions[place.rows], shared.log_probs[place.rows] = actions[here], log_probs[here]
            if shared.sub_action_log_probs is not None and split is not None:
                shared.sub_action_log_probs[place.rows] = split[here]
            shared.versions[place.rows] = place.version
            if cores is not None:
                chosen = np.flatnonzero(shared.wanted[place.rows])
                shared.core[place.rows.start + chosen] = cores[handed : handed + len(chosen)]
                handed += len(chosen)
            start = here.stop


class CoreTable:
    """The core states of the tables of many clients, behind one another.

    Attributes:
      states: float32 [rows of all, C]; replaced when it grows.
    """

    def __init__(self, core_size: int, device: torch.device) -> None:
        self.states = torch.zeros(0, core_size, device=device)
        self._used: dict[tuple[int, int], slice] = {}
        self._free: list[slice] = []

    def __len__(self) -> int:
        """Number of tables."""
        return len(self._used)

    def make_room(self, key: tuple[int, int], *, rows: int) -> None:
        """Give a client's table so many rows at least; one that grows keeps its states and moves.

        key: numbers of the client and of its table.
        """
        held = self._used.get(key)
        if held is not None and held.stop - held.start >= rows:
            return
        new = self._room(rows)
        if held is not None:
            self.states[new.start : new.start + held.stop - held.start] = self.states[held]
            self._free.append(held)
        self._used[key] = new

    def start_of(self, key: tuple[int, int]) -> int:
        """The first row of a client's table, for which room was made."""
        return int(self._used[key].start)

    def forget(self, client: int) -> None:
        """Give up the tables of a client."""
        for key in [key for key in self._used if key[0] == client]:
            self._free.append(self._used.pop(key))

    def _room(self, rows: int) -> slice:
        """Rows of zeros: the smallest gap in which they fit, else new ones at the end."""
        fitting = [gap for gap in self._free if gap.stop - gap.start >= rows]
        if fitting:
            chosen = min(fitting, key=lambda gap: gap.stop - gap.start)
            self._free.remove(chosen)
            self.states[chosen] = 0.0
            return chosen
        start = len(self.states)
        self.states = torch.cat([self.states, self.states.new_zeros(rows, self.states.shape[1])])
        return slice(start, start + rows)
