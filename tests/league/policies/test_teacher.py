"""A run's teacher: found, checked against game and network, copied into the run, and what learners are held to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.config.loading import parse_config
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.errors import ConfigError, CorruptSnapshot, LeagueError
from league.policies.exact.load_policy import load_policy
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from tests.agents.learner.learner_cases import weights_in
from tests.league.judge.matches.eval_runs import MadeRun
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, tiny

GAME = EnvConfig("rock_paper_scissors")
NETWORK = NetworkConfig(hidden=(6,))
COSTS = {"teacher_cost": 5.0, "teacher_cost_end": 5.0}


def leaning(*, to: int, env: EnvConfig = GAME, network: NetworkConfig = NETWORK) -> Network:
    """A network that nearly always answers with one action."""
    made = build_network(make(env, num_envs=1).spec, network, seed=0)
    with torch.no_grad():
        made.blocks[-1].module.linear.bias[to] += 4.0
    return made


def run_of(path: Path, **changes: Any) -> Path:
    """A run folder whose one snapshot, main-0-s0, leans to action 1."""
    env, network = changes.get("env", GAME), changes.get("network", NETWORK)
    made = MadeRun(path, env=env, network=network)
    made.snapshot("main-0", leaning(to=1, env=env, network=network), version=3)
    return made.close()


def taught_by(source: Path | str, *, player: str = "best", **changes: Any) -> dict[str, Any]:
    return tiny(
        env={"id": GAME.id},
        network={"hidden": [6]},
        learner={**COSTS, "learning_rate": 5e-2, "entropy_cost": 0.0, "entropy_cost_end": 0.0},
        league=ONE_PLAYER,
        teacher={"source": str(source), "player": player},
        **changes,
    )


def probs_of(run: Path) -> np.ndarray[Any, Any]:
    spec = make(GAME, num_envs=1).spec
    obs = {name: np.zeros(array.shape, array.dtype) for name, array in spec.observations.items()}
    return load_policy(run, "main-0").probs(obs)


def test_players_come_to_do_as_the_teacher_does_and_a_resume_does_not_need_its_run(tmp_path: Path) -> None:
    source = run_of(tmp_path / "teacher")
    start(tmp_path, taught_by(source), env_steps=2_500)
    assert probs_of(tmp_path / "run").argmax() == 1 and probs_of(tmp_path / "run")[1] > 0.6
    shutil.rmtree(source)
    go_on(tmp_path / "run", env_steps=1_500)
    assert probs_of(tmp_path / "run")[1] > 0.8
    assert verify_run(tmp_path / "run").problems == ()
    noted = parse_config(RunFolder.open(tmp_path / "run").read_config(), source="run").teacher
    assert (noted.source, len(noted.digest)) == (str(source), 64)


def test_a_copy_lost_before_it_was_stored_is_taken_from_the_source_again(tmp_path: Path) -> None:
    source = run_of(tmp_path / "teacher")
    start(tmp_path, taught_by(source), env_steps=600)
    digest = parse_config(RunFolder.open(tmp_path / "run").read_config(), source="run").teacher.digest
    folder = tmp_path / "run" / "snapshots" / digest[:2] / digest
    shutil.rmtree(folder)
    go_on(tmp_path / "run", env_steps=300)
    assert folder.is_dir()
    shutil.rmtree(folder)
    shutil.rmtree(source)
    run_of(source, network=NetworkConfig(hidden=(5,)))
    with pytest.raises(LeagueError, match=r"has the weights [0-9a-f]{12}, but .* now holds"):
        go_on(tmp_path / "run", env_steps=300)


def test_a_teacher_may_be_a_snapshots_folder_or_a_bare_file_beside_the_configuration(tmp_path: Path) -> None:
    snapshot = next((run_of(tmp_path / "teacher") / "snapshots").glob("*/*"))
    start(tmp_path, taught_by(snapshot), env_steps=400, run="first")
    weights = weights_in(leaning(to=2))
    (tmp_path / "taught.safetensors").write_bytes(safetensors.numpy.save(weights.named()))
    start(tmp_path, taught_by("taught.safetensors"), env_steps=2_500, run="second")
    assert probs_of(tmp_path / "second").argmax() == 2


def test_a_teacher_that_does_not_fit_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    cases = {
        "does not exist here or beside the configuration": taught_by("nowhere"),
        "take over the `network` section": taught_by(run_of(tmp_path / "big", network=NetworkConfig(hidden=(9,)))),
        "was trained on tic_tac_toe and cannot judge": taught_by(
            run_of(tmp_path / "other", env=EnvConfig("tic_tac_toe"))
        ),
        "a teacher is one": taught_by(_two(tmp_path / "two"), player="mixture"),
    }
    for words, plain in cases.items():
        with pytest.raises(LeagueError, match=words):
            start(tmp_path, plain, env_steps=100)
    (tmp_path / "bad.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(CorruptSnapshot, match="not in the safetensors format"):
        start(tmp_path, taught_by("bad.safetensors"), env_steps=100)
    assert not (tmp_path / "run").exists()


def _two(path: Path) -> Path:
    made = MadeRun(path, env=GAME, network=NETWORK)
    for hand in range(3):
        made.snapshot("main-0", leaning(to=hand), version=hand)
    made.rate_cycle({"main-0-s0": 0, "main-0-s1": 1, "main-0-s2": 2})
    return made.close()


def test_a_teacher_without_a_cost_and_a_cost_without_a_teacher_are_problems() -> None:
    for text in ("teacher: {source: runs/a}", "learner: {teacher_cost: 0.1}"):
        with pytest.raises(ConfigError, match=r"teacher\.source: .* does not go with learner\.teacher_cost"):
            parse_config(f"env: {{id: tic_tac_toe}}\n{text}", source="x")
