"""Replay over hosts elsewhere: who is asked, who is waited for, and what the loss of a host costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.remote_rows import RemoteBatch, RowsLostError
from league.agents.learner.data.row_source import SourcePlace, make_row_source
from league.agents.learner.data.source_counts import SourceReport
from league.agents.learner.errors import FeederClosedError, FeederError, FeederFullError, FeederTimeoutError
from league.agents.replay.remote_source import RemoteReplay
from league.agents.replay.replay_source import ReplaySource
from league.agents.unroll.codec import ChunkHeader, Lz4Codec, OpenChunk
from tests.agents.replay.replay_cases import LAYOUT, SPEC, marks_of, rows_of

BATCH = 8
DEADLINE_S = 20.0
OPTIONS = {"kind": "replay", "capacity": 64, "min_rows": 16, "samples_per_insert": 2.0, "alpha": 1.0}
CONFIG = LearnerConfig(unroll_length=3, batch_rows=BATCH, microbatches=2, row_source=OPTIONS)
HOSTS = 2


class NearHost:
    """A host of this process. One that is away is waited for; one that breaks is lost with the next chunk, stored."""

    def __init__(self) -> None:
        place = SourcePlace[OpenChunk](OpenChunk.unrolls, parts=HOSTS)
        source = make_row_source(SPEC, CONFIG, place)
        assert isinstance(source, ReplaySource)
        self.source: ReplaySource[OpenChunk] = source
        self.there = threading.Event()
        self.there.set()
        self.breaks = False
        self.fails: BaseException | None = None
        self.given = 0

    def wait(self, timeout_s: float) -> bool:
        return self.there.wait(timeout_s)

    def push(self, chunk: bytes, *, timeout_s: float) -> SourceReport:
        opened = Lz4Codec().open(chunk)
        self.source.push(opened, num_rows=opened.num_rows, timeout_s=timeout_s)
        if self.breaks:
            self.there.clear()
            raise RowsLostError("gone")
        return replace(self.source.report(), waited_s=1e6)

    def batch(self, *, timeout_s: float) -> RemoteBatch | None:
        if self.fails is not None:
            raise self.fails
        if not self.there.is_set():
            raise RowsLostError("gone")
        try:
            sample = self.source.sample(timeout_s=min(timeout_s, 0.05))
        except FeederTimeoutError:
            return None
        self.given += 1
        return RemoteBatch(
            sample.block, sample.weights, sample.fresh_steps, lambda errors: self.source.update(sample, errors)
        )


@pytest.fixture
def hosts() -> tuple[NearHost, ...]:
    return tuple(NearHost() for _ in range(HOSTS))


@pytest.fixture
def remote(hosts: tuple[NearHost, ...]) -> Iterator[RemoteReplay]:
    source = make_row_source(SPEC, CONFIG, SourcePlace(OpenChunk.unrolls, hosts=hosts))
    assert isinstance(source, RemoteReplay)
    yield source
    source.close()
    source.close()


def chunk_of(*marks: int) -> OpenChunk:
    codec = Lz4Codec()
    return codec.open(codec.encode(rows_of(*marks), ChunkHeader(run="r", player="p", version_min=0, version_max=99)))


def push(remote: RemoteReplay, *marks: int, timeout_s: float = DEADLINE_S) -> None:
    remote.push(chunk_of(*marks), num_rows=len(marks), timeout_s=timeout_s)


def fill(remote: RemoteReplay, hosts: tuple[NearHost, ...]) -> int:
    """Push rows until every host may sample; returns how many."""
    rows = 0
    while any(host.source.table.size < 8 for host in hosts):
        push(remote, *range(rows, rows + 2))
        rows += 2
    return rows


def batch_of(remote: RemoteReplay) -> list[int]:
    with remote.batch(timeout_s=DEADLINE_S) as blocks:
        marks = [mark for block in blocks for mark in marks_of(block)]
        remote.learnt(np.full(BATCH, 3.0, np.float32))
    return marks


def held_by(host: NearHost) -> set[int]:
    table = host.source.table
    slots = np.flatnonzero(table._serials)
    return set(marks_of(LAYOUT.unrolls(table._memory.rows.take(slots, axis=0))).tolist())


def test_rows_are_spread_and_each_batch_comes_from_one_host(remote: RemoteReplay, hosts: tuple[NearHost, ...]) -> None:
    assert [host.source.table.capacity for host in hosts] == [32, 32] and remote.capacity == BATCH
    rows = fill(remote, hosts)
    parts = [held_by(host) for host in hosts]
    assert set.union(*parts) == set(range(rows)) and not set.intersection(*parts)
    report = remote.report()
    assert report.rows == rows and report.waited_s < 1e6, "the waits of a host are not the learner's"
    asked = set()
    while len(asked) < HOSTS:
        marks = set(batch_of(remote))
        (place,) = (place for place, part in enumerate(parts) if marks <= part)
        asked.add(place)
        memory = hosts[place].source.table._memory
        given_back = LAYOUT.unrolls(memory.rows[memory.errors == 3.0])
        assert marks <= set(marks_of(given_back).tolist())


def test_one_batch_of_each_host_is_on_its_way_and_no_more(remote: RemoteReplay, hosts: tuple[NearHost, ...]) -> None:
    fill(remote, hosts)
    with remote._changed:
        assert remote._changed.wait_for(lambda: len(remote._come) == HOSTS, timeout=DEADLINE_S)
    assert remote.rows_ready == BATCH
    assert [host.given for host in hosts] == [1, 1]


def test_a_host_that_is_lost_with_a_chunk_costs_that_chunk_and_is_gone_round(
    remote: RemoteReplay, hosts: tuple[NearHost, ...]
) -> None:
    rows = fill(remote, hosts)
    hosts[0].breaks = True
    failed = []
    for first in range(rows, rows + 12, 2):
        try:
            push(remote, first, first + 1)
        except RowsLostError:
            failed.append(first)
    assert len(failed) == 1, "the others went to the host that is there"
    assert not held_by(hosts[1]) & {failed[0], failed[0] + 1}, "it may be stored: it is not sent again"
    for _ in range(4):  # what came from the lost host before, and then the other's
        marks = set(batch_of(remote))
    assert marks <= held_by(hosts[1])
    hosts[0].breaks = False
    hosts[0].there.set()
    given = hosts[0].given
    while hosts[0].given == given:
        push(remote, rows + 50, rows + 51)
        batch_of(remote)


def test_while_no_host_is_there_everyone_waits_for_their_deadline(
    remote: RemoteReplay, hosts: tuple[NearHost, ...]
) -> None:
    for host in hosts:
        host.there.clear()
    with pytest.raises(FeederFullError, match=r"no replay host was there for 0\.01 s"):
        push(remote, 1, timeout_s=0.01)
    with pytest.raises(FeederTimeoutError, match="no replay host has sampled a batch"), remote.batch(timeout_s=0.01):
        pass
    assert remote.rows_ready == 0 and remote.waiting == 0
    pushing = threading.Thread(target=push, args=(remote, 1))
    pushing.start()
    while not remote.waiting:
        assert pushing.is_alive()
    for host in hosts:
        host.there.set()
    pushing.join(DEADLINE_S)
    assert not pushing.is_alive() and sum(host.source.table.size for host in hosts) == 1


def test_after_its_end_it_is_closed_and_the_hosts_keep_their_rows(
    remote: RemoteReplay, hosts: tuple[NearHost, ...]
) -> None:
    rows = fill(remote, hosts)
    remote.close()
    with pytest.raises(FeederClosedError):
        push(remote, 1)
    with pytest.raises(FeederClosedError), remote.batch(timeout_s=DEADLINE_S):
        pass
    assert sum(host.source.table.size for host in hosts) == rows


def test_what_no_host_should_say_ends_learning(hosts: tuple[NearHost, ...]) -> None:
    hosts[0].fails = TypeError("of another form")
    remote = make_row_source(SPEC, CONFIG, SourcePlace(OpenChunk.unrolls, hosts=hosts))
    with pytest.raises(FeederError, match="cannot be asked: of another form"), remote.batch(timeout_s=DEADLINE_S):
        pass
    remote.close()
