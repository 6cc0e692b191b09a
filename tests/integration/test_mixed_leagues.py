"""Players with settings of their own in one league: each learns its own way, meets the others, and is resumed so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.core.state.events import PlayerReset
from league.deploy.export.exporter import export_policy
from league.judge.matches.match import Match
from league.operate.history.fork import fork_run
from league.policies.exact.load_policy import load_policy
from league.policies.loaded_policy import LoadedPolicy
from league.policies.loading import load_from_run, open_run
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore
from tests.league.tiny_runs import events_of, go_on, history_of, start, state_of, tiny

STEPS, STOP_AT = 3_600, 1_900
GATE = {"min_steps": 60, "timeout_steps": 120, "test": {"min_games": 4}}

LEARNERS: dict[str, dict[str, Any]] = {
    "ppo": {
        "learner": {"algorithm": {"kind": "ppo", "epochs": 2}, "batch_rows": 8, "unroll_length": 6},
        "network": {"hidden": [9, 9], "core": "lstm", "core_size": 5},
    },
    "a3c": {
        "learner": {
            "algorithm": {"kind": "vtrace", "correction": "none", "lambda_": 1.0},
            "optimizer": {"kind": "rmsprop", "eps_inside": True},
        },
    },
}
"""Name of a group -> sections of its own. Another learner joins the league by another line."""

MIXED = tiny(
    network={"hidden": [12]},
    league={
        "players": [
            {"role": "main_agent", "gate": GATE},
            *({"role": "main_agent", "name": name, "gate": GATE, **own} for name, own in LEARNERS.items()),
            {"role": "main_exploiter", "name": "exploiter", "gate": GATE, "network": {"hidden": [7]}},
        ]
    },
)
PLAYERS = ("main-0", *(f"{name}-0" for name in LEARNERS), "exploiter-0")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that never stopped."""
    folder = tmp_path_factory.mktemp("mixed")
    start(folder, MIXED, env_steps=STEPS)
    return folder / "run"


def test_every_player_learns_and_meets_every_other(whole: Path) -> None:
    state = state_of(whole)
    assert tuple(state.players) == PLAYERS
    assert all(player.version > 0 and player.trained_steps > 0 for player in state.players.values())
    owners = [
        state.snapshots[name].player if name in state.snapshots else name for name in state.population.names.values()
    ]
    met = {
        frozenset((owners[home], owners[away]))
        for home, away, games in zip(state.payoff.home, state.payoff.away, state.payoff.totals, strict=True)
        if games.sum()
    }
    assert {frozenset((one, other)) for one in PLAYERS for other in PLAYERS if one != other} <= met
    assert any(isinstance(event, PlayerReset) for event in events_of(whole))
    assert verify_run(whole).problems == ()


def test_two_parts_of_a_run_equal_the_whole(whole: Path) -> None:
    start(whole.parent, MIXED, env_steps=STOP_AT, run="stopped")
    stopped = whole.parent / "stopped"
    before = len(history_of(stopped))
    go_on(stopped, env_steps=STEPS - STOP_AT)
    found = history_of(stopped)
    assert len(found) > before + 20
    assert found == history_of(whole)[: len(found)]


def test_each_snapshot_tells_the_settings_that_made_it(whole: Path) -> None:
    store, found = LocalSnapshotStore(RunFolder.open(whole).snapshots_path), dict[str, Any]()
    for info in state_of(whole).snapshots.values():
        manifest = store.get(info.digest)[1]
        found[info.player] = (manifest.network["hidden"], manifest.hyperparameters["algorithm"]["kind"])  # type: ignore[index]
    assert found == {
        "main-0": ([12], "vtrace"),
        "ppo-0": ([9, 9], "ppo"),
        "a3c-0": ([12], "vtrace"),
        "exploiter-0": ([7], "vtrace"),
    }


def test_policies_of_different_networks_are_loaded_and_play_each_other(whole: Path) -> None:
    run = open_run(whole)
    state = run.state
    newest = {info.player: info.snapshot_id for info in state.snapshots.values()}
    policies = [load_from_run(run, name) for name in (*PLAYERS, *newest.values())]
    sizes = [sum(part.numel() for part in policy.network.parameters()) for policy in policies]
    assert sizes[: len(PLAYERS)] == sizes[len(PLAYERS) :] and len({*sizes}) == 3
    for policy in policies[1:]:
        assert Match(run.env, [policies[0].as_seat_policy(), policy.as_seat_policy()], seed=1).play(4).games == 4


def test_a_fork_and_a_package_have_the_settings_of_each_player(whole: Path, tmp_path: Path) -> None:
    def sizes(run: Path) -> list[int]:
        return [num_weights(load_from_run(open_run(run), name)) for name in PLAYERS]

    def num_weights(policy: LoadedPolicy) -> int:
        return sum(part.numel() for part in policy.network.parameters())

    fork_run(whole, tmp_path / "fork", at="latest")
    go_on(tmp_path / "fork", env_steps=200)
    assert sizes(tmp_path / "fork") == sizes(whole)
    for number, name in enumerate(PLAYERS[:2]):
        package = export_policy(whole, tmp_path / name, player=name).path
        packed = load_policy(package)
        assert isinstance(packed, LoadedPolicy) and num_weights(packed) == sizes(whole)[number]
