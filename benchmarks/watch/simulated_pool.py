"""A rating pool under faults drawn from a seed: messages lost, doubled, late and out of order, deaths, a full disk.

Workers ask, play by drawing, and send each answer until it is acknowledged. The pool dies between any two writes. An
outside account adds up what was acknowledged; the pool's totals must equal it after every restart.
"""

from __future__ import annotations

import errno
import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from league.errors import StorageError
from league.judge.pools.core.records import BOT, BatchLease, BatchResult, PoolGame, PoolPolicy
from league.judge.pools.core.rules import (
    AddPolicy,
    CreatePool,
    ExpireBatch,
    FailBatch,
    FinishBatch,
    GrantBatch,
    OpenPool,
    PoolCommand,
    PoolRefused,
)
from league.judge.pools.core.state import to_plain
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import JournaledPool, JournalSizes, verified_pool
from league.store.storage import Storage

MEMORY = Path("/dev/shm")
"""A kill of the process is simulated, and no loss of power, so that a disk would only wait."""
POLICIES = 4
SIZES = JournalSizes(save_state=7, carry=25)


class Death(BaseException):
    """The process was killed here."""


@dataclass
class Account:
    """The knowledge of an outside reader. totals: games by pair and result; answers: lease -> what its worker sends."""

    totals: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    answers: dict[int, tuple[BatchLease, BatchResult]] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    deaths: int = 0
    full_disks: int = 0
    refused: int = 0

    def count(self, lease: BatchLease, result: BatchResult) -> None:
        """Add an answer that the pool counted."""
        assert lease.lease_id not in self.counted, f"lease {lease.lease_id} was counted twice"
        self.counted.add(lease.lease_id)
        low, high = sorted((lease.home, lease.away))
        row = self.totals.setdefault((low, high), [0, 0, 0])
        found = (result.wins, result.draws, result.losses)
        for place, number in enumerate(found if lease.home == low else reversed(found)):
            row[place] += number


class SimulatedPool:
    """One schedule; `step` does one thing that may happen, `check` holds the pool against the account."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._folder = PoolFolder(folder / "pool")
        self._folder.path.mkdir()
        self._trouble: Callable[[str], None] = lambda point: None
        self._storage = Storage(hook=self._pass)
        self._in_flight: list[PoolCommand] = []
        self.account = Account()
        game = CreatePool(PoolGame("known", 2))
        wanted: dict[str, Any] = {"wall_time": lambda: 0.0, "storage": self._storage, "sizes": SIZES}
        self._pool = JournaledPool.create(self._folder, game, **wanted)
        self._open: Callable[[], JournaledPool] = functools.partial(JournaledPool.open, self._folder, **wanted)
        for number in range(POLICIES):
            self._pool.execute(AddPolicy(PoolPolicy(f"p{number}", BOT)))
        self._pool.execute(OpenPool("0"))

    def step(self) -> None:
        """One of: a request, a message that arrives (or twice, or never), an overdue lease, a death."""
        chance = self._rng.random()
        if chance < 0.35:
            home, away = self._rng.choice(POLICIES, 2, replace=False)
            games = 2 * int(self._rng.integers(1, 4))
            self._deliver(GrantBatch("w", int(home), int(away), games, 1.0))
        elif chance < 0.85 and self._in_flight:
            place = int(self._rng.integers(len(self._in_flight)))
            message = self._in_flight[place]
            if self._rng.random() < 0.7:  # else it is doubled: this copy arrives, and another later
                del self._in_flight[place]
            if self._rng.random() < 0.8:  # else it is lost on the way
                self._deliver(message)
        elif chance < 0.9 and self._pool.state.leases:
            self._deliver(ExpireBatch(int(self._rng.choice(list(self._pool.state.leases))), "overdue"))
        elif chance < 0.93:
            self._restart()
        for lease, result in self.account.answers.values():  # whoever has no acknowledgement sends again
            if self._rng.random() < 0.1:
                self._in_flight.append(FinishBatch(lease.lease_id, lease.token, result))

    def check(self) -> None:
        """Hold the pool against the account, and its stored form against the fold from the first event."""
        state = self._pool.state
        found = {
            (int(low), int(high)): [int(number) for number in row[:3]]
            for (low, high), row in zip(state.pairs.values, state.totals.values, strict=True)
        }
        assert found == self.account.totals, f"the pool has {found}, acknowledged was {self.account.totals}"
        assert state.finished == len(self.account.counted)
        assert to_plain(verified_pool(self._folder)) == to_plain(state), "the journal folds to another state"

    def close(self) -> None:
        """Stop in order."""
        self._pool.close()

    def _deliver(self, message: PoolCommand) -> None:
        """Have the pool carry a message out, under a trouble drawn for it."""
        self._draw_trouble()
        number = self._pool.state.next_lease_id
        was_open = getattr(message, "lease_id", 0) in self._pool.state.leases
        try:
            self._pool.execute(message)
        except PoolRefused:
            self.account.refused += 1
        except StorageError:
            self.account.full_disks += 1
        except Death:
            self._restart()
            if was_open:
                self._settle(message)
        else:
            self._acknowledge(message, number)
        self._trouble = lambda point: None

    def _acknowledge(self, message: PoolCommand, number: int) -> None:
        if isinstance(message, GrantBatch):
            lease = self._pool.state.leases[number]
            wins = int(self._rng.integers(0, lease.games + 1))
            draws = int(self._rng.integers(0, lease.games - wins + 1))
            losses = lease.games - wins - draws
            least = (wins + draws / 2.0) ** 2 / 4.0 / (lease.games // 2)
            result = BatchResult(wins, draws, losses, least, 0.0)
            if self._rng.random() < 0.9:  # else its worker dies with it
                self.account.answers[number] = (lease, result)
            elif self._rng.random() < 0.5:
                self._in_flight.append(FailBatch(number, lease.token, "it broke"))
        elif isinstance(message, FinishBatch):
            self.account.count(*self.account.answers[message.lease_id])
            if self._rng.random() < 0.7:  # else the acknowledgement is lost, and the worker sends again
                self.account.answers.pop(message.lease_id, None)

    def _settle(self, message: PoolCommand) -> None:
        """After a death over an open lease's answer: if the lease is closed now, the answer was durable and counts."""
        if isinstance(message, FinishBatch) and message.lease_id not in self._pool.state.leases:
            self.account.count(*self.account.answers[message.lease_id])

    def _pass(self, point: str) -> None:
        self._trouble(point)

    def _restart(self) -> None:
        """Kill the process, if it has not died by itself, and start another."""
        self.account.deaths += 1
        self._trouble = lambda point: None
        self._pool._journal._connection.close()
        self._pool = self._open()
        self._pool.execute(OpenPool(str(self.account.deaths)))

    def _draw_trouble(self) -> None:
        kind, after = self._rng.random(), int(self._rng.integers(1, 8))
        if kind > 0.3:
            return
        passed = [0]

        def trouble(point: str) -> None:
            passed[0] += 1
            if passed[0] == after:
                if kind < 0.12:
                    raise Death
                if point != "journal.after_commit":  # of a commit that is durable no error comes any more
                    raise OSError(errno.ENOSPC, "no space")

        self._trouble = trouble


@dataclass(frozen=True)
class SimulatedTotals:
    """Sums over schedules: leases counted, deaths of the pool, answers refused, full disks."""

    counted: int
    deaths: int
    refused: int
    full_disks: int


def run_schedules(seeds: range, *, steps: int, check_every: int = 10) -> SimulatedTotals:
    """Run one schedule for each seed, in memory.

    Raises:
      AssertionError: a rule was broken; the seed is in the text.
    """
    accounts = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            simulated = SimulatedPool(Path(folder), seed)
            try:
                for number in range(steps):
                    simulated.step()
                    if number % check_every == 0:
                        simulated.check()
                simulated.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
            finally:
                simulated.close()
        accounts.append(simulated.account)
    return SimulatedTotals(
        sum(len(account.counted) for account in accounts),
        sum(account.deaths for account in accounts),
        sum(account.refused for account in accounts),
        sum(account.full_disks for account in accounts),
    )
