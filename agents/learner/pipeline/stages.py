"""A network cut into stages of consecutive blocks; only one floating-point tensor passes between two stages.

Shape letters: B rows, T unroll length, S stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from league.agents.learner.data.batch import Batch
from league.agents.learner.step.backend import Boundary, Placement
from league.agents.nets.blocks import Block
from league.agents.nets.network import Network, NetworkOutput, SideInputs, run_block


@dataclass(frozen=True)
class Stage:
    """Consecutive blocks of a network.

    Fields:
      index: place in the pipeline, from 0; num_stages: S.
      blocks: in the order in which they run.
      flat: True if the network has no memory: its blocks then see [B * (T+1), ...] instead of [B, T+1, ...].
    """

    index: int
    num_stages: int
    blocks: tuple[Block, ...]
    flat: bool

    @property
    def is_first(self) -> bool:
        """True for the stage that takes observations instead of features."""
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """True for the stage that returns dist_params and values instead of features."""
        return self.index == self.num_stages - 1

    @property
    def modules(self) -> nn.ModuleDict:
        """The blocks by name."""
        return nn.ModuleDict({block.name: block.module for block in self.blocks})

    def run(self, features: Tensor | None, batch: Batch) -> Tensor | NetworkOutput:
        """Run the stage; returns features for the next stage, or from the last one the result of `Network.forward`.

        Args:
          features: of the previous stage; None for the first.
          batch: the microbatch, for the side inputs.
        """
        side = self._side_inputs(batch)
        for block in self.blocks if not self.is_last else self.blocks[:-1]:
            result = run_block(block, features, side)
            # The state after the last step is dropped: no later stage needs it.
            features = result[0] if isinstance(result, tuple) else result
        if not self.is_last:
            assert features is not None, "a stage has at least one block"
            return features
        logits, values = cast(tuple[Tensor, Tensor], run_block(self.blocks[-1], features, side))
        rows, steps = batch.resets.shape
        return NetworkOutput(logits.reshape(rows, steps, -1), values.reshape(rows, steps), batch.core)

    def _side_inputs(self, batch: Batch) -> SideInputs:
        if not self.flat:
            return SideInputs(batch.obs, batch.resets, batch.core, batch.action_mask, batch.host_resets)
        sees = any("obs" in block.side_inputs for block in self.blocks)
        obs = {name: field.flatten(0, 1) for name, field in batch.obs.items()} if sees else {}
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        return SideInputs(obs, None, batch.core, mask)


def cut_network(network: Network, cut: Sequence[int]) -> tuple[Stage, ...]:
    """Cut a network into stages.

    Args:
      cut: [S] number of blocks of each stage, first to last.
    Raises:
      ValueError: the numbers do not add up to the network's blocks, or a stage would have no parameters.
    """
    names = [block.name for block in network.blocks]
    if sum(cut) != len(names) or min(cut) < 1:
        raise ValueError(
            f"a cut into {'+'.join(map(str, cut))} blocks does not fit the {len(names)} blocks of the network "
            f"({', '.join(names)}): every stage needs at least one"
        )
    stages, start = [], 0
    for index, size in enumerate(cut):
        blocks = network.blocks[start : start + size]
        if not any(True for block in blocks for _ in block.module.parameters()):
            raise ValueError(f"stage {index} ({', '.join(block.name for block in blocks)}) has no parameters to train")
        stages.append(Stage(index, len(cut), tuple(blocks), flat=network.core_size == 0))
        start += size
    return tuple(stages)


@torch.no_grad()
def boundaries_of(stages: Sequence[Stage], batch: Batch, placement: Placement) -> tuple[Boundary, ...]:
    """The output of each stage, found by running a small batch through all stages on their devices.

    Raises:
      ValueError: features do not have rows and steps as their leading axes, or are not floating-point.
    """
    rows, steps = batch.resets.shape
    found: list[Boundary] = []
    features: Tensor | None = None
    for stage in stages:
        with placement.autocast():
            result = stage.run(features, batch)
        features = result if isinstance(result, Tensor) else result.logits
        flat = stage.flat and not stage.is_last
        leading = (rows * steps,) if flat else (rows, steps)
        if tuple(features.shape[: len(leading)]) != leading or not features.is_floating_point():
            names = ", ".join(block.name for block in stage.blocks)
            raise ValueError(
                f"stage {stage.index} ({names}) answers {features.dtype} {tuple(features.shape)} to {rows} rows of "
                f"{steps} steps; a pipeline needs floating-point features whose leading axes are {leading}"
            )
        found.append(Boundary(tuple(features.shape[len(leading) :]), features.dtype))
    return tuple(found)


def even_cut(num_blocks: int, num_stages: int) -> tuple[int, ...]:
    """Numbers of blocks that differ by at most one, for a cut without measurements.

    Raises:
      ValueError: there are fewer blocks than stages.
    """
    if num_blocks < num_stages:
        raise ValueError(
            f"a network of {num_blocks} blocks cannot be cut into {num_stages} stages: "
            f"give it more layers or set learner.pipeline.stages to at most {num_blocks}"
        )
    least, more = divmod(num_blocks, num_stages)
    return tuple(least + (index < more) for index in range(num_stages))
