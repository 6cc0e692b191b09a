"""The probe against the league's own past: the worst score of a snapshot against earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from league.core.state.records import ProbeReading
from league.errors import LeagueError
from league.judge.probes.matches import readings_against
from league.judge.probes.probe import PlayOptions, Subject, require_opponents

WORST = "worst_past"
FIRST_PART = 0.6
"""Of the time: the games that tell which opponent is the worst."""


@dataclass(frozen=True)
class PastOptions(PlayOptions):
    """Options beside the number of games against each opponent, and their time.

    Fields:
      opponents: earlier snapshots that it meets: the first, the last, and some between.
    """

    opponents: int = 5

    def problems(self) -> Iterator[str]:
        if self.opponents < 1:
            yield f"opponents: {self.opponents} must be at least 1"
        yield from super().problems()


class Past:
    """Score of the snapshot against the earlier one that is worst for it; below one half it has lost what it could.

    The opponent is chosen by games of its own, since the worst of several scores is too low by chance alone.
    """

    least_core_seconds = 1.0

    def __init__(self, options: PastOptions) -> None:
        self._options = options

    @property
    def num_past(self) -> int:
        return self._options.opponents

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading, with the name of the opponent."""
        require_opponents(subject)
        past = {name: subject.load(name).as_seat_policy(greedy=subject.greedy) for name in subject.task.against}
        if not past:
            raise LeagueError("the league has no earlier snapshot yet")
        games, limit_s = self._options.games, min(self._options.core_seconds, subject.limit_s)
        first = readings_against(subject, past, games=games, limit_s=FIRST_PART * limit_s)
        name = min(first, key=lambda reading: reading.value).yardstick
        again = replace(subject, seed=subject.seed + 1)
        (worst,) = readings_against(again, {name: past[name]}, games=games, limit_s=(1.0 - FIRST_PART) * limit_s)
        return (replace(worst, yardstick=WORST, note=name),)
