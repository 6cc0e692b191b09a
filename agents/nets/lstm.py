"""The LSTM core: one or more stacked layers whose state is zeroed inside the unroll wherever an episode begins.

Shape letters: B rows, T steps, D input features, H width of a layer, L layers, C = 2 * L * H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from agents.nets.blocks import Block, Core, compute_dtype
from agents.nets.config import NetworkConfig


class LSTMCore(nn.Module):
    """Stacked LSTM layers, batch-major, with resets.

    The packed state is float32 [B, C], laid out as [L, 2, H] per row: hidden, then cell state of each layer. It stays
    float32 whatever the layers compute in, so that it can travel and be stored in one form.
    """

    def __init__(self, num_features: int, size: int, num_layers: int, generator: torch.Generator) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.size = size
        self.core_size = 2 * num_layers * size
        empty = nn.LSTM(num_features, size, num_layers, batch_first=True, device="meta")
        self.lstm = empty.to_empty(device="cpu")
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter, gain=1.0, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Run T steps.

        Args:
          features: floating [B, T, D].
          resets: bool [B, T], True where the state is zeroed before the step; None where no step is.
          core: float32 [B, C], state before the first step.
        Returns:
          Features [B, T, H] in the compute dtype, and the state float32 [B, C] after the last step.
        """
        dtype = compute_dtype(self.lstm.all_weights[0][0])
        features = features.to(dtype)
        # [B, C] -> [2, L, B, H]
        state = core.view(-1, self.num_layers, 2, self.size).permute(2, 1, 0, 3).to(dtype)
        # Asking a GPU whether any flag is set would stall it in every call; there the stepwise form runs instead.
        if resets is None or (resets.device.type == "cpu" and not resets.any()):
            outputs, (hidden, cell) = self.lstm(features, (state[0].contiguous(), state[1].contiguous()))
        else:
            outputs, hidden, cell = self._run_with_resets(features, state[0], state[1], ~resets)
        packed = torch.stack([hidden, cell]).permute(2, 1, 0, 3).reshape(-1, self.core_size)
        return outputs, packed.float()

    def _run_with_resets(
        self, features: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The fused layers' equations step by step; state [L, B, H], keep bool [B, T]."""
        factors = keep.to(features.dtype).unsqueeze(-1).unbind(1)
        last_hidden, last_cell = [], []
        for layer in range(self.num_layers):
            features, h, c = self._run_layer(layer, features, hidden[layer], cell[layer], factors)
            last_hidden.append(h)
            last_cell.append(c)
        return features, torch.stack(last_hidden), torch.stack(last_cell)

    def _run_layer(
        self, layer: int, features: Tensor, hidden: Tensor, cell: Tensor, keep: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        input_weight, recurrent_weight, input_bias, recurrent_bias = self.lstm.all_weights[layer]
        # The inputs' share of all T steps is one matrix product; only the recurrent share must wait for its step.
        inputs = nn.functional.linear(features, input_weight, input_bias + recurrent_bias)
        transposed = recurrent_weight.t()
        outputs = []
        for step_keep, step_inputs in zip(keep, inputs.unbind(1), strict=True):
            gates = torch.addmm(step_inputs, hidden * step_keep, transposed)
            input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
            kept = torch.sigmoid(forget_gate) * (cell * step_keep)
            cell = torch.addcmul(kept, torch.sigmoid(input_gate), torch.tanh(candidate))
            hidden = torch.sigmoid(output_gate) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), hidden, cell


def build_lstm(num_features: int, config: NetworkConfig, generator: torch.Generator) -> Core:
    """`config.core_layers` layers of width `config.core_size`."""
    module = LSTMCore(num_features, config.core_size, config.core_layers, generator)
    return Core(Block("core", module, ("resets", "core")), config.core_size, module.core_size)
