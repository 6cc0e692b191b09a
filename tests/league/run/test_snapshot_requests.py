"""Snapshots that no gate asks for: at a stop, and of main agents in time; a deterministic run takes none of these."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from league.config.run_config import RuntimeConfig
from league.run.budget import Limits
from league.run.daemon import SIGNAL
from league.run.snapshot_requests import SnapshotRequests
from tests.league.run.fake_runtime import Bench

EVERY_FIVE_MINUTES = RuntimeConfig(snapshot_seconds=300.0)
NEVER = {"min_steps": 10**9, "timeout_steps": 10**9}
PLAYERS = {"players": [{"role": "main_agent", "gate": NEVER}, {"role": "main_exploiter", "gate": NEVER}]}


def reasons_of(bench: Bench, player: str) -> list[str]:
    return [info.reason for info in bench.league.state.snapshots.values() if info.player == player]


@pytest.mark.parametrize("exact", [False, True])
def test_a_stop_by_a_signal_freezes_what_was_learnt_unless_the_run_is_exact(exact: bool, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=PLAYERS, exact=exact)
    daemon = bench.daemon(Limits(env_steps=10**9))

    def stop(number: int) -> None:
        daemon.stop_requested = number >= 60

    bench.runtime.on_poll = stop
    assert daemon.run() == SIGNAL
    after = [] if exact else ["final"]
    for player in ("main-0", "main-exploiter-0"):
        assert bench.league.state.players[player].trained_steps > 0
        assert reasons_of(bench, player) == ["initial", *after]
    snapshots = len(bench.league.state.snapshots)
    again = bench.daemon(Limits(env_steps=10**9))
    again.stop_requested = True
    again.run()
    assert len(bench.league.state.snapshots) == snapshots, "nothing was learnt since"


@pytest.mark.parametrize("exact", [False, True])
def test_a_main_agent_is_frozen_in_time_whatever_its_gate_says(exact: bool, tmp_path: Path) -> None:
    """One poll of the fake runtime is a second, and a lease takes two."""
    bench = Bench(tmp_path / "run", league=PLAYERS, runtime={"snapshot_seconds": 20.0}, exact=exact)
    bench.daemon(Limits(seconds=130.0)).run()
    assert reasons_of(bench, "main-exploiter-0").count("time") == 0
    assert reasons_of(bench, "main-0").count("time") == (0 if exact else 6)


def test_snapshots_in_time_grow_rarer_with_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=PLAYERS)
    bench.run(env_steps=600)
    state, asked = bench.league.state, []
    player = state.players["main-0"]
    requests = SnapshotRequests(EVERY_FIVE_MINUTES, ask=lambda command: not asked.append(command))
    for now, is_due in ((9_000.0, False), (9_899.0, False), (10_100.0, True)):
        player.trained_steps += 10
        requests.request_due(state, now=now)
        assert bool(asked) is is_due
    asked.clear()
    player.trained_steps = state.snapshots[f"main-0-s{player.num_snapshots - 1}"].trained_steps
    requests.request_due(state, now=20_000.0)
    assert not asked, "nothing was learnt since"


@pytest.mark.parametrize("exact", [False, True])
def test_snapshots_by_budget_are_spread_evenly_over_it(exact: bool, tmp_path: Path) -> None:
    runtime = {"snapshot_seconds": 10_000.0, "snapshots_per_budget": 8}
    budget = {"env_steps": 4_000}
    bench = Bench(tmp_path / "run", league=PLAYERS, runtime=runtime, budget=budget, adapt=False, exact=exact)
    bench.daemon(Limits()).run()
    state = bench.league.state
    taken = [info for info in state.snapshots.values() if info.player == "main-0"]
    assert [info.reason for info in taken].count("budget") == 7
    assert reasons_of(bench, "main-exploiter-0").count("budget") == 0
    steps = [info.trained_steps for info in taken if info.reason == "budget"]
    gaps = [later - earlier for earlier, later in pairwise(steps)]
    assert max(gaps) <= 2 * min(gaps)


def test_a_snapshot_by_the_gate_counts_for_its_part_of_the_budget(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=PLAYERS)
    bench.run(env_steps=600)
    state, asked = bench.league.state, []
    player = state.players["main-0"]
    requests = SnapshotRequests(
        replace(EVERY_FIVE_MINUTES, snapshots_per_budget=10), ask=lambda command: not asked.append(command)
    )
    requests.request_by_budget(state, budget_fraction=0.15)
    player.trained_steps += 10
    for fraction, is_due in ((0.19, False), (0.21, True)):
        asked.clear()
        requests.request_by_budget(state, budget_fraction=fraction)
        assert bool(asked) is is_due
    player.num_snapshots += 1
    state.snapshots[f"main-0-s{player.num_snapshots - 1}"] = state.snapshots["main-0-s0"]
    for fraction, is_due in ((0.25, False), (0.29, False), (0.31, True)):
        asked.clear()
        requests.request_by_budget(state, budget_fraction=fraction)
        assert bool(asked) is is_due
