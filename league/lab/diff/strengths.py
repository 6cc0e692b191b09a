"""Strengths of runs on a common scale: a round robin of their `auto` exports, and their games against yardsticks.

Shape letters: R runs of both sides together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from league.config.default_scoring import scoring_of
from league.core.metagame.ratings import ELO_PER_LOGIT, INTERVAL_Z, PairGames, bradley_terry
from league.core.state.records import BOT_PREFIX
from league.core.state.scoring import Scoring
from league.judge.contenders.contender import Contender, Game, OpenConditions, open_lineup
from league.judge.contenders.finding import find_contenders, game_of
from league.judge.matches.bots_to_play import fitting_bots
from league.judge.matches.match import Match
from league.judge.matches.match_result import Interval, MatchResult
from league.judge.probes.matches import score_of
from league.lab.diff.runs import ComparedRun
from league.policies.auto_export import AUTO

OPENING_PLIES = 2
Progress = Callable[[int, int], None]
"""Called with (matches finished, matches in all)."""


@dataclass(frozen=True)
class MatchRow:
    """A match. score: of the home, with a 95 % interval over its games."""

    home: str
    away: str
    games: int
    score: Interval


@dataclass(frozen=True)
class Strengths:
    """Strengths of all runs, and the matches behind them.

    Fields:
      unit: "Elo", or "return" in a game of one team.
      values: run -> strength; in Elo the first run of the left side has 0. errors: run -> half its 95 % interval over
        games, against the first run.
      matches: all, runs and yardsticks. yardsticks: bots that were met.
    """

    unit: str
    values: dict[str, float]
    errors: dict[str, float]
    matches: tuple[MatchRow, ...]
    yardsticks: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """Settings of all matches: the game, what counts, their games, seed and conditions."""

    game: Game
    scoring: Scoring
    games: int
    conditions: OpenConditions

    def play(self, *contenders: Contender) -> MatchResult:
        with open_lineup(contenders, self.game, self.conditions) as policies:
            match = Match(self.game.env, policies, seed=self.conditions.seed, opening_plies=OPENING_PLIES)
            return match.play(self.games)

    def row(self, home: Contender, away: Contender) -> MatchRow:
        result = self.play(home, away)
        score = score_of(result, self.scoring, teams=self.game.spec.teams)
        return MatchRow(home.name, away.name, result.games, score)


def play_runs(
    runs: Sequence[ComparedRun], *, games: int, seed: int, progress: Progress = lambda done, total: None
) -> Strengths:
    """Play the exports of all runs against each other and against the bots of the first run's evaluation.

    Args:
      games: of each match, rounded up to a multiple of the teams.
    Raises:
      LeagueError: the runs are of different games, or one has nothing to play. EnvError: the game cannot be made.
    """
    contenders = find_contenders([f"{run.path}:{AUTO}" for run in runs])
    named = {contender.name: run.path for contender, run in zip(contenders, runs, strict=True)}
    game, config = game_of(contenders), runs[0].config
    game = replace(game, env=replace(game.env, workers=0))
    conditions = OpenConditions(seed, greedy=not game.must_mix)
    table = _Table(game, scoring_of(config.league.payoff, game.spec), games, conditions)
    if game.spec.num_teams == 1:
        returns = {named[one.name]: table.play(one).mean_return() for one in contenders}
        values = {name: one.value for name, one in returns.items()}
        return Strengths("return", values, {name: one.high - one.value for name, one in returns.items()}, (), ())
    fitting, _ = fitting_bots(game.env, config.evaluation.bots, seed=seed)
    bots = find_contenders([BOT_PREFIX + bot for bot in fitting])
    meetings = [*itertools.combinations(contenders, 2), *itertools.product(contenders, bots)]
    rows = []
    for number, (home, away) in enumerate(meetings):
        progress(number, len(meetings))
        rows.append(table.row(home, away))
    progress(len(meetings), len(meetings))
    elos, errors = _elos([one.name for one in (*contenders, *bots)], rows)
    return Strengths(
        "Elo",
        {named[one.name]: float(elos[place]) for place, one in enumerate(contenders)},
        {named[one.name]: float(errors[place]) for place, one in enumerate(contenders)},
        tuple(replace(row, home=named[row.home], away=named.get(row.away, row.away)) for row in rows),
        tuple(one.name for one in bots),
    )


def _elos(names: Sequence[str], rows: Sequence[MatchRow]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Elo of every contender with the first at 0, and half its 95 % interval."""
    place = {name: number for number, name in enumerate(names)}
    pairs = PairGames(
        np.array([place[row.home] for row in rows]),
        np.array([place[row.away] for row in rows]),
        np.array([row.score.value * row.games for row in rows]),
        np.array([float(row.games) for row in rows]),
    )
    nobody = np.full(len(names), -1)
    ratings, deviations = bradley_terry(len(names), pairs, parents=nobody, anchor=0, parent_draws=0.0)
    return ELO_PER_LOGIT * ratings, ELO_PER_LOGIT * INTERVAL_Z * deviations
