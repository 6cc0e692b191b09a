"""A match between two exports of a run, by which "auto" chooses where every seat sees everything.

The moving average of the weights is mostly stronger than they are after long training. It can be far behind where they
still change much, and only games tell the two apart.
"""

from __future__ import annotations

from league.core.metagame.meta_game import own_snapshots
from league.judge.matches.report import evaluate_run
from league.policies.auto_export import BEST, EMA, ExactExports, ExportMatch, keeps_average
from league.policies.exact_file import made_of, write_exact
from league.policies.loading import OpenRun

GAMES = 400
"""Enough to tell 0.55 from 0.50."""


def keep_export_match(run: OpenRun, *, limit_s: float, games: int = GAMES) -> None:
    """Let the moving average play the best snapshot, and keep the score in the run folder for "auto".

    Does nothing in games of other kinds, and where no average is kept or the score of these two is known.

    Args:
      run: as it was read last. limit_s: seconds of the games.
    Raises:
      LeagueError, EnvError: as of `evaluate_run`.
    """
    state = run.state
    if not (state.is_competitive and state.perfect_information and own_snapshots(state) and keeps_average(state)):
        return
    if run.exact is not None and run.exact.match is not None:
        return
    report = evaluate_run(run.path, players=(EMA, BEST), bots=(), games=games, limit_s=limit_s)
    rows = [row for row in report.pairs if (row.home, row.away) == (EMA, BEST)]
    if not rows:  # there was no time for a game
        return
    (row,) = rows
    match = ExportMatch(row.score.value, row.score.low, row.score.high, row.games)
    write_exact(run.path, ExactExports({}, made_of=made_of(state), match=match))
