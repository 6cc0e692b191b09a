"""A live rating pool: takes policies in, grants batches, counts answers once, and rates.

All methods may be called from several threads; one lock stands around the state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from league.config.plugin_names import outside_names
from league.envs.protocol import EnvSpec
from league.envs.registry import spec_of
from league.errors import LeagueError, MissingRun, RunInUse
from league.judge.matches.sprt import sequential_test
from league.judge.pools.core.fit import Fit, fit_pool, games_of
from league.judge.pools.core.records import (
    BatchAnswer,
    BatchResult,
    GrantedBatch,
    PoolGame,
    PoolPolicy,
    PoolTestAccount,
)
from league.judge.pools.core.rules import (
    AddPolicy,
    BeginTest,
    CreatePool,
    EndTest,
    ExpireBatch,
    FailBatch,
    FinishBatch,
    GrantBatch,
    OpenPool,
    PoolCommand,
    PoolRefused,
)
from league.judge.pools.core.schedule import Scheduler, next_test
from league.judge.pools.core.state import PoolState
from league.judge.pools.folder import PoolFolder
from league.judge.pools.inbox import Inbox
from league.judge.pools.journaled_pool import JournaledPool
from league.judge.pools.play import env_of
from league.policies.trust import is_trusted, require_trusted
from league.store.lock import RunLock
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage

FIT_PART = 0.1
"""Largest part of the time that goes into ratings: the next waits for ten times what the last has taken."""
INBOX_EVERY_S = 2.0
LACKING_S = 600.0
"""Time for which a worker that lacked a policy is not given it again."""
MAX_PAIR_DEATHS = 3
"""Workers that may die over a pair; then it is not scheduled any more while the pool is open."""


class PoolError(LeagueError):
    """The pool cannot do what was asked of it."""


class PoolInUse(PoolError):  # noqa: N818
    """Another process works on the pool; its inbox takes policies all the same."""


class Pool:
    """See the module. Made by `open_pool`.

    Args:
      journaled: its state and journal. spec: of its game.
      clock: monotonic seconds, for deadlines.
      say: tells the user one sentence.
    """

    def __init__(
        self,
        folder: PoolFolder,
        journaled: JournaledPool,
        spec: EnvSpec,
        *,
        storage: Storage,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._journaled = journaled
        self._clock = clock
        self._lock = threading.RLock()
        self._fit: Fit | None = None
        self._scheduler: Scheduler | None = None
        self._fitted = (-1, -1)
        self._next_fit, self._next_look = -float("inf"), -float("inf")
        self.store = LocalSnapshotStore(folder.policies, storage=storage)
        self.spec = spec
        self._inbox = Inbox(folder, spec, self.store, join=self.join, ask=self.ask, say=say, storage=storage)
        self._lacking: dict[tuple[str, int], float] = {}
        self._say = say
        self._deaths: Counter[tuple[int, int]] = Counter()  # of workers, over a pair of policies
        now = clock()
        self._deadlines = {number: now + lease.duration_s for number, lease in self.state.leases.items()}

    @property
    def state(self) -> PoolState:
        """The pool as it is in the journal."""
        return self._journaled.state

    @property
    def game(self) -> PoolGame:
        """The game."""
        assert self.state.game is not None
        return self.state.game

    def join(self, policy: PoolPolicy) -> None:
        """Have a policy join; a name that other weights have already gets a part of its digest.

        Raises:
          PoolRefused: it may not.
        """
        with self._lock:
            known = self.state.by_name.get(policy.name)
            if known is not None and policy.digest and self.state.policies[known].digest != policy.digest:
                policy = replace(policy, name=f"{policy.name}@{policy.digest[:8]}")
            self._execute(AddPolicy(policy))

    def ask(self, command: BeginTest | EndTest) -> int:
        """Begin or end a test; returns its number.

        Raises:
          PoolRefused: it may not be.
        """
        with self._lock:
            self._execute(command)
            return command.number if isinstance(command, EndTest) else max(self.state.tests)

    def tend(self) -> None:
        """Look into the inbox and give leases up that are overdue, where it is time to."""
        with self._lock:
            now = self._clock()
            if now >= self._next_look:
                self._next_look = now + INBOX_EVERY_S
                self._inbox.look()
                self._forget_lacking(now)
                for account in self.state.open_tests:
                    self._settle(account)
            for number in [number for number, deadline in self._deadlines.items() if now > deadline]:
                if number in self.state.leases:
                    self._execute(ExpireBatch(number, "it was not answered in time"))
                del self._deadlines[number]

    def lease(self, worker: str) -> GrantedBatch | None:
        """Grant the batch that is worth most; None where there is nothing to play."""
        with self._lock:
            self.tend()
            scheduler = self._current()
            lacked = self._lacked_by(worker)
            apart = [pair for pair, deaths in self._deaths.items() if deaths >= MAX_PAIR_DEATHS]
            if scheduler is None:
                return None
            account = next_test(self.state, without=lacked, apart=apart)
            batch = None if account is None else scheduler.batch_of(account.test.first, account.test.second)
            test = 0 if account is None or batch is None else account.test.number
            batch = batch or scheduler.next_batch(self.state.leases, without=lacked, apart=apart)
            if batch is None:
                return None
            number = self.state.next_lease_id
            try:
                self._execute(GrantBatch(worker, batch.home, batch.away, batch.games, batch.duration_s, test))
            except PoolRefused:
                return None
            self._deadlines[number] = self._clock() + batch.duration_s
            lease = self.state.leases[number]
            return GrantedBatch(lease, self.state.policies[lease.home], self.state.policies[lease.away])

    def answer(self, lease_id: int, token: str, answer: BatchAnswer) -> None:
        """Take what came of a lease. Raises as `finish`."""
        if answer.result is not None:
            self.finish(lease_id, token, answer.result)
        elif answer.lacks:
            self.lack(lease_id, token, answer.lacks, answer.reason)
        elif answer.gave_up:
            self.give_up(lease_id, token, answer.reason)
        else:
            self.fail(lease_id, token, answer.reason)

    def finish(self, lease_id: int, token: str, result: BatchResult) -> None:
        """Count an answer, durably.

        Raises:
          NotOpen: it was answered or given up before. PoolRefused: no games can have had this result.
        """
        with self._lock:
            lease = self.state.leases.get(lease_id)
            self._execute(FinishBatch(lease_id, token, result))
            self._deadlines.pop(lease_id, None)
            if lease is not None and lease.test:
                self._settle(self.state.tests[lease.test])

    def fail(self, lease_id: int, token: str, reason: str) -> None:
        """Note that a lease could not be played. Raises NotOpen."""
        with self._lock:
            self._execute(FailBatch(lease_id, token, reason))
            self._deadlines.pop(lease_id, None)

    def give_up(self, lease_id: int, token: str, reason: str) -> None:
        """Take a lease back from a worker that will not play it, and blame nobody. Raises NotOpen."""
        with self._lock:
            self._execute(ExpireBatch(lease_id, reason, token))
            self._deadlines.pop(lease_id, None)

    def lack(self, lease_id: int, token: str, name: str, reason: str) -> None:
        """Take a lease back from a worker that has not one of its policies; it receives others now. Raises NotOpen."""
        with self._lock:
            lease = self.state.leases.get(lease_id)
            self.give_up(lease_id, token, reason)
            index = self.state.by_name.get(name)
            if lease is not None and index in (lease.home, lease.away):
                self._lacking[lease.worker, index] = self._clock() + LACKING_S

    def worker_died(self, worker: str, reason: str) -> None:
        """Take back what a worker had in hand when it died, for which anybody may be to blame.

        A pair over which workers die again and again is not scheduled any more while the pool is open.
        """
        with self._lock:
            for lease in [lease for lease in self.state.leases.values() if lease.worker == worker]:
                self._execute(ExpireBatch(lease.lease_id, f"its worker process ended ({reason})"))
                self._deadlines.pop(lease.lease_id, None)
                low, high = sorted((lease.home, lease.away))
                self._deaths[low, high] += 1
                if self._deaths[low, high] == MAX_PAIR_DEATHS:
                    one, other = (self.state.policies[index].name for index in (low, high))
                    self._say(
                        f"{one} and {other} do not meet any more: {MAX_PAIR_DEATHS} worker processes died over them."
                    )

    def _settle(self, account: PoolTestAccount) -> None:
        """End a test that is decided, has had all its games, or cannot be played any more."""
        if account.outcome:
            return
        test = account.test
        outcome, why = sequential_test(np.array(account.pairs), test.config).decision, ""
        if not outcome and account.games >= test.max_games:
            outcome = "undecided"
        for index in (test.first, test.second):
            if not outcome and not self.state.is_playable(index):
                outcome, why = "withdrawn", f"{self.state.policies[index].name}: {self.state.reasons.get(index, '')}"
        if outcome:
            self._execute(EndTest(test.number, outcome, why))
            self._say(f"Test {test.number} has ended: {outcome}{f' ({why})' if why else ''}.")

    def _lacked_by(self, worker: str) -> set[int]:
        """Policies that a worker has been found to lack a short while ago."""
        now = self._clock()
        return {index for (name, index), until in self._lacking.items() if name == worker and now < until}

    def _forget_lacking(self, now: float) -> None:
        """Workers come and go: what one of them lacked is kept no longer than it counts."""
        self._lacking = {key: until for key, until in self._lacking.items() if now < until}

    def _current(self) -> Scheduler | None:
        """The scheduler of the newest ratings; they are made again where something is new and it is time to."""
        counts = (len(self.state.policies), self.state.finished)
        if counts[0] < 2:
            return None
        now = self._clock()
        is_new = counts[0] != self._fitted[0] or (counts != self._fitted and now >= self._next_fit)
        if self._scheduler is None or is_new:
            self._fit = fit_pool(games_of(self.state), start=self._fit)
            self._scheduler = Scheduler(self.state, self._fit)
            self._fitted = counts
            self._next_fit = self._clock() + (self._clock() - now) / FIT_PART
        return self._scheduler

    def _execute(self, command: PoolCommand) -> None:
        self._journaled.execute(command)


def create_pool(folder: PoolFolder, game: PoolGame, *, storage: Storage | None = None) -> None:
    """Make the folder of a new pool.

    Raises:
      PoolError: there is one already, or the game cannot be rated.
    """
    storage = storage or Storage()
    if folder.generations():
        raise PoolError(f"{folder.path} holds a rating pool already: `league pool add` and `league pool run` use it.")
    for path in (folder.path, folder.inbox, folder.policies):
        storage.make_folder(path)
    try:
        with _held(folder):
            JournaledPool.create(folder, CreatePool(game), wall_time=time.time, storage=storage).close()
    except PoolRefused as error:
        raise PoolError(f"{error}.") from error


@contextlib.contextmanager
def open_pool(
    folder: PoolFolder,
    *,
    say: Callable[[str], object] = lambda sentence: None,
    clock: Callable[[], float] = time.monotonic,
    storage: Storage | None = None,
) -> Iterator[Pool]:
    """A pool to work on, for as long as the block takes.

    Raises:
      MissingRun, JournalError: there is none that can be read. PoolInUse: another process works on it.
      Untrusted: its game is code from outside. EnvError: its game cannot be made here.
    """
    storage = storage or Storage()
    folder.require()
    with _held(folder):
        journaled = JournaledPool.open(folder, wall_time=time.time, storage=storage)
        try:
            game = journaled.state.game
            if game is None:
                raise MissingRun(f"{folder.path} is no whole rating pool: remove it, and make it again.")
            if not is_trusted(folder.path):
                require_trusted(
                    outside_names({"env": {"id": game.env_id, "kwargs": game.options}}), what=str(folder.path)
                )
            spec = spec_of(dataclasses.replace(env_of(game), workers=0))
            LocalSnapshotStore(folder.policies, storage=storage).sweep()
            storage.sweep(folder.path)
            journaled.execute(OpenPool(secrets.token_hex(16)))
            yield Pool(folder, journaled, spec, storage=storage, clock=clock, say=say)
        finally:
            journaled.close()


@contextlib.contextmanager
def _held(folder: PoolFolder) -> Iterator[None]:
    try:
        lock = RunLock(folder.lock)
        lock.acquire()
    except RunInUse as error:
        raise PoolInUse(
            f"{folder.path} is in use by {'another process' if error.pid is None else f'process {error.pid}'}: put "
            "folders of policies into its inbox, or stop that process first."
        ) from error
    try:
        yield
    finally:
        lock.release()
