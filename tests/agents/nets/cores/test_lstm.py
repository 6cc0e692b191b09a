"""An LSTM in bfloat16 on a CPU, where torch's own layer has wrong gradients on some processors."""

from __future__ import annotations

import pytest
import torch

from league.agents.nets.cores.lstm import LSTMCore


@pytest.mark.parametrize("resets", [None, torch.zeros(1, 4, dtype=torch.bool)])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_one_row_without_resets_has_the_gradients_of_float32_and_is_not_given_to_the_fused_layer(
    resets: torch.Tensor | None, num_layers: int
) -> None:
    core, fused = LSTMCore(128, 256, num_layers, torch.Generator().manual_seed(1)), list[torch.dtype]()
    core.lstm.register_forward_hook(lambda module, inputs, outputs: fused.append(inputs[0].dtype))
    features = torch.randn(1, 4, 128, generator=torch.Generator().manual_seed(2))
    state = torch.zeros(1, core.core_size)
    gradients = {}
    for dtype in (torch.float32, torch.bfloat16):
        core.zero_grad()
        given = features.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            outputs, after = core(given, resets=resets, core=state)
        assert outputs.dtype == dtype
        (outputs.float().square().sum() + after.square().sum()).backward()
        gradients[dtype] = [given.grad, *(parameter.grad.clone() for parameter in core.parameters())]
    for found, expected in zip(gradients[torch.bfloat16], gradients[torch.float32], strict=True):
        assert (found - expected).abs().max() <= 0.05 * expected.abs().max()
    assert fused == [torch.float32]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        core(features, resets=resets, core=state)
    assert fused == [torch.float32, torch.bfloat16], "acting needs no gradients"
