"""Verdicts on two arms: settled, suggestive or confounded, and how many seeds are still needed.

What differs between runs of one arm is their seed, so that seeds, not games, are what is counted. A verdict may be
asked for after each seed from the third on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from league.envs.text.number_text import number_text
from league.lab.diff.seeds import MAX_SEEDS, Difference, paired_difference, seeds_needed
from league.wording import counted

FIRST_LOOK = 3
"""Seeds of the first look."""
MAX_BUDGET_GAP = 0.1
"""Part by which the budgets that two arms have spent may differ."""

VerdictKind = Literal["settled", "suggestive", "confounded"]


@dataclass(frozen=True)
class ArmVerdict:
    """The reading of a difference after some seeds.

    Fields:
      kind: "settled" where the interval over seeds leaves out 0, or holds nothing but differences too small to matter;
        "suggestive" where every seed points the same way; "confounded" where seeds point both ways, there is but one,
        or the arms have not spent the same.
      difference: the first arm's mean less the second's. better: name of the better arm, empty where none is.
      more_seeds: seeds beyond those there are with which a true difference as large as this one, and at least `least`,
        is found in four of five cases; 0 where it is settled, None where it is unknown or beyond `MAX_SEEDS`.
      sentence: for people.
    """

    kind: VerdictKind
    difference: Difference
    better: str
    more_seeds: int | None
    sentence: str


def looks_of(num_seeds: int) -> int:
    """Looks at a comparison while so many seeds come one by one."""
    return max(num_seeds - FIRST_LOOK + 1, 1)


def is_looked_at(done: int, num_seeds: int) -> bool:
    """True if a comparison may end after so many of its seeds."""
    return done >= min(FIRST_LOOK, num_seeds)


def verdict(
    names: tuple[str, str],
    differences: Sequence[float],
    *,
    least: float,
    num_seeds: int,
    spent: tuple[float, float],
    word: str,
) -> ArmVerdict:
    """The verdict after some seeds.

    Args:
      names: of the arms. differences: [N] the first arm less the second, for each seed; N is 1 or more.
      least: the least difference that matters, in the same unit. num_seeds: of the whole study.
      spent: mean core-seconds of each arm's runs. word: for what is better, "stronger" or "higher".
    """
    found = paired_difference(differences, looks=looks_of(num_seeds))
    num, better = len(differences), names[0] if found.value >= 0.0 else names[1]
    gap = abs(spent[0] - spent[1]) / max(*spent, 1e-9)
    if gap > MAX_BUDGET_GAP:
        amounts = f"{number_text(spent[0])} and {number_text(spent[1])} core-seconds a run"
        text = f"confounded: the arms have not spent the same, {amounts}"
        return ArmVerdict("confounded", found, "", None, text)
    if found.low is None or found.high is None:
        text = f"confounded: one seed does not tell {names[0]} and {names[1]} from their luck"
        return ArmVerdict("confounded", found, "", None, text)
    interval = f"[{_signed(found.low)}, {_signed(found.high)}] over {counted(num, 'seed')}"
    amount = f"by {number_text(abs(found.value), 3)}, interval of {names[0]} less {names[1]} {interval}"
    if found.is_more_than_seeds:
        return ArmVerdict("settled", found, better, 0, f"settled: {better} is {word} {amount}")
    if max(abs(found.low), abs(found.high)) < least:
        text = f"settled: no difference of {number_text(least)} or more, interval {interval}"
        return ArmVerdict("settled", found, "", 0, text)
    effect = max(abs(found.value), least)
    needed = seeds_needed(effect, float(np.std(differences, ddof=1)))
    more = None if needed is None else max(needed - num, 1)
    wants = f"more than {MAX_SEEDS:,} seeds in all" if more is None else f"about {counted(more, 'more seed')} an arm"
    wants = f"{wants} to find {number_text(effect)}"
    if min(differences) > 0.0 or max(differences) < 0.0:
        text = f"suggestive: {better} is {word} with every seed, {amount}; {wants}"
        return ArmVerdict("suggestive", found, better, more, text)
    text = f"confounded: seeds explain as much as the arms, {amount}; {wants}"
    return ArmVerdict("confounded", found, "", more, text)


def _signed(value: float) -> str:
    return number_text(value, 3, sign=True)
