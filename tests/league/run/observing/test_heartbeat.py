"""The heartbeat of a run and what it has spent, as files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from league.run.budget import ClockFile, Limits, Spent
from league.run.daemon_status import DaemonStatus
from league.run.observing.heartbeat import Heartbeat
from league.run.resume_files import begun_at
from league.store.run_folder import CLOCK_FILE
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import ONE_PLAYER


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "run", league=ONE_PLAYER)


def heartbeat_of(bench: Bench, *, env_steps_target: int | None = None) -> Heartbeat:
    alerts = cast(Any, SimpleNamespace(firing=()))
    return Heartbeat(
        bench.folder, league=bench.league, runtime=bench.runtime, alerts=alerts, env_steps_target=env_steps_target
    )


def seen_after(env_steps: int) -> DaemonStatus:
    return DaemonStatus(Spent(9.0, 9.0, env_steps), 0.1, "training", {}, refused=3, hosts_lost=6, quarantined_games=2)


@pytest.mark.parametrize(("env_steps", "next_stop"), [(300, 800), (1_032, 1_500)])
def test_the_next_command_counts_from_the_target_of_this_one_only_where_it_was_reached(
    env_steps: int, next_stop: int, bench: Bench
) -> None:
    heartbeat_of(bench, env_steps_target=1_000).write_clock(seen_after(env_steps))
    clock = ClockFile.decode(bench.folder.read_resume_file(CLOCK_FILE))
    bench.league.state.totals.env_steps = env_steps
    limits = Limits(env_steps=500)
    assert limits.env_steps_target(begun_at(clock, bench.league.state, limits)) == next_stop
