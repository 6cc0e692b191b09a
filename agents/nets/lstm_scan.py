"""One LSTM layer over T steps with resets, with its gradient written out.

Shape letters: B rows, T steps, H width. Plain autograd through the same loop takes twice the time: it multiplies the
recurrent weight's gradient step by step, where one product over all steps will do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LSTMScan(torch.autograd.Function):
    """(inputs, recurrent weight, hidden, cell, keep) -> (outputs, last hidden, last cell).

    inputs [B, T, 4 * H] are the inputs' share of the gates, biases included, in the order input, forget, candidate,
    output; the recurrent weight is [4 * H, H], hidden and cell are [B, H] before the first step, keep is [B, T], 0 where
    the state is zeroed before the step and 1 elsewhere. All share one dtype; outputs are [B, T, H].
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the steps, keeping what the gradient needs."""
        size = hidden.shape[1]
        keep = keep.t().unsqueeze(-1).contiguous()
        gates = inputs.transpose(0, 1).contiguous()
        shape = (*gates.shape[:2], size)
        hiddens, cells, squashed, outputs = (gates.new_empty(shape) for _ in range(4))
        transposed = weight.t()
        for t, (step_gates, step_keep) in enumerate(zip(gates.unbind(), keep.unbind(), strict=True)):
            torch.mul(hidden, step_keep, out=hiddens[t])
            torch.mul(cell, step_keep, out=cells[t])
            step_gates.addmm_(hiddens[t], transposed)
            step_gates[:, : 2 * size].sigmoid_()
            step_gates[:, 2 * size : 3 * size].tanh_()
            step_gates[:, 3 * size :].sigmoid_()
            input_gate, forget_gate, candidate, output_gate = step_gates.chunk(4, dim=-1)
            cell = torch.addcmul(forget_gate * cells[t], input_gate, candidate)
            torch.tanh(cell, out=squashed[t])
            hidden = torch.mul(output_gate, squashed[t], out=outputs[t])
        ctx.save_for_backward(weight, keep, gates, hiddens, cells, squashed)
        return outputs.transpose(0, 1), hidden.clone(), cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Back through the steps; the weight's gradient is one product at the end."""
        weight, keep, gates, hiddens, cells, squashed = ctx.saved_tensors
        of_outputs, of_hidden, of_cell = gradients
        of_gates = torch.empty_like(gates)
        for t in range(gates.shape[0] - 1, -1, -1):
            input_gate, forget_gate, candidate, output_gate = gates[t].chunk(4, dim=-1)
            of_hidden = of_hidden + of_outputs[:, t]
            of_cell = of_cell + torch.ops.aten.tanh_backward(of_hidden * output_gate, squashed[t])
            of_input, of_forget, of_candidate, of_output = of_gates[t].chunk(4, dim=-1)
            of_input.copy_(torch.ops.aten.sigmoid_backward(of_cell * candidate, input_gate))
            of_forget.copy_(torch.ops.aten.sigmoid_backward(of_cell * cells[t], forget_gate))
            of_candidate.copy_(torch.ops.aten.tanh_backward(of_cell * input_gate, candidate))
            of_output.copy_(torch.ops.aten.sigmoid_backward(of_hidden * squashed[t], output_gate))
            of_hidden = (of_gates[t] @ weight).mul_(keep[t])
            of_cell = (of_cell * forget_gate).mul_(keep[t])
        of_weight = of_gates.flatten(0, 1).t() @ hiddens.flatten(0, 1)
        return of_gates.transpose(0, 1), of_weight, of_hidden, of_cell, None
