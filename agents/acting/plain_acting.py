"""Acts for plain networks in one compiled call: forward pass, legal actions and draw, block by block of slots.

Only networks of dense layers with ReLU and a categorical policy in float32 on a CPU take it, as `learner/step` has it.
Actions are those of `Network.step` and `sample_categorical`, and log-probabilities agree to rounding. Observations are
read where they lie: nothing is sorted by network or copied, and no layer's outputs leave the core's cache.

Shape letters: K slots to act for, M networks, A actions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.nets.kernels.compiled import library
from league.agents.nets.kernels.dense_chain import fits
from league.agents.nets.kernels.distributions import ILLEGAL_LOGIT
from league.agents.nets.kernels.plain import FIELD_KINDS, CField, CNetwork
from league.agents.nets.mlp import PlainLayers, plain_layers
from league.agents.nets.network import Network
from league.envs.protocol import Turn

LINE = 16
"""Numbers of a cache line."""


class _Turn(ctypes.Structure):
    """`struct turn` of plain_acting.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("mask", "slots", "noise", "actions", "log_probs")),
        ("num_actions", ctypes.c_long),
    ]


class PackedNetwork:
    """A network's weights as the kernel reads them, packed for the first decision after each change.

    Packing takes as long as deciding for some 25 slots.

    Args:
      kernel: the compiled functions. network: its layers.
    """

    def __init__(self, kernel: ctypes.CDLL, network: PlainLayers) -> None:
        self.kernel = kernel
        self.network = network
        self.record = CNetwork.of(network.layers, has_tanh=network.has_tanh, illegal=ILLEGAL_LOGIT)
        floats = kernel.league_packed_floats(ctypes.byref(self.record)) + LINE
        memory = np.zeros(floats, np.float32)
        self._packed = memory[-(memory.ctypes.data // memory.itemsize) % LINE :]
        self._address = self._packed.ctypes.data
        self._is_stale = True

    @classmethod
    def of(cls, network: Network) -> PackedNetwork | None:
        """The weights of a plain network, which are read where they lie; None of any other."""
        plain = None if network.core_size else plain_layers(network, network.blocks)
        kernel = library("plain_acting") if plain is not None and fits(plain.layers) else None
        return None if kernel is None or plain is None else cls(kernel, plain)

    def forget(self) -> None:
        """The weights have changed."""
        self._is_stale = True

    def address(self) -> int:
        """Where the packed weights lie."""
        if self._is_stale:
            self.kernel.league_pack(ctypes.byref(self.record), ctypes.c_void_p(self._address))
            self._is_stale = False
        return self._address


class PlainActing:
    """The compiled step of M networks of one architecture."""

    def __init__(self, networks: Sequence[PackedNetwork]) -> None:
        first = networks[0].network
        self._networks = networks
        self._fields = first.fields
        self._num_inputs = first.layers[0].in_features
        self._num_actions = first.layers[-1].out_features - 1

    def takes(self, turn: Turn) -> bool:
        """True for observations of the usual types, of as many numbers as the networks read."""
        shown = [turn.obs[field.name] for field in self._fields]
        rows, mask = len(turn.env_index), turn.action_mask
        return (
            all(array.dtype in FIELD_KINDS and len(array) == rows for array in shown)
            and sum(array.size for array in shown) == rows * self._num_inputs
            and (mask is None or (mask.shape == (rows, self._num_actions) and mask.dtype == np.bool_))
        )

    def act(
        self, turn: Turn, slots: NDArray[np.int64], sizes: Sequence[int], noise: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Actions int64 [K] and their log-probabilities float32 [K], for a turn that `takes` holds for.

        Args:
          slots: int64 [K], positions in the turn, those of the first network first. sizes: [M] numbers of them.
          noise: float32 [K], uniform in [0, 1).
        """
        count, rows = len(slots), len(turn.env_index)
        if sum(sizes) != count or len(sizes) != len(self._networks) or noise.size != count:
            raise ValueError(f"{count} slots and {noise.size} numbers for {list(sizes)} of {len(self._networks)}")
        if count and not 0 <= slots.min() <= slots.max() < rows:
            raise ValueError(f"slots {slots.min()} to {slots.max()} of a turn of {rows}")
        shown: list[NDArray[Any]] = [np.ascontiguousarray(turn.obs[field.name]) for field in self._fields]
        mask = None if turn.action_mask is None else np.ascontiguousarray(turn.action_mask)
        actions, log_probs = np.empty(count, np.int64), np.empty(count, np.float32)
        own: list[NDArray[Any]] = [np.ascontiguousarray(slots), np.ascontiguousarray(noise), actions, log_probs]
        fields = [
            CField.of(array.ctypes.data, array.size // max(rows, 1), array.dtype, scaling)
            for array, scaling in zip(shown, self._fields, strict=True)
        ]
        played = _Turn(
            None if mask is None else mask.ctypes.data, *(array.ctypes.data for array in own), self._num_actions
        )
        first = self._networks[0]
        packed = [network.address() if size else None for network, size in zip(self._networks, sizes, strict=True)]
        failed = first.kernel.league_act(
            (CField * len(fields))(*fields),
            ctypes.c_long(len(fields)),
            *(ctypes.byref(played), ctypes.byref(first.record)),
            (ctypes.c_void_p * len(packed))(*packed),
            (ctypes.c_long * len(sizes))(*sizes),
            ctypes.c_long(len(sizes)),
        )
        if failed:
            raise MemoryError("a step of plain networks")
        return actions, log_probs
