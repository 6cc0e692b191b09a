"""The test "ratings rise, yardsticks do not": a league that chases itself, seen by its probes.

Ratings are relative. Policies that learn to beat their predecessors, and lose to others what they win, rise in rating
for ever. Over the newest probed snapshots that are rated, an earlier half is compared with a later one.

Null hypothesis: at least one kind of evidence rises as it should. Scores against fixed yardsticks should rise, in Elo
and on average over the yardsticks, by `MIN_GAIN` of what ratings rise. A loss, such as an exact NashConv, should fall
by `MIN_FALL`. Each is tested by a permutation of the snapshots over the two halves, with a fixed seed. The alarm
needs all of them to be refused at `LEVEL`. It also needs ratings that rise by `MIN_RISE` Elo, beyond chance at the
same level and beyond their intervals.

Since all have to be refused, the level of each bounds that of the whole (Berger 1982, intersection-union tests). From
each snapshot's evidence is taken what it should have gained. At the boundary of the null the rest does not depend on
the half, so that a permutation test is exact (Pitman 1937). Yardsticks that are always beaten, or never, say nothing.

Shape letter: N snapshots compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.probe_series import Point, Series
from league.core.metagame.ratings import ELO_PER_LOGIT, RatingRow
from league.wording import p_text

WINDOW = 24
"""Newest snapshots that are compared."""
MIN_SNAPSHOTS = 12
MIN_RISE = 100.0
"""Elo by which the ratings of the later half lie above those of the earlier."""
MIN_GAIN = 0.25
"""Of the rise of the ratings: what scores against yardsticks gain in a league that is well."""
MIN_FALL = 0.1
"""Fraction by which a loss falls in such a league."""
LEVEL = 0.002
PERMUTATIONS = 1_999
SEED = 20_240_607
TELLING = (0.03, 0.97)
"""Mean scores between which a yardstick tells policies apart."""
LEARNT_REPLY = ("best_response", "exploiter")
"""The probe by a fresh player, and its name in older runs."""
NOT_FIXED = ("past", *LEARNT_REPLY)
"""Probes whose opponents change with the league, or by chance."""
MIN_LOSS = 1e-6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stagnation:
    """Ratings that rise while yardsticks do not.

    Fields:
      snapshots: N, how many were compared. rise: of the ratings, Elo. gain: of the scores against yardsticks, Elo; None
        where only losses were measured. falls: yardstick -> fraction by which its loss fell.
      p_value: the largest of all tests.
    """

    snapshots: int
    rise: float
    gain: float | None
    falls: Mapping[str, float]
    p_value: float

    def text(self) -> str:
        """For people: a sentence without a full stop."""
        parts = [] if self.gain is None else [f"scores against fixed yardsticks moved by {self.gain:+.0f} Elo"]
        parts += [f"{name} fell by {fall:.0%}" for name, fall in self.falls.items()]
        return (
            f"ratings rose by {self.rise:.0f} Elo over the newest {self.snapshots} probed snapshots, while "
            f"{' and '.join(parts)} ({p_text(self.p_value)})"
        )


def find_stagnation(series: Mapping[str, Series], ratings: Mapping[str, RatingRow]) -> Stagnation | None:
    """The finding, where there is one.

    Args:
      series: of every yardstick. ratings: of snapshots, by name.
    """
    fixed = _fixed(series)
    order = {point.snapshot: point.number for one in fixed for point in one.points}
    rated = [name for name in sorted(order, key=order.__getitem__) if name in ratings and ratings[name].games]
    names = rated[-WINDOW:]
    if len(names) < MIN_SNAPSHOTS:
        return None
    elos = np.array([ratings[name].elo for name in names])
    rise, p_rise = _shift(elos, higher=True)
    if rise < MIN_RISE or p_rise > LEVEL or not _is_certain([ratings[name] for name in names]):
        return None
    gain, falls, p_values = None, {}, [p_rise]
    strength = _strength([one for one in fixed if one.scale == "score"], names)
    if strength is not None:
        known, values = strength
        gain, _ = _shift(values, higher=False)
        p_values.append(_shift(values - MIN_GAIN * elos[known], higher=False)[1])
    for one in fixed:
        if one.scale == "loss":
            known, losses = _values(one, names)
            if len(known) >= MIN_SNAPSHOTS:
                logs = -np.log(np.maximum(losses, MIN_LOSS))
                fall, _ = _shift(logs, higher=False)
                falls[one.yardstick] = 1.0 - math.exp(-fall)
                due = np.where(_is_late(len(logs)), -math.log(1.0 - MIN_FALL), 0.0)
                p_values.append(_shift(logs - due, higher=False)[1])
    if len(p_values) < 2 or max(p_values) > LEVEL:
        return None
    return Stagnation(len(names), rise, gain, falls, max(p_values))


def saturated(series: Mapping[str, Series]) -> tuple[str, ...]:
    """Fixed yardsticks that are always beaten, where none is left that tells policies apart."""
    newest = {
        one.yardstick: np.mean([point.value for point in one.points[-MIN_SNAPSHOTS:]])
        for one in _fixed(series)
        if one.scale == "score" and len(one.points) >= MIN_SNAPSHOTS
    }
    beaten = tuple(name for name, mean in newest.items() if mean > TELLING[1])
    return beaten if beaten and len(beaten) == len(newest) else ()


def _fixed(series: Mapping[str, Series]) -> list[Series]:
    return [one.of_one_identity() for one in series.values() if one.probe not in NOT_FIXED]


def _strength(scores: list[Series], names: list[str]) -> tuple[NDArray[np.int64], Array] | None:
    """Places in `names` and mean strength there in Elo, over the yardsticks that tell; None where too few have any."""
    sums, counts = np.zeros(len(names)), np.zeros(len(names))
    for one in scores:
        known, values = _values(one, names)
        if len(known) < MIN_SNAPSHOTS or not TELLING[0] <= values.mean() <= TELLING[1]:
            continue
        games = np.array([point.games for point in _points(one, names)], dtype=np.float64)
        rates = (values * games + 0.5) / (games + 1.0)
        elos = ELO_PER_LOGIT * np.log(rates / (1.0 - rates))
        sums[known] += elos - elos.mean()
        counts[known] += 1.0
    known = np.flatnonzero(counts)
    return (known, sums[known] / counts[known]) if len(known) >= MIN_SNAPSHOTS else None


def _points(one: Series, names: list[str]) -> Iterator[Point]:
    newest = {point.snapshot: point for point in one.points}
    return (newest[name] for name in names if name in newest)


def _values(one: Series, names: list[str]) -> tuple[NDArray[np.int64], Array]:
    """Places in `names` that a yardstick has measured, and its values there."""
    points = list(_points(one, names))
    measured = {point.snapshot for point in points}
    places = np.array([place for place, name in enumerate(names) if name in measured], dtype=np.int64)
    return places, np.array([point.value for point in points])


def _is_certain(rows: Sequence[RatingRow]) -> bool:
    """True if the later half is rated higher beyond the intervals of both: ratings of a chain err in one direction."""
    late = _is_late(len(rows))
    low = np.mean([row.low for row, is_late in zip(rows, late, strict=True) if is_late])
    high = np.mean([row.high for row, is_late in zip(rows, late, strict=True) if not is_late])
    return bool(low > high)


def _is_late(number: int) -> NDArray[np.bool_]:
    return np.arange(number) >= number // 2


def _shift(values: Array, *, higher: bool) -> tuple[float, float]:
    """Mean of the later half less that of the earlier, and the chance of one as high, or as low, by permutation."""
    late = _is_late(len(values)).astype(np.float64)
    weights = late / late.sum() - (1.0 - late) / (1.0 - late).sum()
    shift = float(weights @ values)
    rng = np.random.default_rng(SEED)
    orders = rng.permuted(np.tile(np.arange(len(values)), (PERMUTATIONS, 1)), axis=1)
    others = values[orders] @ weights
    as_far = np.count_nonzero(others >= shift - 1e-12 if higher else others <= shift + 1e-12)
    return shift, (1.0 + as_far) / (1.0 + PERMUTATIONS)
