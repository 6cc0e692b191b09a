"""A DQN player is a member of a league like any other: it meets opponents, passes gates, is frozen, judged, resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.agents.replay.row_bytes import checksums_of
from league.agents.replay.row_files import HEAD_BYTES
from league.core.state.state import LeagueState
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.loading import load_from_run, open_run
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import go_on, start, state_of, tiny

GATE = {"min_steps": 60, "timeout_steps": 120, "test": {"min_games": 4}}
CAPACITY, FRONT = 512, 2 * HEAD_BYTES
"""Rows of a replay, and bytes before them in its file: the head, and five for each row in pages."""
OWN: dict[str, Any] = {
    "network": {"head": {"kind": "q_values", "epsilon": 0.05}},
    "learner": {
        "algorithm": {"kind": "dqn", "n_steps": 3},
        "batch_rows": 8,
        "row_source": {
            "kind": "replay",
            "capacity": CAPACITY,
            "min_rows": 8,
            "samples_per_insert": 2,
            "storage": "file",
        },
    },
    "actors": {"acting": {"kind": "epsilon_greedy", "epsilon": 0.4}},
}
PLAYERS = ("main-0", "dqn-0", "exploiter-0")


def mixed(game: str) -> dict[str, Any]:
    """A main agent by V-trace, and a main agent and an exploiter by DQN."""
    roles = [
        ("main_agent", {}),
        ("main_agent", {"name": "dqn", **OWN}),
        ("main_exploiter", {"name": "exploiter", **OWN}),
    ]
    return tiny(
        env={"id": game},
        league={"lease_steps": 8, "players": [{"role": role, "gate": GATE, **own} for role, own in roles]},
    )


def met(state: LeagueState) -> set[frozenset[str]]:
    """Players whose policies have played each other."""
    owners = [
        state.snapshots[name].player if name in state.snapshots else name for name in state.population.names.values()
    ]
    played = zip(state.payoff.home, state.payoff.away, state.payoff.totals, strict=True)
    return {frozenset((owners[home], owners[away])) for home, away, games in played if games.sum()}


def stored(run: Path, player: str) -> int:
    """Rows in the file of a player's replay."""
    content = np.fromfile(run / "rows" / player / "rows", np.uint8)
    return int(np.count_nonzero(checksums_of(content[FRONT:].reshape(CAPACITY, -1))))


@pytest.mark.parametrize("game", ["kuhn_poker", "tic_tac_toe"])
def test_a_dqn_player_meets_others_passes_gates_and_is_resumed_with_its_rows(game: str, tmp_path: Path) -> None:
    start(tmp_path, mixed(game), env_steps=1_400)
    run, first = tmp_path / "run", state_of(tmp_path / "run")
    assert {frozenset((one, other)) for one in PLAYERS for other in PLAYERS if one != other} <= met(first)
    for name in PLAYERS:
        assert first.players[name].version > 0 and first.players[name].trained_steps > 0, name
    made = [info.player for info in first.snapshots.values()]
    assert made.count("dqn-0") >= 2, "it has passed a gate"
    rows = {name: stored(run, name) for name in PLAYERS[1:]}
    assert all(rows.values())

    go_on(run, env_steps=700)
    last = state_of(run)
    for name in PLAYERS:
        assert last.players[name].trained_steps > first.players[name].trained_steps, name
    assert stored(run, "dqn-0") >= rows["dqn-0"], "no reset: the rows of before are still there"
    assert verify_run(run).problems == ()
    policy = load_from_run(open_run(run), "dqn-0")
    if game == "kuhn_poker":
        assert 0.0 < nash_conv(game, members_of(policy)) < 4.0
