"""`league diff`: two runs, or two groups of runs, side by side, and whether they differ by more than their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from league.envs.text.number_text import number_text
from league.errors import LeagueError
from league.json_report import JsonReport
from league.lab.diff.runs import COSTS, ComparedRun, SettingDifference, mixed_settings, open_side, setting_differences
from league.lab.diff.seeds import Difference, difference
from league.lab.diff.strengths import Progress, Strengths, play_runs
from league.text_table import TextTable
from league.wording import p_text

ONE_RUN_EACH = (
    "With one run on each side, seeds alone may explain any of this: no spread between seeds is known. Give several "
    "runs of each side (`league diff A1,A2,A3 B1,B2,B3`), or the spread as --seed-spread."
)


@dataclass(frozen=True)
class Quantity:
    """A number of every run. unit: of it; left, right: by run; difference: of the means, right less left."""

    name: str
    unit: str
    left: tuple[float, ...]
    right: tuple[float, ...]
    difference: Difference


@dataclass(frozen=True)
class DiffReport(JsonReport):
    """A comparison.

    Fields:
      left, right: the runs of each side.
      settings: that differ between their first runs. mixed: sentences on runs of one side that differ by more than
        their seed.
      quantities: strength first, then exact values where they are known, then costs.
      strengths: the matches behind the strength. seed_spread: as given, in the unit of the strength.
      verdict: one sentence on the strength.
    """

    must_be_finite: ClassVar[bool] = True

    left: tuple[str, ...]
    right: tuple[str, ...]
    settings: tuple[SettingDifference, ...]
    mixed: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    strengths: Strengths
    seed_spread: float | None
    verdict: str

    def text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"left:  {', '.join(self.left)}"
        yield f"right: {', '.join(self.right)}"
        yield from self.mixed
        yield f"settings that differ: {len(self.settings) or 'none'}"
        for one in self.settings:
            reasons = [reason for reason in (one.left_reason, one.right_reason) if reason]
            why = f"  (auto: {'; '.join(dict.fromkeys(reasons))})" if reasons else ""
            yield f"  {one.key}: {one.left} -> {one.right}{why}"
        heads = ("", "left", "right", "difference", "95 % over runs")
        yield from TextTable(heads, [_quantity_cells(one) for one in self.quantities], left=(0, 4)).lines()
        for row in self.strengths.matches:
            score = row.score
            yield f"  {row.home} scores {score.value:.3f} [{score.low:.3f}, {score.high:.3f}] against {row.away}"
        yield self.verdict


def _quantity_cells(quantity: Quantity) -> tuple[str, ...]:
    left, right = (sum(values) / len(values) for values in (quantity.left, quantity.right))
    found = quantity.difference
    interval = "" if found.low is None or found.high is None else f"{_interval(found.low, found.high)}"
    p_value = "" if found.p_value is None else f"  {p_text(found.p_value)}"
    name = f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name
    return name, f"{left:.5g}", f"{right:.5g}", f"{found.value:+.5g}", f"{interval}{p_value}"


def compare_runs(
    left: str,
    right: str,
    *,
    games: int,
    seed: int = 0,
    seed_spread: float | None = None,
    progress: Progress = lambda done, total: None,
) -> DiffReport:
    """Compare two sides, each "RUN" or "RUN1,RUN2,...".

    Args:
      games: of each match. seed: of the matches. seed_spread: standard deviation of the strength between seeds.
    Raises:
      LeagueError: a run cannot be read, is on both sides, or the games differ. EnvError: the game cannot be made.
    """
    sides = open_side(left), open_side(right)
    both = sorted({run.run.path for run in sides[0]} & {run.run.path for run in sides[1]})
    if both:
        raise LeagueError(f"{both[0]} is on both sides: give different runs.")
    strengths = play_runs([*sides[0], *sides[1]], games=games, seed=seed, progress=progress)
    strength = _quantity("strength", strengths.unit, sides, strengths.values, seed_spread)
    quantities = [strength]
    known = {run.path: run.nash_conv for side in sides for run in side if run.nash_conv is not None}
    if len(known) == sum(map(len, sides)):
        quantities.append(_quantity("nash_conv", "", sides, known, None))
    for name, unit in COSTS.items():
        costs = {run.path: run.costs[name] for side in sides for run in side}
        quantities.append(
            _quantity(name.replace("_", " "), unit if unit != name.replace("_", " ") else "", sides, costs, None)
        )
    words = ("left", "right")
    mixed = tuple(
        f"The runs of the {word} side differ in {', '.join(keys)}: their spread is not of seeds alone."
        for word, side in zip(words, sides, strict=True)
        if (keys := mixed_settings(side))
    )
    paths = [tuple(run.path for run in side) for side in sides]
    return DiffReport(
        left=paths[0],
        right=paths[1],
        settings=setting_differences(*sides),
        mixed=mixed,
        quantities=tuple(quantities),
        strengths=strengths,
        seed_spread=seed_spread,
        verdict=_verdict(strength, strengths, paths),
    )


def _quantity(
    name: str,
    unit: str,
    sides: tuple[Sequence[ComparedRun], Sequence[ComparedRun]],
    values: dict[str, float],
    seed_spread: float | None,
) -> Quantity:
    left, right = (tuple(values[run.path] for run in side) for side in sides)
    return Quantity(name, unit, left, right, difference(left, right, seed_spread=seed_spread))


def _verdict(strength: Quantity, strengths: Strengths, paths: Sequence[tuple[str, ...]]) -> str:
    found, unit = strength.difference, strength.unit
    stronger = "right" if found.value > 0.0 else "left"
    amount = (
        f"The {stronger} side is {number_text(abs(found.value), 4)} {unit} stronger"
        if found.value
        else "Both are as strong"
    )
    if found.method == "none":
        error = strengths.errors[paths[1][0]]
        games = f"{amount} ({found.value:+.0f} ± {error:.0f} by its games alone)" if unit == "Elo" else amount
        return f"{games}. {ONE_RUN_EACH}"
    assert found.low is not None and found.high is not None
    interval = f"{amount}, with a 95 % interval of {_interval(found.low, found.high)} over seeds"
    says = "that is more than seeds explain" if found.is_more_than_seeds else "seeds explain as much"
    few = ""
    if found.p_value is not None and found.least_p_value is not None:
        few = f" A permutation of the runs gives {p_text(found.p_value)}"
        few += (
            f"; so few can give no less than {number_text(found.least_p_value)}." if found.least_p_value > 0.05 else "."
        )
    how = " The spread of the single run is taken from the other side." if found.method == "pooled" else ""
    return f"{interval}: {says}.{few}{how}"


def _interval(low: float, high: float) -> str:
    return f"[{number_text(low, 4, sign=True)}, {number_text(high, 4, sign=True)}]"
