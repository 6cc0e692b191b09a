"""Every acknowledged answer counts exactly once, whatever is lost, doubled, late or killed."""

from __future__ import annotations

import contextlib
import errno
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchmarks.watch.simulated_pool import MEMORY, run_schedules
from league.errors import JournalError, StorageError
from league.judge.pools.core.events import EVENTS, StateCarried
from league.judge.pools.core.records import BOT, BatchResult, PoolGame, PoolPolicy, result_problem
from league.judge.pools.core.rules import (
    AddPolicy,
    AlreadyThere,
    CreatePool,
    ExpireBatch,
    FailBatch,
    FinishBatch,
    GrantBatch,
    NotOpen,
    OpenPool,
    PoolRefused,
)
from league.judge.pools.core.state import from_plain, to_plain
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import DEFAULT_SIZES, JournaledPool, JournalSizes, read_pool, verified_pool
from league.store.event_codec import EventCodec
from league.store.storage import Storage

RESULT = BatchResult(wins=2, draws=1, losses=1, squares=(1.0**2 + 0.25**2), seconds=1.5)


@pytest.fixture
def pool(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = new_pool(tmp_path)
    yield made
    made.close()


def new_pool(path: Path, sizes: JournalSizes = DEFAULT_SIZES, storage: Storage | None = None) -> JournaledPool:
    made = JournaledPool.create(
        PoolFolder(path),
        CreatePool(PoolGame("tic_tac_toe", 2, {"a": [1, {"b": None}]})),
        wall_time=lambda: 0.0,
        sizes=sizes,
        storage=storage,
    )
    made.execute(OpenPool("first"))
    for name in ("bot:random", "bot:tactical", "bot:mcts:5"):
        made.execute(AddPolicy(PoolPolicy(name, BOT, elo=0.0 if name == "bot:random" else None)))
    return made


def test_schedules_of_faults_lose_nothing_and_count_nothing_twice() -> None:
    found = run_schedules(range(8), steps=100)
    assert found.counted > 50 and found.deaths > 20 and found.refused > 30 and found.full_disks > 5


def test_an_answer_counts_once_and_only_under_its_token(pool: JournaledPool) -> None:
    pool.execute(GrantBatch("w", 0, 1, 4, 60.0))
    with pytest.raises(NotOpen, match="another token"):
        pool.execute(FinishBatch(1, "second", RESULT))
    pool.execute(FinishBatch(1, "first", RESULT))
    for late in (FinishBatch(1, "first", RESULT), FailBatch(1, "first", "x"), ExpireBatch(1, "x")):
        with pytest.raises(NotOpen):
            pool.execute(late)
    with pytest.raises(NotOpen, match="never granted"):
        pool.execute(FinishBatch(2, "first", RESULT))
    assert pool.state.games.values.tolist() == [4, 4, 0]


def test_a_lease_outlives_the_process_that_granted_it(pool: JournaledPool, tmp_path: Path) -> None:
    pool.execute(GrantBatch("w", 0, 1, 4, 60.0))
    pool.close()
    again = JournaledPool.open(PoolFolder(tmp_path), wall_time=lambda: 0.0)
    again.execute(OpenPool("second"))
    again.execute(FinishBatch(1, "first", RESULT))
    again.execute(GrantBatch("w", 0, 1, 4, 60.0))
    assert again.state.leases[2].token == "second"
    again.close()


@pytest.mark.parametrize(
    ("result", "word"),
    [
        (BatchResult(-1, 3, 2, 1.0, 1.0), "wins"),
        (BatchResult(3, 1, 1, 1.0, 1.0), "wins"),
        (BatchResult(2, 1, 1, 2.0, 1.0), "squares"),
        (BatchResult(2, 1, 1, 0.5, 1.0), "squares"),
        (BatchResult(2, 1, 1, float("nan"), 1.0), "squares"),
        (BatchResult(2, 1, 1, 1.0, float("inf")), "seconds"),
    ],
)
def test_totals_that_no_games_can_have_are_refused(pool: JournaledPool, result: BatchResult, word: str) -> None:
    assert word in result_problem(result, games=4, teams=2)
    pool.execute(GrantBatch("w", 0, 1, 4, 60.0))
    with pytest.raises(PoolRefused):
        pool.execute(FinishBatch(1, "first", result))
    assert 1 in pool.state.leases
    assert not result_problem(RESULT, games=4, teams=2)


def test_a_policy_that_fails_again_and_again_is_not_played_and_an_anchor_always(pool: JournaledPool) -> None:
    for number in (1, 2, 3):
        pool.execute(GrantBatch("w", 0, 1, 4, 60.0))
        pool.execute(FailBatch(number, "first", "no such weights"))
    assert [pool.state.is_playable(index) for index in range(3)] == [True, False, True]
    assert pool.state.reasons == {1: "no such weights"}
    with pytest.raises(PoolRefused, match="failed too often"):
        pool.execute(GrantBatch("w", 0, 1, 4, 60.0))


@pytest.mark.parametrize(
    "policy",
    [PoolPolicy("../x", BOT), PoolPolicy("a" * 121, BOT), PoolPolicy("a", "engine"), PoolPolicy("a", "snapshot"),
     PoolPolicy("bot:a", BOT, elo=float("nan"))],
)  # fmt: skip
def test_policies_that_cannot_be_are_refused(pool: JournaledPool, policy: PoolPolicy) -> None:
    with pytest.raises(PoolRefused):
        pool.execute(AddPolicy(policy))


def test_the_same_weights_join_once(pool: JournaledPool) -> None:
    pool.execute(AddPolicy(PoolPolicy("a", "snapshot", digest="d" * 64)))
    with pytest.raises(AlreadyThere):
        pool.execute(AddPolicy(PoolPolicy("b", "snapshot", digest="d" * 64)))


def test_files_stay_bounded_and_the_state_is_carried_over(tmp_path: Path) -> None:
    pool = new_pool(tmp_path, JournalSizes(save_state=5, carry=20))
    for number in range(1, 31):
        pool.execute(GrantBatch("w", 0, 1 + number % 2, 4, 60.0))
        pool.execute(FinishBatch(number, "first", RESULT))
    state = to_plain(pool.state)
    folder = PoolFolder(tmp_path)
    assert folder.generations() == [3, 4]
    assert to_plain(read_pool(folder)) == state
    assert to_plain(verified_pool(folder)) == state
    pool.close()
    folder.journal(5).touch()  # what a death leaves that comes before the first event of the next file
    with pytest.raises(JournalError):
        JournaledPool.open(folder, wall_time=lambda: 0.0)


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("for_good", [False, True])
def test_a_full_disk_at_any_write_of_a_carried_state_loses_nothing(memory: Path, for_good: bool) -> None:
    reached = number = 1
    while reached >= number:
        number += 1
        folder = PoolFolder(memory / str(number))
        folder.path.mkdir()
        passed = [0]

        def trouble(point: str, at: int = number, passed: list[int] = passed) -> None:
            if passed[0]:
                passed[0] += 1
                here = passed[0] >= at and not point.startswith("journal.") if for_good else passed[0] == at
                if here and point != "journal.after_commit":
                    raise OSError(errno.ENOSPC, "no space")

        sizes = JournalSizes(carry=6)  # the event after those of a new pool
        pool = new_pool(folder.path, sizes, Storage(hook=trouble))
        passed[0] = 1
        with contextlib.suppress(StorageError, JournalError):
            pool.execute(GrantBatch("w", 0, 1, 4, 60.0))
            pool.execute(AddPolicy(PoolPolicy("bot:mcts:7", BOT)))
        reached = passed[0]
        state = to_plain(pool.state)
        pool._journal._connection.close()
        assert to_plain(read_pool(folder)) == state, f"write {number}"
    assert number > 10


def test_records_come_back_the_same(pool: JournaledPool) -> None:
    pool.execute(GrantBatch("w", 2, 0, 4, 60.0))
    pool.execute(GrantBatch("w", 1, 0, 4, 60.0))
    pool.execute(FinishBatch(1, "first", RESULT))
    plain = json.loads(msgspec.json.encode(to_plain(pool.state)))
    assert to_plain(from_plain(plain)) == to_plain(pool.state)
    kind, body = EventCodec(EVENTS).encode(StateCarried(plain))
    assert EventCodec(EVENTS).decode(kind, body, seq=1) == StateCarried(plain)
