"""The report of a study: its arms, the differences of each pair by seed, and the verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import ClassVar

from league.envs.text.number_text import number_text
from league.json_report import JsonReport
from league.lab.study.verdict import ArmVerdict
from league.text_table import TextTable

DECISIONS = {"H1": "the first", "H0": "the second", "": "undecided", "-": ""}


@dataclass(frozen=True)
class ArmRunRow:
    """One run of an arm. value: of the measure; core_seconds: trained; error: a sentence where it failed."""

    seed: int
    run: str
    value: float
    core_seconds: float
    detail: str
    error: str


@dataclass(frozen=True)
class ArmRow:
    """One arm. source: configuration file or game; settings: over it and those of the study; runs: in their order."""

    name: str
    source: str
    settings: dict[str, object]
    runs: tuple[ArmRunRow, ...]


@dataclass(frozen=True)
class SeedRow:
    """The difference of two arms with one seed. games, decision: of their match, where they played one."""

    seed: int
    difference: float
    games: int = 0
    decision: str = "-"


@dataclass(frozen=True)
class ComparisonRow:
    """Two arms. seeds: that both have; verdict: None where there is no such seed."""

    first: str
    second: str
    seeds: tuple[SeedRow, ...]
    verdict: ArmVerdict | None

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        text = "no seed of both is there" if self.verdict is None else self.verdict.sentence
        return f"{self.first} - {self.second}: {text}"


@dataclass(frozen=True)
class StudyReport(JsonReport):
    """A study as far as it has come.

    Fields:
      folder: of it. by: how arms are compared; least: the least difference that matters. core_seconds: of each run.
      seeds: of the study. arms, comparisons: in the order of the file; every two arms are compared.
    """

    must_be_finite: ClassVar[bool] = True

    folder: str
    by: str
    least: float
    core_seconds: float
    seeds: tuple[int, ...]
    arms: tuple[ArmRow, ...]
    comparisons: tuple[ComparisonRow, ...]

    def tables(self) -> tuple[TextTable, ...]:
        """Runs, then differences by seed."""
        is_by_matches = self.by == "matches"
        heads = ("arm", "seed", *(() if is_by_matches else (self.by,)), "core-s", "run")
        runs = [
            (
                arm.name,
                row.seed,
                *(() if is_by_matches else ("-" if row.error else number_text(row.value, 4),)),
                f"{row.core_seconds:.1f}",
                row.error or row.run,
            )
            for arm in self.arms
            for row in arm.runs
        ]
        seeds = [
            (
                f"{pair.first} - {pair.second}",
                row.seed,
                number_text(row.difference, 3, sign=True),
                *((row.games, DECISIONS[row.decision]) if is_by_matches else ()),
            )
            for pair in self.comparisons
            for row in pair.seeds
        ]
        of_matches = ("games", "stronger by the test") if is_by_matches else ()
        return (
            TextTable(heads, runs, (0, len(heads) - 1)),
            TextTable(("arms", "seed", "difference", *of_matches), seeds, (0,)),
        )

    def text(self) -> str:
        return "\n\n".join([*(table.text() for table in self.tables()), "\n".join(self.sentences())])

    def sentences(self) -> list[str]:
        """The verdicts."""
        return [pair.sentence for pair in self.comparisons]

    def html(self) -> str:
        """A section of a page."""
        verdicts = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences())
        tables = "".join(table.html() for table in self.tables())
        settings = "".join(f"<li><b>{escape(arm.name)}</b>: {escape(_settings(arm))}</li>" for arm in self.arms)
        return f"<section><h1>Study</h1><ul>{verdicts}</ul>{tables}<h2>Arms</h2><ul>{settings}</ul></section>"


def _settings(arm: ArmRow) -> str:
    values = ", ".join(f"{key}: {value}" for key, value in arm.settings.items())
    return f"{arm.source}{', ' if values else ''}{values}"
