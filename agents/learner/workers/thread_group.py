"""Members of a free group as threads of this process: they start at once, and share Python's lock."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Sequence

from league.agents.learner.errors import StageDiedError, StageError, StageHungError
from league.agents.learner.workers.build_worker import Worker, make_member
from league.agents.learner.workers.worker import Answer, Request, WorkerSetup

_making = threading.Lock()
"""Held while a worker is made: networks are initialised from the generator of the process."""


class _Member:
    """One worker, made and called in a thread of its own."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="learner-replica")
        self._made = self._pool.submit(_made, setup)

    def call(self, request: Request) -> concurrent.futures.Future[Answer]:
        """The answer to come."""
        return self._pool.submit(self._handle, request)

    def end(self) -> None:
        """End the thread after the request in hand."""
        self._pool.submit(self._close)
        self._pool.shutdown(wait=False, cancel_futures=False)

    def _handle(self, request: Request) -> Answer:
        worker: Worker = self._made.result()
        return worker.handle(request)

    def _close(self) -> None:
        if self._made.exception() is None:
            self._made.result().close()


class ThreadWorkerGroup:
    """A `WorkerGroup` in this process. A thread cannot be killed: it ends when its request does."""

    def __init__(self, setups: Sequence[WorkerSetup]) -> None:
        self._setups = list(setups)
        self._members = [_Member(setup) for setup in setups]
        self._sent: dict[concurrent.futures.Future[Answer], int] = {}

    def call(self, requests: Sequence[Request | None], *, timeout_s: float) -> list[Answer]:
        asked = {
            self._members[rank].call(request): rank for rank, request in enumerate(requests) if request is not None
        }
        done, late = concurrent.futures.wait(asked, timeout=timeout_s)
        if late:
            raise StageHungError(f"no answer from worker {min(map(asked.__getitem__, late))} within {timeout_s:g} s")
        answers: list[Answer] = [None] * len(requests)
        for future in done:
            answer = _answer(future, asked[future])
            if isinstance(answer, StageError):
                raise answer
            answers[asked[future]] = answer
        return answers

    def send(self, rank: int, request: Request) -> None:
        self._sent[self._members[rank].call(request)] = rank

    def receive(self, *, timeout_s: float) -> list[tuple[int, Answer | StageError]]:
        done, _ = concurrent.futures.wait(self._sent, timeout=timeout_s, return_when=concurrent.futures.FIRST_COMPLETED)
        ranks = {future: self._sent.pop(future) for future in done}
        return [(rank, _answer(future, rank)) for future, rank in ranks.items()]

    def restart(self, rank: int) -> None:
        self._sent = {future: other for future, other in self._sent.items() if other != rank}
        self._members[rank].end()
        self._members[rank] = _Member(self._setups[rank])

    def kill(self) -> None:
        """As in the protocol, once their requests have ended."""
        for member in self._members:
            member.end()
        self._members, self._sent = [], {}


def _made(setup: WorkerSetup) -> Worker:
    with _making:
        return make_member(setup)


def _answer(future: concurrent.futures.Future[Answer], rank: int) -> Answer | StageError:
    """The answer of a worker, or the error of one that raised."""
    error = future.exception()
    return (
        future.result() if error is None else StageDiedError(f"worker {rank} failed: {type(error).__name__}: {error}")
    )
