"""The LSTM core: stacked layers whose state is zeroed inside the unroll at each start of an episode.

Shape letters: B rows, T steps, D input features, H width of a layer, L layers, C = 2 * L * H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Core, compute_dtype, unset_on_cpu
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.dense import dense
from league.agents.nets.kernels.lstm_scan import lstm_scan
from league.agents.nets.kernels.lstm_stretches import lstm_over_stretches, stretches_of


def runs_packed(features: Tensor) -> bool:
    """True if unrolls with resets run as packed stretches, else step by step.

    On a GPU that is one call of cuDNN in place of dozens in every step. On a CPU it is slower.
    """
    return features.device.type != "cpu"


def may_fuse(features: Tensor) -> bool:
    """True if `nn.LSTM` is right for features [B, T, D] without resets, in their compute dtype.

    On a CPU with AMX, torch 2.11 computes gradients of its inputs wrongly in bfloat16, by a sixth to their whole size.
    """
    return not (torch.is_grad_enabled() and features.device.type == "cpu" and features.dtype == torch.bfloat16)


class LSTMCore(nn.Module):
    """Stacked LSTM layers, batch-major, with resets.

    The packed state is float32 [B, C], laid out as [L, 2, H] per row: hidden, then cell state of each layer. It is
    float32 for any compute dtype, so that it is sent and stored in one form.
    """

    def __init__(self, num_features: int, size: int, num_layers: int, generator: torch.Generator) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.size = size
        self.core_size = 2 * num_layers * size
        self.lstm = unset_on_cpu(nn.LSTM(num_features, size, num_layers, batch_first=True, device="meta"))
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter, gain=1.0, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def forward(
        self, features: Tensor, *, resets: Tensor | None, core: Tensor, host_resets: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run T steps.

        Args:
          features: floating [B, T, D].
          resets: bool [B, T], True where the state is zeroed before the step; None if no step is.
          core: float32 [B, C], state before the first step.
          host_resets: `resets` on the CPU; without it the host waits for a GPU to read them.
        Returns:
          Features [B, T, H] in the compute dtype, and the state float32 [B, C] after the last step.
        """
        dtype = compute_dtype(self.lstm.all_weights[0][0])
        features = features.to(dtype)
        state = core.view(-1, self.num_layers, 2, self.size).permute(2, 1, 0, 3).to(dtype)  # [2, L, B, H]
        known = resets if resets is not None and resets.device.type == "cpu" else host_resets
        unbroken = resets is None or (known is not None and not known.any())
        if unbroken and may_fuse(features):
            outputs, last = self.lstm(features, (state[0].contiguous(), state[1].contiguous()))
            state = torch.stack(last)
        elif resets is not None and runs_packed(features):
            stretches = stretches_of(resets.cpu() if known is None else known)
            outputs, state = lstm_over_stretches(self.lstm, features, state, stretches)
        else:
            keep = torch.ones_like(features[..., 0], dtype=torch.bool) if resets is None else ~resets
            outputs, state = self._run_with_resets(features, state, keep)
        return outputs, state.permute(2, 1, 0, 3).reshape(-1, self.core_size).float()

    def _run_with_resets(self, features: Tensor, state: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """The fused layers' computation, step by step; state [2, L, B, H], keep bool [B, T]."""
        last = []
        for layer, (input_weight, recurrent_weight, input_bias, recurrent_bias) in enumerate(self.lstm.all_weights):
            # The input terms of all T steps are one matrix product; only the recurrent terms must wait for their step.
            inputs = dense(features, input_weight, input_bias + recurrent_bias)
            features, layer_state = lstm_scan(inputs, recurrent_weight.to(inputs.dtype), state[:, layer], keep)
            last.append(layer_state)
        return features, torch.stack(last, dim=1)


def build_lstm(num_features: int, config: NetworkConfig, generator: torch.Generator) -> Core:
    """Build `config.core_layers` layers of width `config.core_size`."""
    module = LSTMCore(num_features, config.core_size, config.core_layers, generator)
    # A compiler would unroll the steps, and a GPU has one call for all of them.
    block = Block("core", module, ("resets", "core", "host_resets"), compiles=False)
    return Core((block,), config.core_size, module.core_size)
