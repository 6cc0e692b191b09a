"""The part of a run's budget that is spent, and the limits of one start of it.

Schedules follow the budget in the configuration; the limits of one command only say when that command stops. So a run
that is stopped and resumed follows the same schedules as one that never stopped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from league.config.run_config import BudgetConfig
from league.processes.processor_time import cpu_seconds
from league.processes.reaper import descendants

LOOK_EVERY_S = 1.0
"""Time between two sums over the run's processes."""

BUDGET, LIMIT, SIGNAL = "the budget is spent", "the limit of this command is reached", "it was asked to stop"
"""Reasons for which a run ends."""

DEFAULT_HORIZON_STEPS = 50_000_000
"""Env steps over which schedules run where the budget sets none."""


@dataclass(frozen=True)
class Spent:
    """Time and steps that a run has used since its first start.

    Fields:
      seconds: wall time of training; core_seconds: processor time of all its processes; env_steps: of all games.
    """

    seconds: float = 0.0
    core_seconds: float = 0.0
    env_steps: int = 0


@dataclass(frozen=True)
class Limits:
    """Limits of one command, measured from the run's state at its start; None for no limit."""

    seconds: float | None = None
    core_seconds: float | None = None
    env_steps: int | None = None

    def reached(self, spent: Spent, *, begun: Spent) -> bool:
        """True once a limit is reached."""
        pairs = (
            (self.seconds, spent.seconds - begun.seconds),
            (self.core_seconds, spent.core_seconds - begun.core_seconds),
            (self.env_steps, spent.env_steps - begun.env_steps),
        )
        return any(limit is not None and used >= limit for limit, used in pairs)

    def env_steps_target(self, begun: Spent) -> int | None:
        """Env steps of the run at which the command stops; None where they do not limit it."""
        return None if self.env_steps is None else begun.env_steps + self.env_steps


def fraction_spent(budget: BudgetConfig, spent: Spent, *, limits: Limits) -> float:
    """Fraction of the budget spent, in [0, 1]; schedules read it.

    Where this command is limited by env steps, the budget's env steps alone count, so that the run repeats exactly;
    else the part of whichever budget is nearest its end.
    """
    steps = spent.env_steps / (budget.env_steps or DEFAULT_HORIZON_STEPS)
    if limits.env_steps is not None:
        return min(steps, 1.0)
    shares = [
        spent.seconds / budget.seconds if budget.seconds else 0.0,
        spent.core_seconds / budget.core_seconds if budget.core_seconds else 0.0,
    ]
    if budget.seconds is None and budget.core_seconds is None:
        shares.append(steps)
    return min(max(shares), 1.0)


def follows_clock(budget: BudgetConfig, limits: Limits) -> bool:
    """True if time ends the budget and drives the schedules, so that a run does not repeat exactly."""
    return limits.env_steps is None and (budget.seconds is not None or budget.core_seconds is not None)


def budget_spent(budget: BudgetConfig, spent: Spent, *, limits: Limits) -> bool:
    """True once the budget is used up.

    As for the schedules, a command limited by env steps looks at env steps alone. Any other looks at the times where
    the budget has any, else at env steps.
    """
    steps = budget.env_steps is not None and spent.env_steps >= budget.env_steps
    timed = [
        used >= limit
        for limit, used in ((budget.seconds, spent.seconds), (budget.core_seconds, spent.core_seconds))
        if limit is not None
    ]
    return steps if limits.env_steps is not None or not timed else any(timed)


def raised_limits(budget: BudgetConfig, spent: Spent) -> tuple[str, ...]:
    """The limits of the budget that are used up as "budget.key=value", each twice what it was, to train on with."""
    limits = (
        ("seconds", budget.seconds, spent.seconds),
        ("core_seconds", budget.core_seconds, spent.core_seconds),
        ("env_steps", budget.env_steps, spent.env_steps),
    )
    return tuple(f"budget.{key}={2 * limit:.12g}" for key, limit, used in limits if limit is not None and used >= limit)


def train_on_command(run: str, budget: BudgetConfig, spent: Spent) -> str:
    """The command that trains on after the end of the budget. run: its path as typed."""
    return " ".join((f"league resume {run}", *(f"-s {raised}" for raised in raised_limits(budget, spent))))


class Meter:
    """Counts wall and processor time of a run: of this process and every one below it, Ray's own included.

    Hosts on other machines of a cluster are not seen from here and not counted.

    Args:
      already: what earlier starts of the run have used.
      monotonic: seconds that never go back.
    """

    def __init__(self, already: Spent, *, monotonic: Callable[[], float]) -> None:
        self._already = already
        self._monotonic = monotonic
        self._started: float | None = None
        self._looked = -LOOK_EVERY_S
        self._core: dict[int, float] = {}
        self._core_sum = 0.0
        self._held_since: float | None = None
        self._held_s = 0.0

    def now(self) -> float:
        """Seconds that never go back, for deadlines."""
        return self._monotonic()

    def start(self) -> None:
        """Training begins now; time before it (bringing up hosts) is not counted."""
        self._started = self._monotonic()
        self._core = {pid: cpu_seconds(pid) for pid in _family()}

    def hold(self, *, held: bool) -> None:
        """Stop counting wall time while training is paused, or count it again. Processor time always counts."""
        if held and self._held_since is None:
            self._held_since = self._monotonic()
        elif not held and self._held_since is not None:
            if self._started is not None:  # a pause that ended before that took no training time
                self._held_s += self._monotonic() - max(self._held_since, self._started)
            self._held_since = None

    def read(self, *, env_steps: int) -> Spent:
        """Totals since the run's first start; what an ended process used stays counted."""
        if self._started is None:
            return Spent(self._already.seconds, self._already.core_seconds, env_steps)
        now = self._monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            used = {pid: cpu_seconds(pid) for pid in _family()}
            self._core_sum += sum(max(seconds - self._core.get(pid, 0.0), 0.0) for pid, seconds in used.items())
            # A process whose parent just died is below nobody for a moment: what it has used must not count twice.
            astray = {pid: seconds for pid, seconds in self._core.items() if pid not in used and cpu_seconds(pid) > 0.0}
            self._core = used | astray
        held_s = self._held_s if self._held_since is None else self._held_s + now - max(self._held_since, self._started)
        seconds = self._already.seconds + now - self._started - held_s
        return Spent(seconds, self._already.core_seconds + self._core_sum, env_steps)


def _family() -> list[int]:
    """This process and every one below it."""
    return [os.getpid(), *descendants(os.getpid())]


@dataclass(frozen=True)
class ClockFile:
    """The part of a run's meter that is stored between two starts.

    Fields:
      spent: totals when it was written.
      env_steps_target: where the last command was to stop by its limit of env steps; None if it did not come so far.
        The next command counts from there, wherever the lease in hand happened to end, so that N and N more are 2 N.
    """

    spent: Spent = Spent()
    env_steps_target: int | None = None

    def encode(self) -> bytes:
        """As JSON with the sha256 (hex) of the record, for the run folder."""
        return msgspec.json.encode(_SignedClock(self.spent, self.env_steps_target, _clock_digest(self)))

    @staticmethod
    def decode(payload: bytes) -> ClockFile:
        """Reads the output of `encode`. Raises msgspec.DecodeError for anything else."""
        signed = msgspec.json.decode(payload, type=_SignedClock)
        clock = ClockFile(signed.spent, signed.env_steps_target)
        if clock.encode() != payload:
            raise msgspec.DecodeError("its sha256 does not hold")
        return clock


class _SignedClock(msgspec.Struct, forbid_unknown_fields=True):
    """The file: the record, and the sha256 (hex) of its own encoding."""

    spent: Spent
    env_steps_target: int | None
    sha256: str


def _clock_digest(clock: ClockFile) -> str:
    return hashlib.sha256(msgspec.json.encode(clock)).hexdigest()
