"""The throughput benchmark: what a window counts, which settings are compared, which rows must hold."""

import os
import types
from pathlib import Path

import pytest
import yaml

from benchmarks.throughput import __main__ as throughput
from benchmarks.throughput import rate_window
from benchmarks.throughput.roofline import Parts, RunParts
from league.config.learner_options import with_options
from league.config.loading import load_config
from league.core.state.events import LeaseFinished, LeaseGranted, ProgressReported, SnapshotAdded
from league.core.state.records import Lease, Progress, SnapshotInfo
from league.operate.chaos.follower import Noted, RunFailed

PARTS = Parts(env=1e6, forward=1e6, update=1e6, codec=1e6)
RUN_PARTS = RunParts(acting=5e5, recording=5e5, update=1e6, codec=float("inf"))


def measured(per_core: float, *, share: float = 1.0) -> rate_window.Measured:
    steps = int(per_core * 10)
    return rate_window.Measured(steps, core_seconds=10.0, seconds=20.0, trained=int(steps * share), snapshots=1)


def noted(*events: object) -> list[Noted]:
    return [Noted(seq, 0.0, event) for seq, event in enumerate(events, start=1)]


def test_totals_count_steps_and_the_newest_progress_of_every_player():
    totals = rate_window.Totals()
    assert not totals.add(noted(ProgressReported(Progress("a", 1, 10)), ProgressReported(Progress("b", 1, 5))))
    assert totals.add(noted(LeaseFinished(1, 1, 64, ()), ProgressReported(Progress("a", 2, 30))))
    totals.add(noted(SnapshotAdded(1, SnapshotInfo("a-s0", "0" * 64, "a", "main_agent", None, 2, 30, "gate"))))
    assert (totals.env_steps, totals.trained, totals.snapshots) == (64, 35, 1)


def watched(monkeypatch: pytest.MonkeyPatch, batches: dict[float, list[Noted]]):
    """A command and the follower of its journal, which shows these events at these seconds."""
    now = [0.0]
    monkeypatch.setattr(rate_window.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(rate_window.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 0.25))
    monkeypatch.setattr(rate_window, "tree_core_seconds", lambda pid: 2.0 * now[0])
    monkeypatch.setattr(rate_window, "ray_core_seconds", lambda pid: 0.5 * now[0])
    command = types.SimpleNamespace(pid=1, ended=None)
    return command, types.SimpleNamespace(poll=lambda: batches.pop(now[0], []))


def test_a_window_runs_from_one_finished_lease_to_another(monkeypatch: pytest.MonkeyPatch):
    lease = LeaseFinished(1, 1, 64, ())
    batches = {0.5: noted(lease), 1.5: noted(lease), 2.25: [], 2.5: noted(lease, lease)}
    command, follower = watched(monkeypatch, batches)
    totals = rate_window.Totals()
    begin = rate_window._next_reading(command, follower, totals, after=1.0, deadline_s=9.0)
    end = rate_window._next_reading(command, follower, totals, after=2.0, deadline_s=9.0)
    assert (begin.at, begin.env_steps, begin.core_seconds) == (1.5, 128, 3.0)
    assert (end.at, end.env_steps, end.core_seconds, end.ray_core_seconds) == (2.5, 256, 5.0, 1.25)


def test_a_window_opens_once_every_player_has_had_a_lease(monkeypatch: pytest.MonkeyPatch):
    homes = {1: "a", 2: "b", 3: None, 4: "a"}
    granted = [LeaseGranted(Lease(number, 1, "host", home, (), 64)) for number, home in homes.items()]
    finished = {number: noted(LeaseFinished(number, 1, 64, ())) for number in homes}
    batches = {0.25: noted(*granted), 0.5: finished[1], 1.0: finished[3], 1.5: finished[2], 2.0: finished[4]}
    command, follower = watched(monkeypatch, batches)
    found = rate_window._next_reading(command, follower, rate_window.Totals(), after=0.0, homes=2, deadline_s=9.0)
    assert (found.at, found.env_steps) == (1.5, 192)


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("/venv/lib/python3.11/site-packages/ray/core/src/ray/raylet/raylet --port=0", True),
        ("ray::DashboardAgent", True),
        ("ray::IDLE", True),
        ("ray::ActorHostProcess.play", False),
        ("ray::LearnerHostProcess", False),
        ("python -m league train config.yaml", False),
    ],
)
def test_hosts_are_no_processes_of_rays_own(command: str, own: bool):
    assert rate_window.is_rays_own(command) == own


def test_memory_of_a_tree_is_that_of_its_processes():
    assert 10.0 < rate_window.tree_memory_mib(os.getpid()) < 10_000.0


def test_a_run_that_ends_by_itself_fails_the_measurement_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rate_window.time, "sleep", lambda seconds: pytest.fail("it went on waiting"))
    command = types.SimpleNamespace(pid=1, ended=2, failure=RunFailed)
    follower = types.SimpleNamespace(poll=list)
    with pytest.raises(RunFailed):
        rate_window._next_reading(command, follower, rate_window.Totals(), after=0.0, deadline_s=9.0)


@pytest.mark.parametrize("env", sorted(throughput.WORKLOADS))
@pytest.mark.parametrize("league", [True, False])
def test_settings_are_a_valid_configuration(env: str, league: bool, tmp_path: Path):
    workload = throughput.WORKLOADS[env]
    plain = throughput.config_of(env, workload, precision="float32", runtime="ray", league=league)
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(plain))
    config = load_config(path)
    assert config.network == workload.network
    expected, problems = with_options("learner", throughput.replace(workload.learner, precision="float32"))
    assert config.learner == expected and not problems
    assert len(config.league.players) == (3 if league else 1)
    assert config.league.ratings.step_fraction == (0.05 if league else 0.0)


def session_with(runs: dict[str, list[rate_window.Measured]], folder: Path) -> throughput.Session:
    workload = throughput.WORKLOADS["connect_four"]
    session = throughput.Session("connect_four", workload, seconds=1.0, warm_up_s=0.0, folder=folder)
    session.runs = runs
    session.parts = {"float32": [PARTS], "bfloat16": [PARTS]}
    session.run_parts = {"float32": [RUN_PARTS], "bfloat16": [RUN_PARTS]}
    return session


def rows(session: throughput.Session, reason: str | None):
    workload = throughput.WORKLOADS["connect_four"]
    report = throughput.rows_of(session, workload, env="connect_four", reason=reason)
    assert len({row.name for row in report.rows}) == len(report.rows)
    return {row.name.removeprefix("connect_four "): row for row in report.rows}


def test_figures_are_medians_and_ratios_are_of_neighbours_in_time(tmp_path: Path):
    session = session_with(
        {
            "float32": [measured(100_000), measured(200_000), measured(160_000)],
            "float32 league off": [measured(200_000), measured(200_000), measured(200_000)],
            "float32 Ray": [measured(50_000), measured(180_000), measured(160_000)],
        },
        tmp_path,
    )
    found = rows(session, "none here")
    assert found["float32"].value == 160_000
    assert found["float32"].met is True
    assert found["float32 league on against off, per core-second"].value == pytest.approx(0.8)
    assert found["float32 Ray runtime against in-process, per core-second"].value == pytest.approx(0.9)


def test_a_precision_that_was_not_measured_is_null_with_its_reason(tmp_path: Path):
    run = [measured(100_000)]
    session = session_with({"float32": run, "float32 league off": run, "float32 Ray": run}, tmp_path)
    found = rows(session, "no bfloat16 here")
    row = found["bfloat16 (no bfloat16 here)"]
    assert (row.value, row.required, row.met) == (None, ">= 250000", None)
    assert found["float32"].met is False


def test_league_overhead_is_not_hidden_by_plies_that_are_not_learnt_from(tmp_path: Path):
    """Equal plies a core-second, half as many of them learnt from: the league's run did less work."""
    on, off = [measured(200_000, share=0.5)], [measured(200_000)]
    session = session_with({"float32": on, "float32 league off": off, "float32 Ray": on}, tmp_path)
    found = rows(session, "none here")
    assert found["float32 league on against off, per core-second"].value == pytest.approx(1.0)
    each = found["float32 league on against off, at equal learnt decisions"]
    assert each.value == pytest.approx(2.5 / 3.0)
    assert each.met is False
