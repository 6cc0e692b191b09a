"""The benchmarks of games on a device: their settings are valid, and their counts hold on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from benchmarks.throughput import device_steps
from benchmarks.throughput.whole_machine import GAMES, WAYS, settings_of
from league.config.loading import load_config


@pytest.mark.parametrize("name", [name for name, game in GAMES.items() if game.on_device])
def test_a_whole_run_with_games_on_the_gpu_has_a_valid_configuration(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings_of(GAMES[name], WAYS["GPU, games on it"], actor_hosts=14)))
    config = load_config(path)
    assert (config.actors.games, config.runtime.kind) == ("device", "inprocess")
    # Half of a seat's unroll is made in the turns of one: the games of two unrolls fill a batch at least.
    assert config.learner.batch_rows <= 2 * config.actors.num_envs


def test_an_unroll_takes_two_reads_of_the_host_and_is_learnt_from(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--games", "64", "--rows", "16", "--seconds", "0.05", "--networks", "MLP 128-128"]
    assert device_steps.main([*few, "--device", "cpu", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]}
    for opponents in (0, device_steps.OPPONENTS):
        assert rows[f"MLP 128-128, {opponents} opponents: reads of the host in an unroll"]["value"] == 2
    assert rows["MLP 128-128: decisions learnt from"]["value"] > 0
