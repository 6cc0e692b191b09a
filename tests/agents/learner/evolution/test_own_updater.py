"""An updater of one's own, in one file: it solves a sphere, trains in a run, and its faults are found before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.evolution_updater import make_evolving
from league.agents.learner.step.updater import UpdateInputs
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Layout, Weights
from league.config.loading import parse_config
from league.config.plugin_checks import require_working_names
from league.envs.registry import spec_of
from league.errors import ConfigError
from league.see.reports.verify import verify_run
from tests.agents.learner.evolution.random_search import RandomSearch
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny

PLUGIN = "tests.agents.learner.evolution.random_search:RandomSearch"
OWN = {"kind": PLUGIN, "evolves": True, "candidates": 4}


def run_config(algorithm: dict[str, Any] | str = OWN, acting: str = "perturbed") -> dict[str, Any]:
    return tiny(
        learner={"algorithm": algorithm, "batch_rows": 4, "max_policy_lag": 0, "precision": "float32"},
        actors={"num_envs": 4, "acting": acting},
        league=ONE_PLAYER,
    )


def problems_of(algorithm: dict[str, Any] | str, acting: str = "perturbed") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config = parse_config(yaml.safe_dump(run_config(algorithm, acting)), source="test")
        require_working_names(config, spec_of(config.env), source="test")
    return list(caught.value.problems)


def test_it_solves_a_sphere() -> None:
    size, layout = 6, Layout(("x",), ((6,),))
    config = LearnerConfig(algorithm={**OWN, "candidates": 12, "sigma": 0.2}, max_policy_lag=0)
    updater = make_evolving(np.full(size, 2.0, np.float32), config, seed=3)
    for version in range(120):
        candidates = updater.published(Weights(updater.weights(), layout, version)).candidates  # type: ignore[attr-defined]
        episodes = SeatEpisodes(
            perturbations=np.arange(1, len(candidates) + 1, dtype=np.int32),
            returns=-np.square(candidates).sum(axis=1),
            decisions=np.ones(len(candidates), np.int32),
            versions=np.full(len(candidates), version, np.int32),
        )
        result = updater.update([episodes], UpdateInputs(0.0, LossWeights(0.0, 1.0), version, 1))
        assert result.optimizer_steps == 1 and result.stats.steps == len(candidates)
    assert float(np.square(updater.weights()).sum()) < 0.02 * 4.0 * size


def test_it_trains_in_a_run_and_is_resumed(tmp_path: Path) -> None:
    start(tmp_path, run_config(), env_steps=200)
    run = tmp_path / "run"
    first = state_of(run).players["main-0"]
    assert first.version > 0 and first.trained_steps > 0
    go_on(run, env_steps=200)
    last = state_of(run).players["main-0"]
    assert last.version > first.version and last.trained_steps > first.trained_steps
    assert verify_run(run).problems == ()


class NotWhole(RandomSearch):
    """One whose weights are of another size."""

    def weights(self) -> np.ndarray[Any, Any]:
        return super().weights()[:-1]


class WithoutLoad(RandomSearch):
    """One that cannot be resumed."""

    load = property()  # type: ignore[assignment]  # reading it raises AttributeError


@pytest.mark.parametrize(
    ("algorithm", "acting", "sentence"),
    [
        ({**OWN, "candidates": 1}, "perturbed", "learner.algorithm.candidates: 1 must be at least 2"),
        ({**OWN, "candidate": 4}, "perturbed", "learner.algorithm.candidate: unknown key, nearest is 'candidates'"),
        (OWN, "sample", "actors.acting: {} learns from perturbed weights alone, and the actors sample"),
        ({"kind": PLUGIN}, "perturbed", "actors.acting: perturbed weights are for es and cmaes"),
        ({**OWN, "kind": f"{__name__}:NotWhole"}, "perturbed", "learner.algorithm: its weights are ["),
        (
            {**OWN, "kind": f"{__name__}:WithoutLoad"},
            "perturbed",
            "learner.algorithm: {} learns from episodes, and its updater has no load",
        ),
    ],
)
def test_a_fault_is_one_sentence_with_its_key(algorithm: dict[str, Any], acting: str, sentence: str) -> None:
    (found,) = problems_of(algorithm, acting)
    start_of, _, end = sentence.partition("{}")
    assert found.startswith(start_of) and end in found
