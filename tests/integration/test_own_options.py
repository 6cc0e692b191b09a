"""A loss and an encoder of a user's own, each with an option: one file, two lines of configuration, a whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from league.errors import ConfigError
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny

OWN = """
from dataclasses import dataclass, replace

from league.agents.learner.algorithms.config import VTraceConfig
from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.nets.mlp import build_mlp


@dataclass(frozen=True)
class TemperedConfig(VTraceConfig):
    temperature: float = 1.0

    def problems(self):
        return super().problems() + ([] if self.temperature > 0 else ["temperature: must be greater than 0"])


class Tempered(VTraceObjective):
    def __init__(self, config, head, options: TemperedConfig):
        super().__init__(config, head, options)
        self.temperature = options.temperature

    def terms(self, inputs, batch, *, advantage_scale):
        return super().terms(inputs, batch, advantage_scale=self.temperature * advantage_scale)


@dataclass(frozen=True)
class DeepConfig:
    depth: int = 1


def deep(fields, config, generator, *, options: DeepConfig):
    return build_mlp(fields, replace(config, hidden=config.hidden * options.depth), generator)
"""


def with_options(folder: Path, *, loss: dict[str, Any], encoder: dict[str, Any]) -> dict[str, Any]:
    (folder / "own.py").write_text(OWN)
    network = {"hidden": [6], "encoder": {"kind": "own.py:deep", **encoder}}
    plain = tiny(network=network, league=ONE_PLAYER)
    plain["learner"]["algorithm"] = {"kind": "own.py:Tempered", **loss}
    return plain


def test_a_loss_and_an_encoder_with_options_train_stop_and_continue(tmp_path: Path) -> None:
    snapshots = []
    for number, temperature in enumerate((0.1, 10.0)):
        plain = with_options(tmp_path, loss={"temperature": temperature, "lambda_": 0.9}, encoder={"depth": 3})
        run = f"run-{number}"
        start(tmp_path, plain, env_steps=400, run=run)
        go_on(tmp_path / run, env_steps=200)
        assert state_of(tmp_path / run).players["main-0"].trained_steps > 0
        files = sorted((tmp_path / run).glob("snapshots/*/*/weights.safetensors"))
        names = load_file(files[0])
        assert sum(name.startswith("parts.encoder_") and name.endswith("weight") for name in names) == 3
        snapshots.append({file.parent.name for file in files})
    assert len(snapshots[0] & snapshots[1]) == 1, "the first snapshot alone is the same: the temperature counts"


@pytest.mark.parametrize(
    ("loss", "encoder", "said"),
    [
        ({"temprature": 2}, {}, "learner.algorithm.temprature: unknown key, nearest is 'temperature'"),
        ({"temperature": -1}, {}, "learner.algorithm.temperature: must be greater than 0"),
        ({"temperature": "hot"}, {}, "learner.algorithm.temperature: 'hot' does not fit: it should be a number"),
        ({"lambda_": 2}, {}, r"learner.algorithm.lambda_: 2.0 is not in \[0, 1\]"),
        ({}, {"depht": 2}, "network.encoder.depht: unknown key, nearest is 'depth'"),
        ({}, {"depth": 1.5}, "network.encoder.depth: 1.5 does not fit: it should be an integer"),
        ({}, {"kind": "mlp", "depth": 2}, "network.encoder.depth: unknown key, mlp has no options"),
        ({"kind": "ppo", "temperature": 2}, {}, "learner.algorithm.temperature: unknown key, the keys here are"),
    ],
)
def test_an_option_that_does_not_fit_is_named_in_full(
    tmp_path: Path, loss: dict[str, Any], encoder: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        start(tmp_path, with_options(tmp_path, loss=loss, encoder=encoder), env_steps=100)
    assert not (tmp_path / "run").exists()
