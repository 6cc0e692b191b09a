"""The plan of a chaos run: which fault comes when, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

KILL, STOP, SLOW, FILL, CORRUPT = "kill", "stop", "slow", "fill", "corrupt"
DAEMON, ACTOR, LEARNER, HEAD, FORK_SERVER = "daemon", "actor", "learner", "head", "fork server"

FAULTS: tuple[tuple[str, str, float], ...] = (
    (KILL, DAEMON, 3.0),
    (KILL, ACTOR, 3.0),
    (KILL, LEARNER, 3.0),
    (KILL, HEAD, 1.0),
    (KILL, FORK_SERVER, 1.0),
    (STOP, DAEMON, 1.0),
    (STOP, ACTOR, 1.0),
    (STOP, LEARNER, 1.0),
    (SLOW, ACTOR, 1.0),
    (SLOW, LEARNER, 1.0),
    (FILL, DAEMON, 1.0),
    (CORRUPT, "snapshot", 1.0),
    (CORRUPT, "checkpoint", 1.0),
    (CORRUPT, "journal", 1.0),
)
"""(kind, target, weight) of every fault. Kill is SIGKILL. Stop is SIGSTOP for a while. Slow is SIGSTOP for half of each
fifth of a second. Fill lets no file of the daemon grow any more. Corrupt damages a copy of the run."""

ONE_PROCESS = (DAEMON, "snapshot", "checkpoint", "journal")
"""Targets of a run whose hosts are its daemon."""

PAUSE_S = 3.0
"""Longest pause between a recovery and the next fault."""

LASTS_S = (1.0, 8.0)
"""Shortest and longest stop, slow or fill."""

EARLY_SHARE, EARLY_S = 0.3, 12.0
"""This share of the daemon's kills is followed by the next fault at once, within so many seconds, as it starts up."""


@dataclass(frozen=True)
class Strike:
    """One fault.

    Fields:
      kind, target: of `FAULTS`. after_s: pause before it. lasts_s: of a stop, slow or fill.
      place: in [0, 1), which of several processes or bytes. hurry_s: where above 0 the next strike comes so long after
        this one, without a wait for recovery.
    """

    kind: str
    target: str
    after_s: float
    lasts_s: float
    place: float
    hurry_s: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind} {self.target}"


class StrikePlan:
    """Draws strike after strike; the same seed draws the same ones.

    Args:
      kinds: of faults. targets: that the run has.
    Raises:
      ValueError: no fault is left.
    """

    def __init__(self, seed: int, *, kinds: Sequence[str], targets: Sequence[str]) -> None:
        self._rng = random.Random(seed)
        self._faults = [fault for fault in FAULTS if fault[0] in kinds and fault[1] in targets]
        if not self._faults:
            raise ValueError(f"no fault of {', '.join(kinds)} strikes {', '.join(targets)}")

    def draw(self) -> Strike:
        """The next strike."""
        weights = [weight for _, _, weight in self._faults]
        kind, target, _ = self._rng.choices(self._faults, weights)[0]
        after_s, lasts_s, place = self._rng.uniform(0.0, PAUSE_S), self._rng.uniform(*LASTS_S), self._rng.random()
        early, hurry_s = self._rng.random() < EARLY_SHARE, self._rng.uniform(0.1, EARLY_S)
        return Strike(
            kind, target, after_s, lasts_s, place, hurry_s if early and (kind, target) == (KILL, DAEMON) else 0.0
        )
