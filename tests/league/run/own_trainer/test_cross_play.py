"""Counters find the way out of a trap for teams in which self-play stays; seats learn by exact gradients."""

from __future__ import annotations

from pathlib import Path

from tests.league.run.own_trainer.team_trainer import least_exploitability, train


def test_cross_play_leaves_the_trap_in_which_self_play_stays(tmp_path: Path) -> None:
    left = {}
    for preset, matches in (("self_play", 120), ("cross_play", 400)):
        (tmp_path / preset).mkdir()
        settings = {"preset": preset, "population": {"save_steps": 960}}
        left[preset] = least_exploitability(train(tmp_path / preset, settings, matches=matches, seed=0))
    assert left["self_play"] > 0.8  # untrained snapshots of its beginning are in the mixture
    assert left["cross_play"] < 0.1
