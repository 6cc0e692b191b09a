"""Every kind of game goes through a whole run: one seat, several at once, PettingZoo's own, boxes, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.agents.acting.policy import BotPolicy
from league.envs.bots import make_bot
from league.envs.protocol import EnvConfig
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy
from league.see.reports.verify import verify_run
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny, write_config

PARALLEL = """
from tests.envs.oracles.raw_probes import RawSimultaneousProbe

def make(**kwargs):
    return RawSimultaneousProbe(**kwargs)
"""
CASES: dict[str, dict[str, Any]] = {
    "one seat": tiny(env={"id": "gymnasium:CartPole-v1"}, league=ONE_PLAYER),
    "one seat, box, truncated": tiny(env={"id": "gymnasium:Pendulum-v1"}, league=ONE_PLAYER),
    "matrix game": tiny(env={"id": "matrix_game", "kwargs": {"payoffs": [[1, -1], [-1, 1]], "rounds": 2}}),
    "PettingZoo in turns": tiny(env={"id": "pettingzoo:classic/tictactoe_v3"}),
    "parts, masked": tiny(
        env={"id": "probe_sub_actions", "kwargs": {"masked": True}},
        network={"head": "autoregressive"},
        league=ONE_PLAYER,
    ),
    "memory": tiny(network={"hidden": [8], "core": "lstm", "core_size": 4}),
    "three seats, truncated": tiny(
        env={"id": "probe_simultaneous", "kwargs": {"num_seats": 3, "truncate": True}}, league=ONE_PLAYER
    ),
}


@pytest.mark.parametrize("masked", [False, True])
def test_every_part_of_an_action_learns_what_it_is_asked(masked: bool, tmp_path: Path) -> None:
    """A contextual bandit of several parts through the whole path: actor, chunks, learner, snapshot, evaluation."""
    env = {"id": "probe_sub_actions", "kwargs": {"masked": masked, "episode_length": 2}}
    groups = {"action_groups": [[0], [1, 2]], "upgo_cost": 0.2}
    schedule = {"learning_rate": 1e-2, "entropy_cost": 0.1, "entropy_cost_end": 0.02}
    plain = tiny(
        env=env,
        network={"hidden": [32], "head": "autoregressive" if masked else "auto"},
        learner={"unroll_length": 4, "batch_rows": 64, "algorithm": groups, **schedule, "precision": "float32"},
        actors={"num_envs": 64},
        league=ONE_PLAYER,
        budget={"env_steps": 24_000},
    )
    start(tmp_path, plain, env_steps=24_000)
    config = EnvConfig("probe_sub_actions", env["kwargs"])
    learnt, chance = (
        Match(config, [policy], seed=1).play(60).mean_return().value
        for policy in (load_policy(tmp_path / "run").as_seat_policy(), BotPolicy(make_bot("random", seed=0)))
    )
    assert chance < 0.6
    assert learnt > 0.9


@pytest.mark.parametrize("kind", list(CASES))
def test_a_run_learns_stops_and_continues(kind: str, tmp_path: Path) -> None:
    start(tmp_path, CASES[kind], env_steps=1_500)
    between = state_of(tmp_path / "run")
    go_on(tmp_path / "run", env_steps=400)
    state = state_of(tmp_path / "run")
    assert verify_run(tmp_path / "run").problems == ()
    if kind != "one seat, box, truncated":  # its episodes are longer than the run
        assert state.totals.games > between.totals.games > 0
        assert state.totals.truncated == (state.totals.games if kind == "three seats, truncated" else 0)
    for name, player in state.players.items():
        assert player.trained_steps > 0
        assert player.trained_steps >= between.players[name].trained_steps
        assert player.num_snapshots > 0


def test_a_users_parallel_game_in_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PARALLEL)
    env = {"id": "own.py:make", "kwargs": {"num_seats": 2, "episode_length": 5}}
    config = write_config(tmp_path, tiny(env=env))
    ran = league("train", config, "--run-dir", tmp_path / "run", "--env-steps", "900")
    assert ran.code == 0, ran.err
    assert state_of(tmp_path / "run").totals.games > 0
    assert league("verify", tmp_path / "run").code == 0


@pytest.mark.parametrize("kind", ["one seat", "one seat, box, truncated", "three seats, truncated"])
def test_a_run_that_bots_cannot_measure_still_ends_well(kind: str, tmp_path: Path) -> None:
    """The measurement at the end is left out with a word where the game is not for two seats."""
    config = write_config(tmp_path, {**CASES[kind], "evaluation": {"bots": ["random"], "games": 2}})
    ran = league("train", config, "--run-dir", tmp_path / "run", "--env-steps", "700")
    assert ran.code == 0, ran.err
    assert "To try next" in ran.out
