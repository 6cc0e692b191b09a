"""Replay hosts on Ray: rows go through them to the learner, outlive it, and a killed host costs what was on its way."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray

from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.nets.config import NetworkConfig
from league.agents.replay.row_bytes import RowLayout, checksums_of, computed_checksums
from league.agents.replay.row_files import MappedRows
from league.agents.unroll.unroll import UnrollSpec
from league.envs.registry import spec_of
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    PlayerInstalled,
    Remark,
    Report,
    ResetDone,
    ResetPlayer,
)
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import TIC_TAC_TOE, encoded, rows_of, setup_of, weights_of
from tests.league.hosts.on_ray.test_ray_runtime import SETTINGS, Watched

pytestmark = pytest.mark.xdist_group("ray")

PLAYER = "main-0"
HOSTS = 2
OPTIONS = {"capacity": 1 << 16, "min_rows": 64, "samples_per_insert": 2.0, "storage": "file"}
CHUNK = 8


def replaying(folder: Path) -> HostSetup:
    setup = setup_of()
    learner = dataclasses.replace(setup.learner, row_source={"kind": "replay", **OPTIONS}, algorithm="dqn")
    network = NetworkConfig(hidden=(8,), head="q_values")
    return dataclasses.replace(setup, network=network, learner=learner, rows=str(folder), replay_hosts=HOSTS)


class Pushes:
    """Pushes chunk after chunk of rows that are told apart by their rewards.

    Attributes:
      acknowledged: marks of the rows whose push was answered.
    """

    def __init__(self, found: Watched) -> None:
        self.acknowledged: list[int] = []
        self._roster = found.runtime._roster
        self._mark = 0
        self._over = threading.Event()

    def once(self) -> None:
        """One chunk; raises what the learner host raises."""
        marks = range(self._mark, self._mark + CHUNK)
        self._mark += CHUNK
        rows = dataclasses.replace(
            rows_of(CHUNK, seed=marks.start),
            rewards=np.repeat(np.float32(marks)[:, None], 4, axis=1),
            versions=np.zeros((CHUNK, 4), np.int32),
        )
        handle = self._roster.learner_handles()[PLAYER]
        ray.get(handle.push.remote(PLAYER, encoded(rows), have=-1, sender="tests"))
        self.acknowledged.extend(marks)

    def beside(self) -> threading.Thread:
        """Go on in a thread, over what is lost, until `stop`."""

        def go_on() -> None:
            while not self._over.is_set():
                try:
                    self.once()
                except ray.exceptions.RayError:
                    continue

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """End the thread after the push at hand."""
        self._over.set()


def marks_in(setup: HostSetup, folder: Path, *, generation: int = 0) -> Counter[int]:
    """How often each row is in the files of the hosts; all are whole."""
    layout = RowLayout(UnrollSpec(spec_of(TIC_TAC_TOE), setup.learner.unroll_length))
    capacity = ReplayConfig(**OPTIONS).share(HOSTS).capacity  # type: ignore[arg-type]
    found: Counter[int] = Counter()
    for place in range(HOSTS):
        memory = MappedRows(folder / PLAYER / f"replay-{place}" / "rows", layout, capacity, generation=generation)
        assert memory.reopened
        rows = memory.rows[np.flatnonzero(checksums_of(memory.rows))]
        np.testing.assert_array_equal(computed_checksums(rows), checksums_of(rows))
        found.update(layout.unrolls(rows).rewards[:, 0].astype(int).tolist())
        memory.close()
    return found


@pytest.fixture
def setup(tmp_path: Path) -> HostSetup:
    return replaying(tmp_path)


@pytest.fixture
def found(ray_cluster: Cluster, setup: HostSetup) -> Iterator[Watched]:
    settings = dataclasses.replace(SETTINGS, replay_hosts=HOSTS)
    made = Watched(RayRuntime(setup, settings, players=(PLAYER,), cluster=ray_cluster))
    try:
        made.runtime.start()
        started = [HostStarted(f"replay-{place}", "replay_host") for place in range(HOSTS)]
        made.until_all(*started, HostStarted("learner-0", "learner_host", (PLAYER,)))
        made.runtime.submit(InstallPlayer(PLAYER))
        made.until_all(PlayerInstalled(PLAYER))
        made.until(has_handles)
        yield made
    finally:
        made.runtime.close()


def has_handles(report: Report) -> bool:
    """True for the learner host's answer to a question, which brings it the handles of the replay hosts."""
    return isinstance(report, LearnerProgress)


def version_of(report: Report) -> int:
    return report.progress.version if isinstance(report, LearnerProgress) else -1


def is_said(report: Report) -> bool:
    return isinstance(report, Remark) and f"of {PLAYER} from its file" in report.text


def is_loss(report: Report) -> bool:
    return isinstance(report, HostLost) and report.host == "replay-0"


def test_rows_survive_a_kill_of_their_host_and_of_their_learner(
    found: Watched, setup: HostSetup, tmp_path: Path
) -> None:
    pushes = Pushes(found)
    for _ in range(12):
        pushes.once()
    found.until(lambda report: version_of(report) >= 4)
    assert [worker.kind for worker in found.runtime.workers()] == 2 * ["replay_host"] + ["learner_host", "actor_host"]

    thread = pushes.beside()
    before = found.pid("replay_host")
    os.kill(before, signal.SIGKILL)
    found.until(is_loss)
    learnt = max(map(version_of, found.reports))
    found.until(lambda report: version_of(report) >= learnt + 5)
    found.until(lambda _: any(map(is_said, found.reports)) and max(map(version_of, found.reports)) >= learnt + 20)
    pushes.stop()
    thread.join(60.0)
    assert not thread.is_alive()
    assert found.pid("replay_host") != before

    rows = marks_in(setup, tmp_path)
    assert rows.total() == len(rows), "no row is there twice"
    assert not set(pushes.acknowledged) - set(rows), "every row whose push was answered is there"

    pids = {worker.name: worker.pid for worker in found.runtime.workers()}
    os.kill(pids["learner-0"], signal.SIGKILL)
    found.until(lambda report: isinstance(report, HostStarted) and report.kind == "learner_host")
    found.runtime.submit(InstallPlayer(PLAYER))
    found.until_all(PlayerInstalled(PLAYER))
    found.until(has_handles)
    pushes.once()  # far fewer than min_rows: it learns from those that are there
    found.until(lambda report: version_of(report) >= 1)
    now = {worker.name: worker.pid for worker in found.runtime.workers()}
    assert [now[f"replay-{place}"] for place in range(HOSTS)] == [pids[f"replay-{place}"] for place in range(HOSTS)]

    found.runtime.submit(ResetPlayer(1, PLAYER, weights_of(setup, seed=5)))
    found.until_all(ResetDone(1))
    for handle in found.runtime._roster.replay_handles():
        assert ray.get(handle.batch.remote(PLAYER, 1, timeout_s=0.0)) is None
    assert not marks_in(setup, tmp_path, generation=1)
