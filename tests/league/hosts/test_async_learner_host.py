"""Rows stream into the learner: the same updates as synchronously, back-pressure with deadlines, orders in between."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from league.agents.learner.errors import FeederFullError, LearnerError
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.unroll.codec import ChunkError, ChunkHeader, Lz4Codec
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import Weights
from league.config.deadlines import Deadlines
from league.envs.registry import make
from league.hosts.learners.async_learner_host import AsyncLearnerHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import chunk_of, encoded, rows_of, setup_of, weights_of

DEADLINE_S = 20.0
PLAYER = "main-0"
SETUP = setup_of()
SPEC = make(SETUP.env, num_envs=1).spec


@pytest.fixture
def host() -> Iterator[AsyncLearnerHost]:
    made = started(SETUP)
    made.install(InstallPlayer(PLAYER))
    yield made
    made.close()
    made.close()


def started(setup: HostSetup, *, patience_s: float = DEADLINE_S) -> AsyncLearnerHost:
    made = AsyncLearnerHost(setup, dtype=torch.float32, patience_s=patience_s)
    made.start()
    return made


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.001)


def version_of(host: AsyncLearnerHost, player: str = PLAYER) -> int:
    return host.newest(player).progress.version


def test_the_same_chunks_give_the_same_weights_as_synchronously(host: AsyncLearnerHost) -> None:
    plain = SyncLearnerHost(SETUP, dtype=torch.float32)
    plain.budget_fraction = host.budget_fraction = 0.25
    plain.install(InstallPlayer(PLAYER))
    for seed in range(5):
        plain.push(PLAYER, chunk_of(6, seed=seed))
        host.push(PLAYER, chunk_of(6, seed=seed))
    wait_until(lambda: version_of(host) == 3, "three updates of 8 rows out of 30")
    assert host.newest(PLAYER).weights.digest() == plain.newest(PLAYER).weights.digest()
    assert host.newest(PLAYER).progress == plain.newest(PLAYER).progress
    (there,), (here,) = host.progress(), plain.progress()
    assert there.update is not None and here.update is not None
    assert (there.update.lag_max, there.update.steps) == (here.update.lag_max, here.update.steps)
    assert there.update.learning_rate == here.update.learning_rate == SETUP.learner.learning_rate_at(0.25)


def test_orders_are_carried_out_while_a_batch_is_incomplete() -> None:
    host = started(SETUP, patience_s=0.01)
    host.install(InstallPlayer(PLAYER))
    host.push(PLAYER, chunk_of(6))
    assert host.checkpoint(PLAYER).progress.version == 0
    host.push(PLAYER, chunk_of(2, seed=1))
    wait_until(lambda: version_of(host) == 1, "the update once the batch is whole")
    host.close()


def test_closing_waits_for_learners_within_a_deadline(caplog: pytest.LogCaptureFixture) -> None:
    host = started(SETUP)
    host._request_deadline_s = 0.05
    hold = threading.Event()
    with pytest.raises(TimeoutError):
        host._request(lambda: hold.wait(DEADLINE_S))
    host.close()
    assert "the learners have not ended after 0.05 s" in caplog.text
    hold.set()
    host._request_deadline_s = DEADLINE_S
    host.close()
    assert len(caplog.messages) == 1


def test_a_batch_begun_too_early_is_begun_again_and_not_lost() -> None:
    setup = dataclasses.replace(SETUP, learner=dataclasses.replace(SETUP.learner, microbatches=4))
    hasty, patient = started(setup, patience_s=0.001), started(setup)
    for host in (hasty, patient):
        host.install(InstallPlayer(PLAYER))
    hasty.push(PLAYER, chunk_of(6))
    wait_until(lambda: hasty._held[PLAYER].whole, "an end of patience")
    hasty.push(PLAYER, chunk_of(2, seed=1))
    for rows, seed in ((6, 0), (2, 1)):
        patient.push(PLAYER, chunk_of(rows, seed=seed))
    for host in (hasty, patient):
        wait_until(lambda host=host: version_of(host) == 1, "the update")  # type: ignore[misc]
    assert hasty.newest(PLAYER).weights.digest() == patient.newest(PLAYER).weights.digest()
    hasty.close()
    patient.close()


@pytest.mark.parametrize(
    ("threads", "pushes_each", "spare_cores", "waiting", "expected"),
    [
        (1, 1, 3, 3, 1),  # one thread is one thread, whoever waits
        (4, 1, 0, 0, 1),  # nobody waits: every core is at work
        (4, 1, 0, 1, 2),
        (4, 2, 0, 1, 1),  # a host with one chunk on its way still plays
        (4, 2, 0, 2, 2),
        (4, 1, 1, 1, 2),  # three threads do not divide 8 rows
        (4, 1, 3, 0, 4),
        (8, 1, 20, 5, 8),
    ],
)
def test_a_batch_is_cut_for_each_core_that_is_idle(
    monkeypatch: pytest.MonkeyPatch, threads: int, pushes_each: int, spare_cores: int, waiting: int, expected: int
) -> None:
    learner = dataclasses.replace(SETUP.learner, pipeline=PipelineConfig(threads=threads))
    host = AsyncLearnerHost(
        dataclasses.replace(SETUP, learner=learner),
        dtype=torch.float32,
        pushes_each=pushes_each,
        spare_cores=spare_cores,
    )
    host.start()
    host.install(InstallPlayer(PLAYER))
    used, plain = list[int](), Learner.update_stream

    def update_stream(self: Learner, blocks: Any, *, threads: int, **arguments: Any) -> Any:
        used.append(threads)
        return plain(self, blocks, threads=threads, **arguments)

    monkeypatch.setattr(Learner, "update_stream", update_stream)
    hold, going = threading.Event(), threading.Event()
    request = threading.Thread(target=lambda: host._request(lambda: (going.set(), hold.wait(DEADLINE_S))))
    request.start()
    going.wait(DEADLINE_S)
    for seed in range(2):  # the ring is full
        host.push(PLAYER, chunk_of(seed=seed))
    pushes = [
        threading.Thread(target=lambda seed=seed: host.push(PLAYER, chunk_of(seed=seed))) for seed in range(waiting)
    ]
    for push in pushes:
        push.start()
    wait_until(lambda: host._held[PLAYER].source.waiting == waiting, "every push")
    wait_until(lambda: host._held[PLAYER].source.rows_ready == 16, "two batches")
    hold.set()
    wait_until(lambda: version_of(host) == 2 + waiting, "every batch")
    assert used[0] == expected
    assert host._held[PLAYER].source.waiting == 0
    for thread in (request, *pushes):
        thread.join()
    host.close()


def test_threads_make_the_same_updates_as_one() -> None:
    learner = dataclasses.replace(SETUP.learner, pipeline=PipelineConfig(threads=4))
    threaded = AsyncLearnerHost(dataclasses.replace(SETUP, learner=learner), dtype=torch.float32, spare_cores=3)
    threaded.start()
    plain = started(SETUP)
    vectors = []
    for host in (threaded, plain):
        host.install(InstallPlayer(PLAYER))
        for seed in range(4):
            host.push(PLAYER, chunk_of(seed=seed))
        wait_until(lambda host=host: version_of(host) == 4, "every batch")  # type: ignore[misc]
        vectors.append(host.newest(PLAYER).weights.vector)
        host.close()
    np.testing.assert_allclose(vectors[0], vectors[1], rtol=1e-3, atol=1e-4)


def test_who_pushes_waits_for_room_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    host = started(SETUP)
    host.install(InstallPlayer(PLAYER))
    hold, going = threading.Event(), threading.Event()
    request = threading.Thread(target=lambda: host._request(lambda: (going.set(), hold.wait(DEADLINE_S))))
    request.start()
    going.wait(DEADLINE_S)
    for seed in range(2):
        host.push(PLAYER, chunk_of(seed=seed))
    monkeypatch.setattr(host, "_setup", dataclasses.replace(host._setup, deadlines=Deadlines(credit_s=0.01)))
    with pytest.raises(FeederFullError, match="8 rows came where there is room for 0"):
        host.push(PLAYER, chunk_of(seed=2))
    monkeypatch.undo()
    hold.set()
    host.push(PLAYER, chunk_of(seed=2))
    wait_until(lambda: version_of(host) == 3, "every batch that was taken")
    request.join()
    host.close()


def test_chunks_larger_than_two_batches_always_fit_in_the_end() -> None:
    host = started(setup_of(chunk_rows=40))
    host.install(InstallPlayer(PLAYER))
    for seed in range(3):
        host.push(PLAYER, chunk_of(39, seed=seed))
    wait_until(lambda: version_of(host) == 117 // 8, "117 rows")
    host.close()


def test_two_players_take_turns(host: AsyncLearnerHost) -> None:
    host.install(InstallPlayer("other"))
    for seed in range(4):
        for player in (PLAYER, "other"):
            host.push(player, chunk_of(seed=seed, player=player))
    wait_until(lambda: min(version_of(host), version_of(host, "other")) == 4, "four updates of each")
    assert {report.progress.player for report in host.progress()} == {PLAYER, "other"}


FOREIGN: dict[str, tuple[Callable[[Unrolls], Unrolls], str]] = {
    "observations of another dtype": (
        lambda rows: dataclasses.replace(
            rows, obs={name: array.astype(np.float64) for name, array in rows.obs.items()}
        ),
        "is float64, the game's is",
    ),
    "an action beyond the last": (
        lambda rows: dataclasses.replace(rows, actions=np.full_like(rows.actions, 99)),
        "field actions holds 99",
    ),
    "a reward beyond any sum": (
        lambda rows: dataclasses.replace(rows, rewards=np.full_like(rows.rewards, 1e30)),
        "field rewards holds 1.0",
    ),
    "fewer steps than the game's unrolls": (
        lambda rows: synthetic_unrolls(UnrollSpec(SPEC, 3), rows=rows.num_rows, seed=0),
        "has rows of shape",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_chunk_is_refused_and_all_players_continue(name: str, host: AsyncLearnerHost, caplog) -> None:  # type: ignore[no-untyped-def]
    host.install(InstallPlayer("other"))
    change, reason = FOREIGN[name]
    host.push(PLAYER, encoded(change(rows_of(8, seed=0))))
    for player in (PLAYER, "other"):
        host.push(player, chunk_of(seed=1, player=player))
        wait_until(lambda player=player: version_of(host, player) == 1, "an update")  # type: ignore[misc]
    assert [report.refused for report in host.progress()] == [1, 0]
    assert [report.refused for report in host.progress()] == [1, 0], "counted, and no second time"
    assert f"1 chunks of {PLAYER} were refused: " in caplog.text and reason in caplog.text


def test_refused_chunks_of_a_learner_whose_place_another_takes_stay_counted(host: AsyncLearnerHost) -> None:
    change, _ = FOREIGN["an action beyond the last"]
    host.push(PLAYER, encoded(change(rows_of(8, seed=0))))
    wait_until(lambda: host._held[PLAYER].source._counts.so_far.refused == 1, "the refusal")
    host.install(InstallPlayer(PLAYER))
    assert [report.refused for report in host.progress()] == [1]


def test_a_request_that_nobody_waits_for_any_more_is_not_carried_out(
    host: AsyncLearnerHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, going, late = threading.Event(), threading.Event(), list[str]()
    request = threading.Thread(target=lambda: host._request(lambda: (going.set(), hold.wait(DEADLINE_S))))
    request.start()
    going.wait(DEADLINE_S)
    monkeypatch.setattr(host, "_request_deadline_s", 0.01)
    with pytest.raises(TimeoutError):
        host._request(lambda: late.append("done"))
    monkeypatch.undo()
    hold.set()
    host._request(lambda: None)
    assert not late
    request.join()


def test_a_chunk_whose_header_hides_the_age_of_its_rows_is_refused(host: AsyncLearnerHost) -> None:
    header = ChunkHeader(run="tests", player=PLAYER, version_min=1, version_max=1)
    host.push(PLAYER, Lz4Codec().encode(rows_of(8, seed=0), header))
    host.push(PLAYER, chunk_of(seed=1))
    wait_until(lambda: version_of(host) == 1, "an update from the other chunk")
    host.reset(PLAYER, weights_of(SETUP, seed=1))
    assert [report.refused for report in host.progress()] == [1], "a reset forgets none"


def test_a_chunk_of_more_rows_than_will_ever_fit_is_refused_at_once(host: AsyncLearnerHost) -> None:
    with pytest.raises(ChunkError, match="a chunk of 1000 rows does not fit a ring of"):
        host.push(PLAYER, chunk_of(1000))
    with pytest.raises(ChunkError, match="a chunk of 0 rows"):
        host.push(
            PLAYER,
            Lz4Codec().encode(rows_of(8, seed=0).rows(0, 0), ChunkHeader("tests", PLAYER, 0, 0)),
        )


def test_rows_of_actors_that_are_ahead_of_a_restored_learner_count_as_new(host: AsyncLearnerHost) -> None:
    host.push(PLAYER, chunk_of(version=50))
    wait_until(lambda: version_of(host) == 1, "an update")
    update = host.newest(PLAYER).update
    assert update is not None and (update.lag_mean, update.lag_max, update.stale_steps) == (0.0, 0, 0)


def test_a_learner_that_fails_is_reported_to_everyone_and_nobody_hangs(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(FlatOptimizer, "step", lambda _tail, **_given: math.nan)
    host = started(SETUP)
    host.install(InstallPlayer(PLAYER))
    for _ in range(6):
        try:
            host.push(PLAYER, chunk_of())
        except LearnerError:
            break
    wait_until(lambda: host._closed, "the end of the thread")
    for ask in (host.progress, lambda: host.newest(PLAYER).weights, lambda: host.checkpoint(PLAYER)):
        with pytest.raises(LearnerError, match="learning has failed: 6 updates in a row"):
            ask()
    host.close()


def test_weights_are_copied_when_actors_ask_and_for_a_tenth_of_the_time_at_most(
    host: AsyncLearnerHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    copied: list[int] = []
    held = host._held[PLAYER]
    plain = held.learner.publish

    def slow() -> Weights:
        now[0] += 1.0
        copied.append(held.learner.version)
        return plain()

    monkeypatch.setattr(host, "_clock", lambda: now[0])
    monkeypatch.setattr(held.learner, "publish", slow)
    for version in range(1, 5):
        host.push(PLAYER, chunk_of(8, seed=version))
        wait_until(lambda version=version: held.newest.progress.version == version, "an update")  # type: ignore[misc]
    assert copied == [1], "it took a second: the next copy is due nine seconds after it"
    now[0] = 10.0
    host.push(PLAYER, chunk_of(8, seed=5))
    wait_until(lambda: held.newest.progress.version == 5, "an update")
    assert copied == [1, 5]
    assert host.newest(PLAYER).weights.version == 5 and copied == [1, 5]
    host.push(PLAYER, chunk_of(8, seed=6))
    wait_until(lambda: held.newest.progress.version == 6, "an update")
    assert host.published(PLAYER).version == 5
    fresh = host.newest(PLAYER)
    assert (fresh.weights.version, fresh.progress.version, copied) == (6, 6, [1, 5, 6])
