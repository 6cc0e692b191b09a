"""The course of each yardstick over a run, for tables and plots. Reads the state of a league alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from league.core.state.records import ReadingScale
from league.core.state.state import LeagueState
from league.envs.text.number_text import number_text

_NO_KEY = re.compile(r"[^A-Za-z0-9_.:-]+")


@dataclass(frozen=True)
class Point:
    """One reading.

    Fields:
      number: of the probe. snapshot: that was measured. env_steps: of the league when it was. trained_steps: of the
        snapshot. value, low, high, games, note, identity: as of `ProbeReading`. core_seconds: of the whole probe.
    """

    number: int
    snapshot: str
    env_steps: int
    trained_steps: int
    value: float
    low: float
    high: float
    games: int
    note: str
    core_seconds: float
    identity: str = ""


@dataclass(frozen=True)
class Series:
    """A yardstick. probe: which measured it; scale: as of `ProbeReading`; points: oldest first."""

    probe: str
    yardstick: str
    scale: ReadingScale
    points: tuple[Point, ...]

    @property
    def key(self) -> str:
        """Its name among all yardsticks of a run."""
        return yardstick_key(self.probe, self.yardstick)

    def of_one_identity(self) -> Series:
        """The points against who is met now; a policy of a run that moved on is another yardstick under its name."""
        newest = self.points[-1].identity if self.points else ""
        return replace(self, points=tuple(point for point in self.points if point.identity == newest))


def yardstick_key(probe: str, yardstick: str) -> str:
    """A name without slashes or spaces, for metrics and files."""
    return _NO_KEY.sub("-", f"{probe}.{yardstick}")


def series_of(state: LeagueState) -> Mapping[str, Series]:
    """Key -> course of every yardstick, in the order in which they first came."""
    found: dict[str, tuple[str, str, ReadingScale, list[Point]]] = {}
    for result in state.probes.results:
        for reading in result.readings:
            key = yardstick_key(result.task.probe, reading.yardstick)
            known = found.setdefault(key, (result.task.probe, reading.yardstick, reading.scale, []))
            known[3].append(
                Point(
                    number=result.task.number,
                    snapshot=result.task.snapshot,
                    env_steps=result.env_steps,
                    trained_steps=result.trained_steps,
                    value=reading.value,
                    low=reading.low,
                    high=reading.high,
                    games=reading.games,
                    note=reading.note,
                    core_seconds=result.core_seconds,
                    identity=reading.identity,
                )
            )
    return {key: Series(probe, name, scale, tuple(points)) for key, (probe, name, scale, points) in found.items()}


def newest_text(state: LeagueState) -> str:
    """The newest value of each yardstick in a line; empty before the first."""
    parts = []
    for one in series_of(state).values():
        parts.append(f"{one.yardstick} {number_text(one.points[-1].value)} ({one.points[-1].snapshot})")
    return ", ".join(parts)
