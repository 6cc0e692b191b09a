"""Learners on a pretended GPU: no tensor is on the wrong device, and one wait for it in a step."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.nets.config import NetworkConfig
from league.envs.protocol import EnvSpec
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    GAMES_AND_NETWORKS,
    LSTM,
    MLP,
    TRANSFORMER,
    network_of,
    small_config,
    unrolls_of,
)
from tests.agents.pretend_gpu import GPU, DeviceMismatchError, pretended_gpu

POPART = dataclasses.replace(LSTM, value_output="popart")


def test_tensors_of_two_devices_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu(monkeypatch) as gpu:
        there, here = torch.ones(3, device=GPU), torch.ones(3)
        assert (there.device, here.device, (there * 2).cpu().device) == (GPU, here.device, here.device)
        with pytest.raises(DeviceMismatchError, match="two devices"):
            there + here
        with pytest.raises(DeviceMismatchError, match="memory of the GPU"):
            there.numpy()
        assert gpu.reads == 1  # the copy back
        assert float(there.sum()) == 3.0
        assert gpu.reads == 2


@pytest.mark.parametrize(
    ("spec", "network", "changes"),
    [
        *((spec, network, {"algorithm": name}) for spec, network in GAMES_AND_NETWORKS for name in ("vtrace", "appo")),
        (BOARD_GAME, TRANSFORMER, {"algorithm": "ppo", "magnet_cost": 0.1}),
        (BOARD_GAME, LSTM, {"algorithm": "vtrace", "target_every": 2, "ema_share": 0.5, "microbatches": 3}),
        (BOARD_GAME, POPART, {"value_normalisation": "popart", "value_rate": 0.2}),
        (BOARD_GAME, MLP, {"backend": "threaded_pipeline", "stages": 2, "microbatches": 4}),
        (BOARD_GAME, LSTM, {"algorithm": "ppo", "threads": 2}),
    ],
)
def test_updates_on_a_gpu_wait_once_for_it_and_equal_those_of_a_cpu(
    spec: EnvSpec, network: NetworkConfig, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(**changes)  # type: ignore[arg-type]
    blocks = [unrolls_of(spec, network_of(spec, network), rows=12, steps=5, seed=seed) for seed in range(3)]
    expected = build_learner(spec, network, config, seed=1, dtype=torch.float32)
    for block in blocks:
        expected.update(block, budget_fraction=0.0)
    with pretended_gpu(monkeypatch) as gpu:
        learner = build_learner(spec, network, config, seed=1, dtype=torch.float32)
        for block in blocks:
            steps = int(learner.save()["optimizer_steps"])
            before = gpu.reads
            learner.update(block, budget_fraction=0.0)
            waits = gpu.reads - before
            assert waits == int(learner.save()["optimizer_steps"]) - steps
        weights = learner.publish()
        learner.load(learner.save())
        assert learner.publish().digest() == weights.digest()
        learner.close()
    np.testing.assert_allclose(weights.vector, expected.publish().vector, rtol=1e-3, atol=1e-4)
    expected.close()
