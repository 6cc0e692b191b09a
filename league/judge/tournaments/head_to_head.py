"""A match between contenders of any origin, with intervals; between two, a sequential test may end it early."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from league.json_report import JsonReport
from league.judge.contenders.contender import Contender, Game, UnknownContender
from league.judge.matches.contest import MAX_FAILURES, ContestConditions, how_networks_act
from league.judge.matches.match_result import Interval
from league.judge.matches.sprt import SprtConfig, SprtRow, elo_of
from league.judge.tournaments.batches import Where
from league.judge.tournaments.play_round import field_of, play_round, players_of
from league.judge.tournaments.records import TournamentConfig
from league.judge.tournaments.tournament import Tournament
from league.text_table import TextTable
from league.wording import counted

HERE = Where(jobs=1)
BATCH_GAMES = 128
"""Games of a batch: few enough that several processes share a match of a few hundred games."""
SPRT_BATCH_GAMES = 64
"""The same where they are the games between two looks at the sequential test."""

Progress = Callable[[int, int], None]
"""Called with (games finished, games in all)."""


@dataclass(frozen=True)
class ContenderRow:
    """One contender of a match.

    Fields:
      name, identity, reason: as of `Contender`.
      score: mean over games and opponents of win 1, draw 1/2, loss 0; None in a game of one team, or without a game.
      by_team: [T] the score while it held team 0, 1, ...
      mean_return: of its team; None without a game.
      aborted: games that were aborted because it failed.
    """

    name: str
    identity: str
    reason: str
    score: Interval | None
    by_team: tuple[float, ...]
    mean_return: Interval | None
    aborted: int


@dataclass(frozen=True)
class PairCount:
    """Games in which `home` returned more than `away`, as much, or less."""

    home: str
    away: str
    wins: int
    draws: int
    losses: int


@dataclass(frozen=True)
class HeadToHead(JsonReport):
    """A finished match.

    Fields:
      env_id: the game. conditions: how it was played. games: that count, without those of aborted groups.
      contenders: one row each, in the order given. pairs: each two of them.
      elo: of the first over the second, from its score; None with more than two teams.
      sprt: None where no test was asked for.
      mean_steps: mean length of a game. notes: one sentence each.
    """

    must_be_finite: ClassVar[bool] = True

    env_id: str
    conditions: ContestConditions
    games: int
    contenders: tuple[ContenderRow, ...]
    pairs: tuple[PairCount, ...]
    elo: Interval | None
    sprt: SprtRow | None
    mean_steps: float
    notes: tuple[str, ...]

    def json_extras(self) -> Mapping[str, object]:
        """`elo`: null where it has no bound."""
        if self.elo is None:
            return {}
        return {"elo": {name: value if np.isfinite(value) else None for name, value in asdict(self.elo).items()}}


def play_head_to_head(
    game: Game,
    contenders: Sequence[Contender],
    conditions: ContestConditions,
    *,
    games: int,
    sprt: SprtConfig | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
    where: Where = HERE,
) -> HeadToHead:
    """Play a match of at most `games` games: a tournament with one pairing, without a folder.

    Args:
      contenders: at least one, at most one for each team; the last one takes the teams that remain.
      games: rounded up to a multiple of the teams.
      sprt: ends the match as soon as a hypothesis is accepted; for games of two teams.
      notes: sentences for the report.
      where: its games are played; the result does not depend on it.
    Raises:
      UnknownContender: their number does not fit the game, or a test is asked for in a game without pairs.
      LeagueError, EnvError: a contender cannot play.
    """
    teams = game.spec.num_teams
    _require_fitting(game, contenders, teams, sprt)
    everyone = tuple(range(len(contenders)))
    config = TournamentConfig(
        tuple(one.name for one in contenders),
        games=games,
        batch_games=BATCH_GAMES if sprt is None else SPRT_BATCH_GAMES,
        seed=conditions.seed,
        sprt=sprt,
    )
    state = Tournament(
        config,
        contenders=len(contenders),
        teams=teams,
        format=lambda contenders, teams, rounds, limit: () if rounds else (everyone,),
    )
    field = field_of(game.env, tuple(contenders), conditions, record=False)
    shown, total = 0, state.games_known

    def count(ended: int) -> None:
        nonlocal shown
        shown += ended
        if progress is not None:
            progress(shown, total)

    with players_of(field, game, where, progress=count) as players:
        play_round(state, players, tick=lambda: count(max(0, state.games_played - shown)))
    return _report(game, contenders, conditions, state, notes)


def _require_fitting(game: Game, contenders: Sequence[Contender], teams: int, sprt: SprtConfig | None) -> None:
    if not 1 <= len(contenders) <= teams or (teams > 1 and len(contenders) < 2):
        raise UnknownContender(
            f"a match of {game.env.id} has {counted(teams, 'team')}, which does not fit "
            f"{counted(len(contenders), 'contender')}: give"
            f" {'1' if teams == 1 else 'between 2 and ' + str(teams) if teams > 2 else '2'}, or play a tournament."
        )
    if sprt is not None and teams != 2:
        raise UnknownContender(f"--sprt needs a game of two teams, {game.env.id} has {teams}: leave it out.")


def _report(
    game: Game,
    contenders: Sequence[Contender],
    conditions: ContestConditions,
    state: Tournament,
    notes: Sequence[str],
) -> HeadToHead:
    teams, result = game.spec.num_teams, next(iter(state.results().values()), None)
    rows = []
    for place, one in enumerate(contenders):
        score = result.score(place) if result is not None and teams > 1 else None
        by_team = result.by_team(place) if result is not None and teams > 1 else ()
        returned = None if result is None else result.mean_return(place)
        rows.append(ContenderRow(one.name, one.identity, one.reason, score, by_team, returned, state.aborted[place]))
    pairs = [
        PairCount(contenders[i].name, contenders[j].name, *((0, 0, 0) if result is None else result.counts(i, j)))
        for i, j in itertools.combinations(range(len(contenders)), 2)
    ]
    first = rows[0].score if teams == 2 else None
    elo = None if first is None else Interval(elo_of(first.value), elo_of(first.low), elo_of(first.high))
    failing = [one.name for place, one in enumerate(contenders) if state.is_retired(place)][:1]
    remarks = [f"{name} failed in {MAX_FAILURES} games or more, which ended the match" for name in failing]
    return HeadToHead(
        env_id=game.env.id,
        conditions=conditions,
        games=0 if result is None else result.games,
        contenders=tuple(rows),
        pairs=tuple(pairs),
        elo=elo,
        sprt=next((row.test for row in state.tests()), None),
        mean_steps=0.0 if result is None else result.mean_steps,
        notes=(*notes, *remarks),
    )


def head_to_head_lines(report: HeadToHead) -> list[str]:
    """The match for people."""
    how = how_networks_act(report.conditions)
    lines = [f"{report.env_id}: {report.games:,} games, {how}, {report.mean_steps:.1f} turns a game"]
    width = max(len(row.name) for row in report.contenders)
    for row in report.contenders:
        shown = [] if row.score is None else [f"score {_shown(row.score, '.3f')}"]
        shown += [] if row.mean_return is None else [f"mean return {_shown(row.mean_return, '.3g')}"]
        shown += [f"{row.aborted} games aborted"] if row.aborted else []
        lines.append(f"  {row.name:<{width}}  {', '.join(shown) or 'no game counted'}")
    lines += [
        f"  {pair.home} - {pair.away}: {pair.wins} won, {pair.draws} drawn, {pair.losses} lost" for pair in report.pairs
    ]
    if report.elo is not None:
        lines.append(f"  Elo of {report.contenders[0].name}: {_shown(report.elo, '+.0f')}")
    if report.sprt is not None:
        lines.append(f"  SPRT: {report.sprt.text}")
    lines += [f"  {row.name}: {row.reason}" for row in report.contenders]
    return [*lines, *(f"  {note}" for note in report.notes)]


def head_to_head_csv(report: HeadToHead) -> str:
    """A line for each contender."""
    rows = []
    for row in report.contenders:
        score = (None,) * 3 if row.score is None else (row.score.value, row.score.low, row.score.high)
        returned = None if row.mean_return is None else row.mean_return.value
        rows.append([row.name, row.identity, report.games, *score, returned, row.aborted])
    return TextTable(("name", "identity", "games", "score", "low", "high", "mean_return", "aborted"), rows).csv()


def _shown(value: Interval, form: str) -> str:
    return f"{value.value:{form}} [{value.low:{form}}, {value.high:{form}}]"
