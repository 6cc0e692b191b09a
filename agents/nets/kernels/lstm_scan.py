"""One LSTM layer over T steps with resets, with its gradient written out.

Shape letters: B rows, T steps, H width. Plain autograd through the same loop stores three times as much. It computes
the recurrent weight's gradient step by step instead of in one product over all steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from league.agents.nets.kernels.dense import input_gradient, product, weight_gradient


def lstm_scan(inputs: Tensor, weight: Tensor, state: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Run one layer over all steps; differentiable in the first three arguments.

    Args:
      inputs: [B, T, 4 * H], the input terms of the gates, biases included; in the order input, forget, candidate,
        output, as in `nn.LSTM`.
      weight: [4 * H, H], the recurrent weight.
      state: [2, B, H], hidden and cell state before the first step.
      keep: bool [B, T], False where the state is zeroed before the step.
    All but `keep` share one floating dtype.
    Returns:
      Outputs [B, T, H] and the state [2, B, H] after the last step.
    Source: Hochreiter and Schmidhuber 1997, Long short-term memory; with Gers et al. 2000's forget gate.
    """
    outputs: Tensor
    outputs, state = _LSTMScan.apply(inputs, weight, state, keep.to(inputs.dtype))  # type: ignore[no-untyped-call]
    return outputs, state


class _LSTMScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, state: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        size = state.shape[2]
        keep = keep.t().unsqueeze(-1).contiguous()
        gates = inputs.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        shape = (*gates.shape[:2], size)
        hiddens, cells, squashed, outputs = (gates.new_empty(shape) for _ in range(4))
        hidden, cell = state.unbind()
        for t, (step_gates, step_keep) in enumerate(zip(gates.unbind(), keep.unbind(), strict=True)):
            torch.mul(hidden, step_keep, out=hiddens[t])
            torch.mul(cell, step_keep, out=cells[t])
            step_gates.add_(product(hiddens[t], weight))
            step_gates[:, : 2 * size].sigmoid_()
            step_gates[:, 2 * size : 3 * size].tanh_()
            step_gates[:, 3 * size :].sigmoid_()
            input_gate, forget_gate, candidate, output_gate = step_gates.chunk(4, dim=-1)
            cell = torch.addcmul(forget_gate * cells[t], input_gate, candidate)
            torch.tanh(cell, out=squashed[t])
            hidden = torch.mul(output_gate, squashed[t], out=outputs[t])
        ctx.save_for_backward(weight, keep, gates, hiddens, cells, squashed)
        return outputs.transpose(0, 1), torch.stack([hidden, cell])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        weight, keep, gates, hiddens, cells, squashed = ctx.saved_tensors
        of_outputs, of_state = gradients
        of_hidden, of_cell = of_state.unbind()
        of_gates = torch.empty_like(gates)
        tanh_backward, sigmoid_backward = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward
        for t in range(gates.shape[0] - 1, -1, -1):
            input_gate, forget_gate, candidate, output_gate = gates[t].chunk(4, dim=-1)
            of_input, of_forget, of_candidate, of_output = of_gates[t].chunk(4, dim=-1)
            of_hidden = of_hidden + of_outputs[:, t]
            of_cell = of_cell + tanh_backward(of_hidden * output_gate, squashed[t])
            of_input.copy_(sigmoid_backward(of_cell * candidate, input_gate))
            of_forget.copy_(sigmoid_backward(of_cell * cells[t], forget_gate))
            of_candidate.copy_(tanh_backward(of_cell * input_gate, candidate))
            of_output.copy_(sigmoid_backward(of_hidden * squashed[t], output_gate))
            of_hidden = input_gradient(of_gates[t], weight).mul_(keep[t])
            of_cell = (of_cell * forget_gate).mul_(keep[t])
        of_weight = weight_gradient(of_gates.flatten(0, 1), hiddens.flatten(0, 1))
        return of_gates.transpose(0, 1), of_weight, torch.stack([of_hidden, of_cell]), None
