"""Matches between exports of a run, by which "auto" chooses where the strongest policy is the hardest to beat.

The moving average of the weights is mostly stronger than they are after long training. It can be far behind where they
still change much, the last weights are newer than any snapshot, and only games tell them apart.
"""

from __future__ import annotations

import time
from dataclasses import replace

from league.core.metagame.meta_game import own_snapshots
from league.judge.matches import evaluation as match_report
from league.judge.matches.evaluation import EvalReport
from league.policies.auto_export import CHALLENGERS, ExactExports, ExportMatch, strongest_export
from league.policies.exact_file import made_of, write_exact
from league.policies.loading import OpenRun

GAMES = 400
"""Of a match, of which there are two at most: enough to tell 0.55 from 0.50."""

ASK_S = 10.0
"""Seconds of the games where somebody asks for "auto" after training."""


def keep_export_matches(run: OpenRun, *, limit_s: float, games: int = GAMES) -> OpenRun:
    """Let exports play the one that "auto" stands for so far, and keep the scores in the run folder.

    Does nothing in games of other kinds and for exports of the same weights. A match that is known is played again only
    where it was not played to its end and there is more time now.

    Args:
      run: as it was read last. limit_s: seconds of all games. games: of each match, at most.
    Returns:
      the run with the matches.
    Raises:
      LeagueError, EnvError: as of `evaluate_run`.
    """
    state = run.state
    if not (state.is_competitive and state.kind.is_won_by_strength and own_snapshots(state)):
        return run
    made, begun = made_of(state), time.monotonic()
    for number, challenger in enumerate(CHALLENGERS):
        known = run.exact or ExactExports({})
        chosen, _ = strongest_export(state, replace(known, matches=_among(known, CHALLENGERS[:number])))
        if challenger not in made or chosen not in made or made[challenger] == made[chosen]:
            continue
        left = (limit_s - (time.monotonic() - begun)) / (len(CHALLENGERS) - number)
        before = known.match_of(challenger, chosen)
        if left <= 0.0 or (before is not None and (before.games >= games or before.limit_s >= left)):
            continue
        report = match_report.evaluate_run(run.path, players=(challenger, chosen), bots=(), games=games, limit_s=left)
        match = _match_of(report, challenger, chosen, limit_s=left)
        if match is None or (before is not None and before.games > match.games):
            continue
        others = tuple(one for one in known.matches if one != before)
        exact = replace(known, made_of=made, matches=(*others, match))
        write_exact(run.path, exact)
        run = replace(run, exact=exact)
    return run


def _among(known: ExactExports, challengers: tuple[str, ...]) -> tuple[ExportMatch, ...]:
    return tuple(match for match in known.matches if match.home in challengers)


def _match_of(report: EvalReport, home: str, away: str, *, limit_s: float) -> ExportMatch | None:
    """The match of two exports; None where there was no time for a game, or both are the same."""
    rows = [row for row in report.pairs if (row.home, row.away) == (home, away)]
    if not rows:
        return None
    (row,) = rows
    value, even = row.edge(report.score)
    return ExportMatch(home, away, value.value, value.low, value.high, row.games, even, limit_s)
