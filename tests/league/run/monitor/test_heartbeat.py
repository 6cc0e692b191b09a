"""The heartbeat of a run and what it has spent, as files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from league.errors import DiskFull, LeagueError
from league.run.budget import ClockFile, Limits, Spent
from league.run.daemon_status import DaemonStatus
from league.run.monitor.heartbeat import Heartbeat
from league.run.resume_files import begun_at
from league.store.run_folder import CLOCK_FILE, Troubles
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
    troubles = Troubles(refused=3, hosts_lost=6, quarantined_games=2)
    return DaemonStatus(Spent(9.0, 9.0, env_steps), 0.1, "training", {}, troubles)


@pytest.mark.parametrize(("env_steps", "next_stop"), [(300, 800), (1_032, 1_500)])
def test_the_next_command_counts_from_the_target_of_this_one_only_where_it_was_reached(
    env_steps: int, next_stop: int, bench: Bench
) -> None:
    heartbeat_of(bench, env_steps_target=1_000).write_clock(seen_after(env_steps))
    clock = ClockFile.decode(bench.folder.read_resume_file(CLOCK_FILE))
    bench.league.state.totals.env_steps = env_steps
    limits = Limits(env_steps=500)
    assert limits.env_steps_target(begun_at(clock, bench.league.state, limits)) == next_stop


def test_the_heartbeat_of_a_stop_leaves_the_clock_as_it_was_written_to_last(bench: Bench) -> None:
    heartbeat = heartbeat_of(bench)
    heartbeat.write_clock(seen_after(300), durable=True)
    clock = bench.folder.path / CLOCK_FILE
    written = clock.stat().st_ino
    heartbeat.write(seen_after(300), phase="stopped")
    assert clock.stat().st_ino == written
    heartbeat.write(seen_after(300), phase="running")
    assert clock.stat().st_ino != written


def test_the_heartbeat_of_a_failed_run_keeps_what_was_lost_and_refused(bench: Bench) -> None:
    heartbeat = heartbeat_of(bench)
    heartbeat.write(seen_after(300), phase="running")
    with pytest.raises(LeagueError), heartbeat.failure_noted():
        raise LeagueError("actor-0 was lost 6 times in a row")
    status = bench.folder.read_status()
    assert status is not None
    assert (status.phase, status.message) == ("failed", "actor-0 was lost 6 times in a row")
    assert (status.refused, status.hosts_lost, status.quarantined_games) == (3, 6, 2)


def test_a_heartbeat_that_cannot_be_written_does_not_hide_why_the_run_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, status: object) -> None:
        raise DiskFull(bench.folder.path)

    heartbeat = heartbeat_of(bench)
    monkeypatch.setattr("league.store.run_folder.RunFolder.write_status", full)
    with pytest.raises(LeagueError, match="in a row"), heartbeat.failure_noted():
        raise LeagueError("actor-0 was lost 6 times in a row")
