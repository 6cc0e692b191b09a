"""A pool's inbox: whole policies of the game join once, all else is set aside with a sentence."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from league.deploy.export.exporter import export_policy
from league.envs.protocol import EnvConfig
from league.errors import DiskFull, StorageError
from league.judge.pools.core.records import PoolGame
from league.judge.pools.folder import PoolFolder
from league.judge.pools.pool import LACKING_S, Pool, create_pool, open_pool
from league.store.storage import Storage
from tests.league.judge.matches.eval_runs import MadeRun, network_of
from tests.league.judge.pools.frozen_copies import frozen_copy, snapshot_folder
from tests.league.store.store_faults import FailAtPoint

LONG_AGO = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> PoolFolder:
    made = PoolFolder(tmp_path / "pool")
    create_pool(made, PoolGame("tic_tac_toe", 2))
    return made


@pytest.fixture
def pool(folder: PoolFolder):  # type: ignore[no-untyped-def]
    clock = iter(range(0, 10_000, 10))
    with open_pool(folder, clock=lambda: float(next(clock))) as opened:
        yield opened


def age(path: Path) -> None:
    """As if nothing had changed for long."""
    for file in (*path.rglob("*"), path):
        os.utime(file, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def names(pool: Pool) -> list[str]:
    return [policy.name for policy in pool.state.policies]


def test_a_whole_policy_joins_at_once_and_leaves_the_inbox(pool: Pool, folder: PoolFolder) -> None:
    snapshot_folder(folder.inbox / "run one.main-0-s1", 1)
    pool.tend()
    assert names(pool) == ["run-one.main-0-s1"]
    assert list(folder.inbox.iterdir()) == []
    assert pool.store.get(frozen_copy(1).manifest.digest)[0] == frozen_copy(1).weights


def test_equal_weights_join_once_and_equal_names_differ_by_their_digest(pool: Pool, folder: PoolFolder) -> None:
    snapshot_folder(folder.inbox / "a", 1)
    pool.tend()
    snapshot_folder(folder.inbox / "a", 2)
    snapshot_folder(folder.inbox / "b", 1)
    pool.tend()
    assert names(pool) == ["a", f"a@{frozen_copy(2).manifest.digest[:8]}"]
    assert list(folder.inbox.iterdir()) == []


def test_what_is_still_being_copied_waits(pool: Pool, folder: PoolFolder) -> None:
    path = snapshot_folder(folder.inbox / "a", 1)
    whole = (path / "weights.safetensors").read_bytes()
    (path / "weights.safetensors").write_bytes(whole[:100])
    pool.tend()
    assert path.exists() and not names(pool)
    (path / "weights.safetensors").write_bytes(whole)
    pool.tend()
    assert names(pool) == ["a"]


def damaged(folder: PoolFolder) -> None:
    path = snapshot_folder(folder.inbox / "a", 1) / "weights.safetensors"
    payload = bytearray(path.read_bytes())
    payload[-3] ^= 1
    path.write_bytes(payload)


def described_wrongly(folder: PoolFolder) -> None:
    path = snapshot_folder(folder.inbox / "a", 1) / "manifest.json"
    plain = json.loads(path.read_text())
    plain["manifest"]["player"] = "someone"
    path.write_text(json.dumps(plain))


def of_another_game(folder: PoolFolder) -> None:
    snapshot_folder(folder.inbox / "a", 1, "connect_four")


def a_file(folder: PoolFolder) -> None:
    (folder.inbox / "a").write_text("hello")


def a_link(folder: PoolFolder) -> None:
    (folder.inbox / "a").symlink_to(snapshot_folder(folder.path / "elsewhere", 1))


@pytest.mark.parametrize(
    ("drop", "word"),
    [
        (damaged, "sha256"),
        (described_wrongly, "sha256"),
        (of_another_game, "connect_four"),
        (a_file, "not the folder"),
        (a_link, "not the folder"),
    ],
)
def test_what_does_not_hold_is_set_aside_with_a_sentence(pool: Pool, folder: PoolFolder, drop, word) -> None:  # type: ignore[no-untyped-def]
    drop(folder)
    age(folder.inbox / "a")
    pool.tend()
    assert not names(pool) and not list(folder.inbox.iterdir())
    assert word in (folder.refused / "a.txt").read_text()
    assert os.path.lexists(folder.refused / "a")


def test_a_second_one_of_the_same_name_is_set_aside_beside_the_first(pool: Pool, folder: PoolFolder) -> None:
    for _ in range(2):
        a_file(folder)
        age(folder.inbox / "a")
        pool.tend()
    assert sorted(path.name for path in folder.refused.iterdir()) == ["a", "a+", "a+.txt", "a.txt"]


def test_a_policy_that_the_disk_of_the_pool_could_not_take_stays_in_the_inbox(folder: PoolFolder) -> None:
    storage = Storage(hook=FailAtPoint("folder.before_rename", errno.EIO))
    clock = iter(range(0, 10_000, 10))
    with open_pool(folder, clock=lambda: float(next(clock)), storage=storage) as pool:
        age(snapshot_folder(folder.inbox / "a", 1))
        with pytest.raises(StorageError):
            pool.tend()
        assert (folder.inbox / "a").exists() and not folder.refused.exists()
        pool.tend()
        assert names(pool) == ["a"]


def test_an_overdue_lease_that_a_full_disk_kept_open_is_given_up_later(folder: PoolFolder) -> None:
    now, faults = [0.0], list[FailAtPoint]()

    def hook(point: str) -> None:
        for fault in faults:
            fault(point)

    with open_pool(folder, clock=lambda: now[0], storage=Storage(hook=hook)) as pool:
        for seed in (1, 2):
            snapshot_folder(folder.inbox / f"p{seed}", seed)
        granted = pool.lease("w")
        assert granted is not None
        now[0] += granted.lease.duration_s + 1.0
        faults.append(FailAtPoint("journal.before_commit"))
        with pytest.raises(DiskFull):
            pool.tend()
        assert pool.state.leases
        pool.tend()
        assert not pool.state.leases and pool.state.expired == 1


def test_an_overdue_lease_is_given_up_and_its_answer_comes_too_late(folder: PoolFolder) -> None:
    now = [0.0]
    with open_pool(folder, clock=lambda: now[0]) as pool:
        for seed in (1, 2):
            snapshot_folder(folder.inbox / f"p{seed}", seed)
        granted = pool.lease("w")
        assert granted is not None and granted.lease.games == 8
        now[0] += granted.lease.duration_s + 1.0
        pool.tend()
        assert not pool.state.leases and pool.state.expired == 1


def test_what_a_worker_lacked_counts_for_a_while_and_is_then_forgotten(folder: PoolFolder) -> None:
    now = [0.0]
    with open_pool(folder, clock=lambda: now[0]) as pool:
        for seed in (1, 2):
            snapshot_folder(folder.inbox / f"p{seed}", seed)
        for worker in ("one", "two"):
            granted = pool.lease(worker)
            assert granted is not None
            pool.lack(granted.lease.lease_id, granted.lease.token, "p1", "it has no such weights")
            assert pool.lease(worker) is None
        now[0] += LACKING_S + 1.0
        assert pool.lease("three") is not None
        assert not pool._lacking, "workers that never come back leave nothing behind"
        assert pool.lease("one") is not None


def test_what_a_crash_left_in_the_inbox_is_removed_once_no_writer_can_be_at_it(pool: Pool, folder: PoolFolder) -> None:
    def left(name: str) -> Path:
        snapshot_folder(folder.inbox / name, 1)
        return folder.inbox / name

    old, old_file, new = left(".tmp-1-a"), folder.inbox / ".tmp-1-b", left(".tmp-2-c")
    old_file.write_bytes(b"half")
    age(old)
    age(old_file)
    hidden = folder.inbox / ".keep"
    hidden.write_bytes(b"")
    age(hidden)
    pool.tend()
    assert set(folder.inbox.iterdir()) == {new, hidden}
    assert names(pool) == []


def test_what_a_crash_left_and_cannot_be_removed_is_said_once_and_stops_nobody(folder: PoolFolder) -> None:
    def forbid(point: str) -> None:
        if point == "remove.before_unlink":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    said: list[str] = []
    clock = iter(range(0, 10_000, 10))
    with open_pool(folder, clock=lambda: float(next(clock)), storage=Storage(hook=forbid), say=said.append) as pool:
        left = folder.inbox / ".tmp-1-a"
        left.write_bytes(b"half")
        age(left)
        snapshot_folder(folder.inbox / "b", 1)
        pool.tend()
        pool.tend()
        assert left.exists() and names(pool) == ["b"]
    assert [sentence for sentence in said if "left by a crash" in sentence] == said[:1]
    assert "Permission denied" in said[0]


def test_the_members_of_a_mixture_join_one_by_one(pool: Pool, folder: PoolFolder, tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", env=EnvConfig("tic_tac_toe"))
    for seed in (1, 2):
        run.snapshot("main-0", network_of(run.config, seed=seed))
    export_policy(run.close(), folder.inbox / "mixed", player="main-0-s0*2+main-0-s1")
    pool.tend()
    assert names(pool) == ["mixed.main-0-s0", "mixed.main-0-s1"]
    assert list(folder.inbox.iterdir()) == []
