"""Runs an LSTM over the stretches between resets as one packed sequence, so that all stretches advance together.

The loop then has as many steps as the longest stretch, and on a GPU the whole core is one call of cuDNN.

Shape letters: B rows, T steps, D features, H width of a layer, L layers, S stretches, N = B * T.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True)
class Stretches:
    """The stretches of a batch of unrolls, longest first; all tensors are on the CPU.

    Fields:
      order: int64 [N], flat steps b * T + t as a packed sequence holds them.
      sizes: int64 [length of the longest], stretches that have this step.
      rows: int64 [S], row of each stretch.
      carried: bool [S], True if the stretch continues the state before the unroll.
      last: int64 [B], the stretch at the end of each row.
    """

    order: Tensor
    sizes: Tensor
    rows: Tensor
    carried: Tensor
    last: Tensor


def stretches_of(resets: Tensor) -> Stretches:
    """Cut rows at their resets, bool [B, T] on the CPU."""
    num_rows, num_steps = resets.shape
    is_start = resets.clone()
    is_start[:, 0] = True
    starts = is_start.flatten().nonzero().squeeze(1)
    lengths = torch.diff(starts, append=starts.new_tensor([resets.numel()]))
    lengths, by_length = lengths.sort(descending=True, stable=True)
    starts = starts[by_length]
    steps = torch.arange(int(lengths[0])).unsqueeze(1)
    present = steps < lengths
    rows = starts // num_steps
    at_end = (starts + lengths) % num_steps == 0
    last = torch.empty(num_rows, dtype=torch.int64)
    last[rows[at_end]] = at_end.nonzero().squeeze(1)
    return Stretches(
        order=(starts + steps)[present],
        sizes=present.sum(1),
        rows=rows,
        carried=(starts % num_steps == 0) & ~resets.flatten()[starts],
        last=last,
    )


def lstm_over_stretches(lstm: nn.LSTM, features: Tensor, state: Tensor, stretches: Stretches) -> tuple[Tensor, Tensor]:
    """Run all layers; differentiable in features, state and parameters.

    Args:
      features: [B, T, D]; state: [2, L, B, H], hidden and cell state before the first step.
    Returns:
      Outputs [B, T, H] and the state [2, L, B, H] after the last step.
    """
    device = features.device
    order, rows, carried, last = (
        tensor.to(device, non_blocking=True)
        for tensor in (stretches.order, stretches.rows, stretches.carried, stretches.last)
    )
    # cuDNN takes a state in this order of axes alone, and indexing keeps the order that the state had in memory.
    hidden, cell = (state[:, :, rows] * carried.unsqueeze(-1)).contiguous().unbind()
    packed = PackedSequence(features.flatten(0, 1)[order], stretches.sizes)
    outputs, after = lstm(packed, (hidden, cell))
    by_step = torch.empty_like(outputs.data).index_copy(0, order, outputs.data)
    return by_step.view(*features.shape[:2], -1), torch.stack(after)[:, :, last]
