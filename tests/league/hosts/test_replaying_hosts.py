"""Both learner hosts learn from a replay: updates per row, fresh decisions, resets, and a resume from its file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from league.agents.replay.replay_source import ReplaySource
from league.hosts.learners.async_learner_host import AsyncLearnerHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import chunk_of, rows_of, setup_of, weights_of
from tests.league.hosts.test_async_learner_host import wait_until

PLAYER = "main-0"
ALGORITHM = "tests.agents.learner.test_replayed_rows:Measured"


def replaying(tmp_path: Path, **options: object) -> HostSetup:
    setup = setup_of()
    kind = {"kind": "replay", "capacity": 64, "min_rows": 8, "samples_per_insert": 2.0, "storage": "file", **options}
    learner = dataclasses.replace(setup.learner, row_source=kind, algorithm=ALGORITHM)
    return dataclasses.replace(setup, learner=learner, rows=str(tmp_path))


def test_the_synchronous_host_learns_as_often_as_is_due_and_counts_fresh_decisions(tmp_path: Path) -> None:
    host = SyncLearnerHost(replaying(tmp_path, alpha=0.0), dtype=torch.float32)
    host.install(InstallPlayer(PLAYER))
    decisions = 0
    for seed in range(6):
        host.push(PLAYER, chunk_of(seed=seed))
        decisions += rows_of(8, seed=seed).num_steps
    newest = host.newest(PLAYER)
    assert newest.progress.version == 10, "(48 - 8 rows) x 2 samples / 8 rows of a batch"
    assert newest.update is not None and newest.update.sampled_steps > decisions
    assert 0.7 * decisions < newest.progress.trained_steps <= decisions, "each at most once"
    host.close()


def test_equal_calls_have_equal_results(tmp_path: Path) -> None:
    digests = []
    for run in "ab":
        host = SyncLearnerHost(replaying(tmp_path / run), dtype=torch.float32)
        host.install(InstallPlayer(PLAYER))
        for seed in range(4):
            host.push(PLAYER, chunk_of(seed=seed))
        digests.append(host.newest(PLAYER).weights.digest())
        host.close()
    assert digests[0] == digests[1]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_reset_empties_the_replay_of_its_player_alone_and_a_resume_keeps_it(tmp_path: Path, kind: str) -> None:
    setup = replaying(tmp_path)

    def opened() -> SyncLearnerHost | AsyncLearnerHost:
        if kind == "sync":
            return SyncLearnerHost(setup, dtype=torch.float32)
        host = AsyncLearnerHost(setup, dtype=torch.float32)
        host.start()
        return host

    def table(host: SyncLearnerHost | AsyncLearnerHost, player: str) -> int:
        source = host._sources[player] if isinstance(host, SyncLearnerHost) else host._held[player].source
        assert isinstance(source, ReplaySource)
        return source.table.size

    host = opened()
    for player in (PLAYER, "main-1"):
        host.install(InstallPlayer(player, generation=3))
        for seed in range(2):
            host.push(player, chunk_of(seed=seed, player=player))
    host.reset(PLAYER, weights_of(setup, seed=5))
    assert (table(host, PLAYER), table(host, "main-1")) == (0, 16)
    host.push(PLAYER, chunk_of(3, version=host.newest(PLAYER).progress.version))
    host.close()
    again = opened()
    again.install(InstallPlayer(PLAYER, generation=4))
    again.install(InstallPlayer("main-1", generation=3))
    assert (table(again, PLAYER), table(again, "main-1")) == (3, 16)
    again.install(InstallPlayer("main-1", generation=4))  # a transplant
    assert (table(again, PLAYER), table(again, "main-1")) == (3, 0)
    again.close()


def test_the_asynchronous_host_learns_beside_pushes_and_gives_errors_back(tmp_path: Path) -> None:
    setup = replaying(tmp_path, alpha=1.0)
    host = AsyncLearnerHost(setup, dtype=torch.float32)
    host.start()
    host.install(InstallPlayer(PLAYER))
    for seed in range(6):
        host.push(PLAYER, chunk_of(seed=seed))
    wait_until(lambda: host.newest(PLAYER).progress.version >= 10, "the updates that are due")
    source = host._held[PLAYER].source
    assert isinstance(source, ReplaySource)
    table = source.table
    rewards = np.abs(table._layout.unrolls(table._memory.rows[: table.size]).rewards).sum(1)

    def errors_are_back() -> bool:
        """Of every row that was sampled; those of the update that is being done come a little later."""
        learnt = table._memory.sampled[: table.size] > 0
        return bool(
            learnt.any() and np.allclose(table._memory.errors[: table.size][learnt], rewards[learnt], rtol=1e-5)
        )

    wait_until(errors_are_back, "the errors of the rows that were learnt from")
    host.close()
