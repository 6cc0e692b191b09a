"""The verdict on a league: whether it gets stronger against what never changes, in one sentence with its interval.

Of one yardstick the readings of the newer half of the run are fitted by a straight line, each weighted by its interval.
The rise of the line over that half, with its 95 % interval, is the answer (weighted least squares with known
variances; Aitken 1935).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from league.core.metagame.probe_series import series_of
from league.core.metagame.stagnation import NOT_FIXED, TELLING
from league.core.state.records import ReadingScale
from league.core.state.state import LeagueState
from league.see.reports.figures.yardsticks import YardstickFigures
from league.wording import counted

MIN_READINGS = 3
Z_95, Z_90 = 1.959964, 1.644854
MIN_SPREAD = 0.01
"""Least standard error of a reading, so that an exact one does not outweigh all others."""


class LeagueVerdict(msgspec.Struct, frozen=True):
    """An answer. kind: "good", "warn", "bad" or "plain". text: one sentence; more: a second one, may be empty."""

    kind: str
    text: str
    more: str = ""


@dataclass(frozen=True)
class Reading:
    """A score with its interval. at: env steps, or trained steps of a player."""

    at: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class YardstickCourse:
    """Readings against one yardstick, oldest first.

    Fields:
      scale: as of `ProbeReading`. z: half the width of an interval in standard errors. counts: unit of `at`.
    """

    yardstick: str
    readings: Sequence[Reading]
    scale: ReadingScale = "score"
    z: float = Z_95
    counts: str = "env steps"

    @property
    def is_saturated(self) -> bool:
        """True where its newest readings tell policies apart no more."""
        newest = [reading.value for reading in self.readings[-2:]]
        return self.scale == "score" and sum(newest) / len(newest) > TELLING[1]


def strength_verdict(state: LeagueState, found: YardstickFigures) -> LeagueVerdict:
    """A sentence on whether the league gets stronger. found: the yardsticks of that state."""
    courses = [course for course in (*_of_probes(state), *_of_bots(found)) if course.readings]
    if not courses:
        return LeagueVerdict("plain", "Not known yet: nothing that never changes has been played.")
    saturated = [course for course in courses if course.is_saturated]
    telling = [course for course in courses if not course.is_saturated]
    beaten = _beaten(saturated)
    if not telling:
        remarks = (result.remark for result in reversed(state.probes.results) if result.task.probe == "yardsticks")
        more = next(remarks, "") or "Only a stronger one could say whether it still improves."
        return LeagueVerdict("warn", f"It beats every yardstick: {beaten}.", more)
    course = min(telling, key=lambda one: abs(one.readings[-1].value - 0.5) if one.scale == "score" else 1.0)
    return _verdict(course, f"Saturated: {beaten}." if saturated else "")


def _verdict(course: YardstickCourse, more: str) -> LeagueVerdict:
    newer = newer_half(course.readings)
    name, now = course.yardstick, course.readings[-1].value
    if len(newer) < MIN_READINGS:
        said = counted(len(course.readings), "reading")
        return LeagueVerdict(
            "plain", f"Too early to say: {said} against {name} so far, the newest {_number(now)}.", more
        )
    rise, low, high = fitted_rise(newer, z=course.z)
    better, worse = (high < 0.0, low > 0.0) if course.scale == "loss" else (low > 0.0, high < 0.0)
    answer = "Yes" if better else "No, it gets weaker" if worse else "No change beyond chance"
    by = "in" if course.scale == "return" else "against"
    interval = f"{_number(rise, '+')} [{_number(low, '+')}, {_number(high, '+')}]"
    figures = f"{interval} {by} {name} since {_amount(newer[0].at)} {course.counts}"
    return LeagueVerdict(
        "good" if better else "bad" if worse else "warn", f"{answer}: {figures}, now {_number(now)}.", more
    )


def newer_half(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The readings of the newer half of what has been run; all where that holds too few."""
    newer = [reading for reading in readings if 2 * reading.at >= readings[-1].at]
    return newer if len(newer) >= MIN_READINGS else readings[-MIN_READINGS:]


def fitted_rise(readings: Sequence[Reading], *, z: float) -> tuple[float, float, float]:
    """The rise of the line through the readings from the first to the last, and its 95 % interval.

    Args:
      z: half the width of the readings' intervals in standard errors.
    """
    span = readings[-1].at - readings[0].at
    if not span:
        return 0.0, -1.0, 1.0
    places = [(reading.at - readings[0].at) / span for reading in readings]
    values = [reading.value for reading in readings]
    weights = [1.0 / max((reading.high - reading.low) / (2.0 * z), MIN_SPREAD) ** 2 for reading in readings]
    centre, mean = (_weighted(weights, column) / sum(weights) for column in (places, values))
    offsets = [place - centre for place in places]
    spread = _weighted(weights, [offset**2 for offset in offsets])
    products = [offset * (value - mean) for offset, value in zip(offsets, values, strict=True)]
    rise, error = _weighted(weights, products) / spread, Z_95 / math.sqrt(spread)
    return rise, rise - error, rise + error


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def _of_probes(state: LeagueState) -> Iterator[YardstickCourse]:
    for series in series_of(state).values():
        if series.probe in NOT_FIXED:
            continue
        points = series.of_one_identity().points
        readings = [Reading(point.env_steps, point.value, point.low, point.high) for point in points]
        z = Z_90 if series.scale == "return" else Z_95
        yield YardstickCourse(series.yardstick, readings, series.scale, z=z)


def _of_bots(found: YardstickFigures) -> Iterator[YardstickCourse]:
    """Scores in the league's own games of the player with the most snapshots against each bot."""
    longest = {curve.yardstick: curve for curve in sorted(found.curves, key=lambda curve: len(curve.points))}
    for name, curve in longest.items():
        readings = [Reading(point.trained_steps, point.score, point.low, point.high) for point in curve.points]
        counts = f"trained steps of {curve.player}"
        yield YardstickCourse(
            name.removeprefix("bot:"), sorted(readings, key=lambda one: one.at), z=Z_90, counts=counts
        )


def _beaten(courses: Sequence[YardstickCourse]) -> str:
    return ", ".join(f"{course.yardstick} {course.readings[-1].value:.2f}" for course in courses)


def _number(value: float, sign: str = "-") -> str:
    return f"{value:{sign}.2f}" if abs(value) < 10.0 else f"{value:{sign}.3g}"


def _amount(steps: int) -> str:
    return f"{steps / 1e6:.3g}M" if steps >= 1_000_000 else f"{steps / 1e3:.3g}k" if steps >= 10_000 else f"{steps:,}"
