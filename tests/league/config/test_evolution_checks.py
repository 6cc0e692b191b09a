"""Settings that do not go with evolution strategies are refused when a configuration is loaded, in a sentence each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from league.config.loading import load_config
from league.config.plugin_checks import require_working_names
from league.envs.registry import spec_of
from league.errors import ConfigError

ROOT = Path(__file__).parents[3]


def problems_of(tmp_path: Path, kind: str = "es", **sections: dict[str, Any]) -> list[str]:
    """Of the shipped configuration with other values in its sections."""
    plain = yaml.safe_load((ROOT / "configs" / "lineage" / f"{kind}.yaml").read_text())
    for section, values in sections.items():
        plain[section] = {**plain[section], **values}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(plain))
    try:
        config = load_config(path)
        require_working_names(config, spec_of(config.env), source=str(path))
    except ConfigError as error:
        return list(error.problems)
    return []


def test_the_shipped_configurations_load(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == []


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        (
            {"learner": {"algorithm": {"kind": "es", "evaluations": 33}}},
            "learner.algorithm.evaluations: 33 episodes do not make pairs of a perturbation and its opposite; use 34",
        ),
        (
            {"learner": {"algorithm": {"kind": "es", "episode_cap": 0.5}}},
            "learner.algorithm.episode_cap: 0.5 times the mean would cut most episodes; use more than 1, or null",
        ),
        (
            {"learner": {"max_policy_lag": 200}},
            "learner.max_policy_lag: 200 updates, and es learns from episodes of the newest weights alone; use 0",
        ),
        (
            {"learner": {"pipeline": {"replicas": 2, "backend": "single"}}},
            "learner.pipeline.replicas: es computes no gradients, so that 2 replicas have nothing to share; "
            "use replicas: 1",
        ),
        (
            {"learner": {"pipeline": {"stages": 2}}},
            "learner.pipeline.stages: es computes no gradients, so that 2 stages have nothing to share; use stages: 1",
        ),
        (
            {"actors": {"num_splits": 1}},
            "actors.num_splits: es plays each perturbation and its opposite in two parts of the games, and there is 1; "
            "use num_splits: 2",
        ),
        (
            {"actors": {"num_envs": 31}},
            "actors.num_envs: 31 games do not make pairs of a perturbation and its opposite; use 32",
        ),
        (
            {"actors": {"acting": "sample"}},
            "actors.acting: es learns from perturbed weights alone, and the actors sample; use perturbed",
        ),
        (
            {"learner": {"algorithm": "vtrace", "max_policy_lag": 200}},
            "actors.acting: perturbed weights are for es and cmaes, and learner.algorithm is vtrace; use sample",
        ),
    ],
)
def test_a_conflict_is_named_in_a_sentence(sections: dict[str, dict[str, Any]], expected: str, tmp_path: Path) -> None:
    assert expected in problems_of(tmp_path, **sections)


def test_cmaes_is_for_few_weights(tmp_path: Path) -> None:
    pytest.importorskip("cmaes")
    (problem,) = problems_of(tmp_path, "cmaes", network={"hidden": [64, 64]})
    assert problem.startswith(
        "learner.algorithm: cmaes keeps a number for every pair of weights, for 2,000 weights at most"
    )
    assert "use es, or a smaller network" in problem
