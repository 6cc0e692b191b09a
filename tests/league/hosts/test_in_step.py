"""Pushes that wait for their update: in step where a batch can become whole, and never held up where it cannot."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

from league.agents.learner.errors import LearnerError
from league.config.deadlines import Deadlines
from league.hosts.learners.async_learner_host import AsyncLearnerHost
from league.hosts.protocol import InstallPlayer
from tests.league.hosts.host_cases import chunk_of, weights_of
from tests.league.hosts.test_async_learner_host import DEADLINE_S, PLAYER, SETUP, started, wait_until


def in_step(*, credit_s: float = DEADLINE_S) -> AsyncLearnerHost:
    """A host whose pushes wait for the update of their rows."""
    host = started(dataclasses.replace(SETUP, wait_for_update=True, deadlines=Deadlines(credit_s=credit_s)))
    host.install(InstallPlayer(PLAYER))
    return host


def push_in_thread(
    host: AsyncLearnerHost, sender: str, versions: list[int], *, chunks: int, rows: int = 4
) -> threading.Thread:
    """Actor host `sender`: sends chunks of the version that the answer before had, then leaves; notes the versions."""

    def play() -> None:
        for seed in range(chunks):
            version = versions[-1] if versions else 0
            with contextlib.suppress(LearnerError):  # closed meanwhile
                versions.append(host.push(PLAYER, chunk_of(rows, seed=seed, version=version), sender=sender).version)
        host.leave(PLAYER, sender=sender)

    thread = threading.Thread(target=play)
    thread.start()
    return thread


def joined_by(host: AsyncLearnerHost, *senders: str) -> AsyncLearnerHost:
    host._held[PLAYER].in_step._senders.update(senders)
    return host


def test_a_push_is_answered_with_the_weights_that_its_rows_made() -> None:
    host, versions = in_step(), list[int]()
    push_in_thread(host, "actor-0", versions, chunks=4, rows=8).join(DEADLINE_S)
    assert versions == [1, 2, 3, 4]
    (report,) = host.progress()
    assert report.update is not None and report.update.lag_max == 0
    host.close()


def test_hosts_that_fill_a_batch_together_stay_in_step() -> None:
    host = joined_by(in_step(), "actor-0", "actor-1")
    seen: list[list[int]] = [[], []]
    for thread in [push_in_thread(host, f"actor-{number}", versions, chunks=5) for number, versions in enumerate(seen)]:
        thread.join(DEADLINE_S)
    assert seen == [[1, 2, 3, 4, 5]] * 2
    (report,) = host.progress()
    assert report.update is not None and report.update.lag_max == 0
    host.close()


def test_rows_that_make_no_whole_batch_hold_nobody_up() -> None:
    """Three quarters of a batch, and whoever would bring the rest has left or is lost."""
    host, versions = joined_by(in_step(), "actor-1"), list[int]()
    thread = push_in_thread(host, "actor-0", versions, chunks=1, rows=6)
    wait_until(lambda: bool(host._held[PLAYER].in_step._waiting), "the push")
    assert versions == []
    host.leave(PLAYER, sender="actor-1")
    thread.join(DEADLINE_S)
    assert versions == [0]
    push_in_thread(host, "actor-0", versions, chunks=1, rows=2).join(DEADLINE_S)
    assert versions == [0, 1], "the batch is whole"
    host.close()


def test_an_actor_host_that_is_lost_is_waited_for_once() -> None:
    host, versions = joined_by(in_step(credit_s=0.05), "lost"), list[int]()
    push_in_thread(host, "actor-0", versions, chunks=1, rows=6).join(DEADLINE_S)
    host._setup = dataclasses.replace(host._setup, deadlines=Deadlines(credit_s=DEADLINE_S))
    push_in_thread(host, "actor-0", versions, chunks=1, rows=1).join(DEADLINE_S)
    assert versions == [0, 0]
    host.close()


def test_a_reset_or_an_end_answers_pushes_that_wait() -> None:
    for end in (lambda host: host.reset(PLAYER, weights_of(SETUP, seed=1)), lambda host: host.close()):
        host, versions = joined_by(in_step(), "actor-1"), list[int]()
        thread = push_in_thread(host, "actor-0", versions, chunks=1, rows=6)
        wait_until(lambda host=host: bool(host._held[PLAYER].in_step._waiting), "the push")  # type: ignore[misc]
        end(host)
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
        host.close()
