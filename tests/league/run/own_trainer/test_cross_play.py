"""Counters find the way out of a trap for teams in which self-play stays; seats learn by exact gradients."""

from __future__ import annotations

from pathlib import Path

from benchmarks.strength.cross_play import least_exploitable_weights, team_values
from league.envs.games.team_matrix import TeamMatrix
from tests.league.run.own_trainer.team_trainer import Plan, exploitability, probs, train


def nash_left(frozen: dict[str, Plan]) -> float:
    """What a whole team gains against the best mixture of all snapshots."""
    members = [list(probs(plan)) for plan in frozen.values()]
    weights = least_exploitable_weights(team_values(TeamMatrix(num_envs=1).payoffs[..., 0], members))
    return exploitability(list(frozen.values()), weights)


def test_cross_play_leaves_the_trap_in_which_self_play_stays(tmp_path: Path) -> None:
    left = {}
    for preset, matches in (("self_play", 120), ("cross_play", 400)):
        (tmp_path / preset).mkdir()
        settings = {"preset": preset, "population": {"save_steps": 960}}
        left[preset] = nash_left(train(tmp_path / preset, settings, matches=matches, seed=0))
    assert left["self_play"] > 0.9
    assert left["cross_play"] < 0.1
