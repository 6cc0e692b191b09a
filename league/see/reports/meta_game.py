"""`league ratings --model meta-game`: snapshots by the game between them, where strength is not one number.

Beside each other: the mixture that no snapshot beats, what each snapshot scores against it, alpha-rank, and the cycles
that Elo cannot express.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from league.core.metagame.alpha_rank import alpha_rank, nash_average
from league.core.metagame.cycles import CycleReport, league_cycles
from league.core.metagame.meta_game import own_snapshots, snapshot_win_rates
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.policies.nash_export import league_mixture
from league.policies.nash_lp import nash
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.text_table import TextTable

ROUNDING = 1e-9
"""Win rates closer than this are equal: solvers work in floating point."""


@dataclass(frozen=True)
class MetaGameRow:
    """One snapshot in the game between snapshots.

    Fields:
      weight: in the Nash mixture of the estimated win rates. exported: in what is played as "mixture", which allows for
        how far off the estimates may be.
      advantage: its win rate over a half against the Nash mixture: 0 for a member, less for others.
      alpha_rank: how long a population of copies dwells on it; over all snapshots they sum to 1.
    """

    policy: str
    weight: float
    exported: float
    advantage: float
    alpha_rank: float


@dataclass(frozen=True)
class MetaGameReport(JsonReport):
    """All snapshots of a run, best against the mixture first; none where there are not two to compare.

    Fields:
      cycles: None where there are fewer than three snapshots. counts: what the games behind it count by.
    """

    run: str
    rows: tuple[MetaGameRow, ...]
    cycles: CycleReport | None
    counts: str
    model: str = "meta-game"

    def text(self) -> str:
        if not self.rows:
            return f"{self.run}: there is nothing to compare yet"
        heads, forms = ("policy", "Nash", "v Nash", "alpha-rank", "mixture"), ("", ".3f", "+z.3f", ".3f", ".3f")
        rows = [(row.policy, row.weight, row.advantage, row.alpha_rank, row.exported) for row in self.rows]
        lines = TextTable(heads, rows, forms=forms).lines()
        last = (
            "v Nash: win rate over a half against the Nash mixture; mixture: exported weights, which allow for errors"
        )
        cycles = [] if self.cycles is None else [self.cycles.text()]
        return "\n".join([*lines, last, *cycles, f"by {self.counts}"])


def read_meta_game(path: Path) -> MetaGameReport:
    """The game between the snapshots of a run, also of a live one.

    Raises:
      MissingRun, JournalError.
    """
    state = state_of_run(RunFolder.open(path))
    return MetaGameReport(str(path), meta_game_rows(state), league_cycles(state), state.counts)


def meta_game_rows(state: LeagueState) -> tuple[MetaGameRow, ...]:
    """A row for each snapshot that was taken in this league; empty in games of one team and with fewer than two."""
    names = own_snapshots(state)
    if not state.is_competitive or len(names) < 2:
        return ()
    win_rates = snapshot_win_rates(state, names)
    mixture, exported = nash(win_rates), dict(league_mixture(state))
    advantages, shares = nash_average(win_rates, mixture), alpha_rank(win_rates)
    rows = [
        MetaGameRow(name, float(mixture[i]), exported.get(name, 0.0), float(advantages[i]), float(shares[i]))
        for i, name in enumerate(names)
    ]
    return tuple(sorted(rows, key=lambda row: (-round(row.advantage / ROUNDING), -row.weight, row.policy)))
