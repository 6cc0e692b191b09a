"""`league ratings`: Bradley-Terry ratings of all frozen policies of a run. Never imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from league.core.metagame.cycles import CycleReport, league_cycles
from league.core.metagame.ratings import RatingRow, league_ratings
from league.envs.placements import has_placements
from league.json_report import JsonReport
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.text_table import TextTable

ONE_TEAM = "a game of one team has no ratings; its mean return says how strong it is"
BY_PLACEMENTS = "Pairs of teams are rated here; `--model openskill` rates by the placements of all teams."


@dataclass(frozen=True)
class RatingsReport(JsonReport):
    """Ratings of all frozen policies, strongest first.

    Fields:
      counts: what the games behind them count by.
      ordered: whether games of the run hold placements, which another model rates by.
      is_competitive: False for a game of one team, which has no ratings.
      cycles: what no single number can express, None where there are fewer than three snapshots.
    """

    run: str
    rows: tuple[RatingRow, ...]
    counts: str
    ordered: bool = False
    cycles: CycleReport | None = None
    is_competitive: bool = True

    def text(self) -> str:
        if not self.rows:
            return f"{self.run}: {'nothing is rated yet' if self.is_competitive else ONE_TEAM}"
        rows = [(row.policy, row.elo, f"[{row.low:+z.0f}, {row.high:+z.0f}]", row.games) for row in self.rows]
        lines = TextTable(("policy", "Elo", "95 % interval", "games"), rows, forms=("", "+z.0f", "", ",")).lines()
        notes = [f"by {self.counts}", *([BY_PLACEMENTS] if self.ordered else [])]
        if self.cycles is not None and self.cycles.misleads:
            notes.append(f"One number per policy misleads here, see `--model meta-game`: {self.cycles.text()}")
        return "\n".join([*lines, *notes])


def read_ratings(path: Path) -> RatingsReport:
    """The ratings of a run, also of a live one.

    Raises:
      MissingRun, JournalError.
    """
    state = state_of_run(RunFolder.open(path))
    return RatingsReport(
        str(path),
        league_ratings(state),
        state.counts,
        has_placements(state.teams),
        league_cycles(state),
        state.is_competitive,
    )
