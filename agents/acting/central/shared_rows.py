"""One block of memory shared by an actor host and its inference host: requests, answers and weights as arrays.

Shape letters: R most rows of a request, A actions, H sub-actions, C core state size, P parameters of the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.nets.network import Network
from league.envs.protocol import EnvSpec
from league.envs.workers.shared_arrays import arrays_over, block_bytes
from league.envs.workers.shared_turn import action_dtype

FLAGS = ("given", "blank", "wanted")
"""Arrays bool [R], in the order of the block."""


@dataclass(frozen=True)
class RowSizes:
    """Sizes that both sides must agree on, beside the spec of the env.

    Fields:
      capacity: R. num_noise: uniform numbers for each sample. num_sub_actions: H. core_size: C. num_parameters: P.
    """

    capacity: int
    num_noise: int
    num_sub_actions: int
    core_size: int
    num_parameters: int

    @classmethod
    def of(cls, network: Network, *, capacity: int) -> RowSizes:
        """The sizes for a network."""
        return cls(
            capacity=capacity,
            num_noise=network.head.num_noise,
            num_sub_actions=network.num_sub_actions,
            core_size=network.core_size,
            num_parameters=sum(parameter.numel() for parameter in network.parameters()),
        )


class SharedRows:
    """Arrays over a block of memory, laid out the same way on both sides.

    Attributes:
      obs: name -> [R, ...]. action_mask: bool [R, A], None without masks. noise: float32 [R, num_noise] in [0, 1).
      rows: int64 [R], place of each row's core state. given: bool [R], True where `core` holds the state before the
        decision. blank: bool [R], True where that state is zero. Elsewhere it is the one that was kept.
      wanted: bool [R], True where `core` is to hold the state after the decision.
      core: float32 [R, C].
      actions: [R, ...]. log_probs: float32 [R]. sub_action_log_probs: float32 [R, H], None without sub-actions.
      versions: int32 [R], of the weights that decided. weights: float32 [P], those that a client hands over.
    """

    def __init__(self, spec: EnvSpec, sizes: RowSizes, block: mmap | bytearray) -> None:
        self.sizes = sizes
        arrays = arrays_over(block, _layout(spec, sizes))
        self.obs = {name: arrays[f"obs.{name}"] for name in spec.observations}
        self.action_mask = arrays.get("action_mask")
        self.noise, self.rows, self.core = arrays["noise"], arrays["rows"], arrays["core"]
        self.given, self.blank, self.wanted = (arrays[name] for name in FLAGS)
        self.actions, self.log_probs, self.versions = arrays["actions"], arrays["log_probs"], arrays["versions"]
        self.sub_action_log_probs = arrays["sub_action_log_probs"] if sizes.num_sub_actions else None
        self.weights: NDArray[np.float32] = arrays["weights"]


def block_size(spec: EnvSpec, sizes: RowSizes) -> int:
    """Bytes of a block."""
    return block_bytes(_layout(spec, sizes))


def _layout(spec: EnvSpec, sizes: RowSizes) -> Iterator[tuple[str, tuple[int, ...], np.dtype[Any]]]:
    """Name, shape and dtype of every array, in order."""
    rows, number, flag = sizes.capacity, np.dtype(np.float32), np.dtype(np.bool_)
    yield "rows", (rows,), np.dtype(np.int64)
    yield "versions", (rows,), np.dtype(np.int32)
    yield from ((name, (rows,), flag) for name in FLAGS)
    yield "log_probs", (rows,), number
    yield "noise", (rows, sizes.num_noise), number
    yield "sub_action_log_probs", (rows, sizes.num_sub_actions), number
    yield "core", (rows, sizes.core_size), number
    yield "actions", (rows, *spec.actions.shape), action_dtype(spec)
    if spec.has_mask:
        yield "action_mask", (rows, spec.actions.num_actions), flag
    yield from (
        (f"obs.{name}", (rows, *field.shape), np.dtype(field.dtype)) for name, field in spec.observations.items()
    )
    yield "weights", (sizes.num_parameters,), number
