"""Every system of the lineage is a configuration that runs to its end, and is resumed from where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from league.agents.learner.pipeline_config import PipelineConfig
from league.config.loading import load_config
from league.core.state.state import LeagueState
from league.run import launch
from league.run.budget import Limits
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import go_on, state_of

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "lineage").glob("*.yaml"))
STEPS = 400
MIXED = "mixed_learners"
OTHER_STEPS = {MIXED: 1_500, "es": 1_200, **dict.fromkeys(("ddpg", "apex_ddpg", "dqn", "apex_dqn"), 200)}
"""Env steps until every player has learnt: more where there are many or episodes are long, fewer of replayed rows."""
SMALL: dict[str, dict[str, object]] = {
    "network": {"hidden": [16]},
    "learner": {"batch_rows": 8, "unroll_length": 4, "precision": "float32"},
    "actors": {"num_envs": 8},
    "league": {"lease_steps": 16},
    "runtime": {"checkpoint_updates": 4},
    "wandb": {"mode": "disabled"},
    "control": {"door": False},
}
"""Settings that only make a run small; everything else is the file's."""
MOST_SAMPLES = 4
"""Times that a row of a replay is learnt from: the files' sixteen are four times the updates."""
FEW_EPISODES: dict[str, dict[str, int]] = {"es": {"evaluations": 8}, "cmaes": {"population": 4, "episodes": 1}}
"""Options of algorithms that take a step only after so many episodes."""


def shrink(sections: dict[str, Any]) -> None:
    """Less to compute and to wait for, in the sections of a run or in those of a player's own."""
    for section in ("network", "learner"):
        own = sections.get(section, {})
        own |= {key: value for key, value in SMALL[section].items() if key in own}
    learner, actors = sections.get("learner", {}), sections.get("actors", {})
    if isinstance(learner.get("algorithm"), dict):
        learner["algorithm"].update(FEW_EPISODES.get(learner["algorithm"]["kind"], {}))
    if "row_source" in learner:
        source = learner["row_source"]
        source["min_rows"] = 8
        source["samples_per_insert"] = min(source.get("samples_per_insert", MOST_SAMPLES), MOST_SAMPLES)
    for acting in (actors.get("acting"), actors.get("acting_frozen")):
        if isinstance(acting, dict) and acting["kind"] == "search":
            acting["simulations"] = 6


def small(path: Path) -> dict[str, object]:
    """The configuration of a file with a tiny network, tiny batches and nothing judged at the end."""
    plain = yaml.safe_load(path.read_text())
    for section, values in SMALL.items():
        plain[section] = {**plain.get(section, {}), **values}
    if path.stem == MIXED:
        plain["env"]["kwargs"] = {"opening_plies": 20}  # so that games, and rounds of them, end soon
    for sections in (plain, *plain["league"].get("players", [])):
        shrink(sections)
    pipeline = PipelineConfig(**plain["learner"].get("pipeline", {}))
    if pipeline.is_free:  # processes take seconds to start, and are tested by themselves
        plain["learner"]["pipeline"]["update_mode"]["workers"] = "threads"
    elif pipeline.replicas > 1:  # the processes of one player's learner are enough
        plain["league"].setdefault("players", [{"role": "main_agent"}])
    return {**plain, "evaluation": {"bots": []}, "budget": {"env_steps": 40_000}}


def trained_steps(state: LeagueState) -> int:
    return sum(player.trained_steps for player in state.players.values())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_system_runs_to_its_end_and_is_resumed(path: Path, tmp_path: Path) -> None:
    load_config(path)
    source, run, steps = tmp_path / "config.yaml", tmp_path / "run", OTHER_STEPS.get(path.stem, STEPS)
    source.write_text(yaml.safe_dump(small(path)))
    launch.start(load_config(source), {}, source=source, run_dir=run, limits=Limits(env_steps=steps))
    first = state_of(run)
    assert first.totals.env_steps >= steps and trained_steps(first) > 0
    go_on(run, env_steps=first.totals.env_steps)
    last = state_of(run)
    assert last.totals.env_steps >= 2 * first.totals.env_steps and trained_steps(last) > trained_steps(first)
    if path.stem == MIXED:
        for name, player in last.players.items():
            assert player.trained_steps > first.players[name].trained_steps > 0, name
    assert verify_run(run).problems == ()
