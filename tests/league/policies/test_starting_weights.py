"""Players that begin with the weights of another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.agents.nets.config import NetworkConfig
from league.errors import LeagueError
from league.see.reports.verify import verify_run
from league.store.snapshots import LocalSnapshotStore
from tests.league.policies.test_imported import IMPORTED, games_by_opponent, opponent, run_of
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny


def starting_from(source: Path, **changes: Any) -> dict[str, Any]:
    """A run whose main agent begins with the weights of `opponent`, which nobody meets."""
    player = {**ONE_PLAYER["players"][0], "starts_from": IMPORTED}
    lent = opponent(source, **{"probability": 0.0, **changes})
    return tiny(network={"hidden": [6], "core": "lstm", "core_size": 5}) | {
        "league": {**ONE_PLAYER, "players": [player], "fixed_opponents": [lent]}
    }


def test_a_player_begins_with_the_weights_of_another_run_and_learns_on(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", seeds=3)
    start(tmp_path, starting_from(source, player="main-0-s1"), env_steps=1_500)
    path = tmp_path / "run"
    state, store = state_of(path), LocalSnapshotStore(path / "snapshots")
    theirs, own = (store.get(state.snapshots[name].digest)[0] for name in (IMPORTED, "main-0-s0"))
    assert own == theirs
    assert state.snapshots["main-0-s0"].parent == IMPORTED
    assert IMPORTED not in games_by_opponent(path), "a policy that lends its weights is not met"
    assert state.players["main-0"].trained_steps > 0
    go_on(path, env_steps=500)
    assert verify_run(path).problems == ()


def test_of_a_mixture_the_likeliest_member_lends_its_weights(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", seeds=3)
    start(tmp_path, starting_from(source, player="main-0-s1*3+main-0-s2"), env_steps=100)
    assert state_of(tmp_path / "run").snapshots["main-0-s0"].parent == f"{IMPORTED}-0"


def test_a_longer_name_is_another_policys(tmp_path: Path) -> None:
    source, plain = run_of(tmp_path / "source", seeds=3), starting_from(tmp_path / "source", player="main-0-s1")
    other = {**opponent(source, player="main-0-s2", probability=0.0), "policy": f"{IMPORTED}-0"}
    plain["league"]["fixed_opponents"].insert(0, other)
    start(tmp_path, plain, env_steps=100)
    assert state_of(tmp_path / "run").snapshots["main-0-s0"].parent == IMPORTED


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", network=NetworkConfig(hidden=(8,)))
    with pytest.raises(LeagueError, match="cannot start from imported:opponent: it has another network"):
        start(tmp_path, starting_from(source), env_steps=100)
    assert not (tmp_path / "run").exists()
