"""A match between contenders of any origin, with intervals; between two, a sequential test may end it early."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from league.contenders.contender import Contender, Game, UnknownContender
from league.eval.contest import MAX_FAILURES, ContestConditions, play_batch
from league.eval.match_result import Interval, MatchResult, merged
from league.eval.sprt import SprtConfig, elo_of, log_likelihood_ratio, pair_counts

BATCH_GAMES = 512
SPRT_BATCH_GAMES = 64
"""Games between two looks at the sequential test."""

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
class SprtRow:
    """The sequential test of a match.

    Fields:
      config: the hypotheses, on the first contender's strength over the second.
      pairs: [5] pairs of games in which the first scored 0, 1/4, 1/2, 3/4 and 1 on average.
      ratio: log-likelihood ratio of H1 over H0. lower, upper: where H0 or H1 is accepted.
      decision: "H0", "H1" or "" where the games ended before.
    """

    config: SprtConfig
    pairs: tuple[int, ...]
    ratio: float
    lower: float
    upper: float
    decision: str


@dataclass(frozen=True)
class HeadToHead:
    """A finished match.

    Fields:
      env_id: the game. conditions: how it was played. games: that count, without those of aborted groups.
      contenders: one row each, in the order given. pairs: each two of them.
      elo: of the first over the second, from its score; None with more than two teams.
      sprt: None where no test was asked for.
      mean_steps: mean length of a game. notes: one sentence each.
    """

    env_id: str
    conditions: ContestConditions
    games: int
    contenders: tuple[ContenderRow, ...]
    pairs: tuple[PairCount, ...]
    elo: Interval | None
    sprt: SprtRow | None
    mean_steps: float
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """The whole record as one JSON object; an Elo without bound is null."""
        plain = asdict(self)
        if self.elo is not None:
            plain["elo"] = {name: value if np.isfinite(value) else None for name, value in asdict(self.elo).items()}
        return json.dumps(plain, allow_nan=False)


def play_head_to_head(
    game: Game,
    contenders: Sequence[Contender],
    conditions: ContestConditions,
    *,
    games: int,
    sprt: SprtConfig | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> HeadToHead:
    """Play a match of at most `games` games.

    Args:
      contenders: at least one, at most one for each team; the last one takes the teams that remain.
      games: rounded up to a multiple of the teams.
      sprt: ends the match as soon as a hypothesis is accepted; for games of two teams.
      notes: sentences for the report.
    Raises:
      UnknownContender: their number does not fit the game, or a test is asked for in a game without pairs.
      LeagueError, EnvError: a contender cannot play.
    """
    teams = len(set(game.spec.teams))
    _require_fitting(game, contenders, teams, sprt)
    total = -(-games // teams) * teams
    most = (SPRT_BATCH_GAMES if sprt is not None else BATCH_GAMES) // teams * teams or teams
    parts: list[MatchResult] = []
    played, remarks, test = 0, list(notes), None

    def count(ended: int) -> None:
        nonlocal played
        played += ended
        if progress is not None:
            progress(played, total)

    for number, start in enumerate(range(0, total, most)):
        size = min(most, total - start)
        parts.append(play_batch(game, contenders, conditions, number=number, games=size, progress=count))
        result = merged(parts)
        failing = [one.name for one, lost in zip(contenders, result.aborted, strict=False) if lost >= MAX_FAILURES]
        if sprt is not None:
            test = _test(sprt, result)
        if failing:
            remarks.append(f"{failing[0]} failed in {MAX_FAILURES} games or more, which ended the match")
        if failing or (test is not None and test.decision):
            break
    return _report(game, contenders, conditions, merged(parts), test, remarks)


def _require_fitting(game: Game, contenders: Sequence[Contender], teams: int, sprt: SprtConfig | None) -> None:
    if not 1 <= len(contenders) <= teams or (teams > 1 and len(contenders) < 2):
        raise UnknownContender(
            f"{len(contenders)} contenders do not fit a match of {game.env.id}, which has {teams} teams: give"
            f" {'1' if teams == 1 else 'between 2 and ' + str(teams) if teams > 2 else '2'}, or play a tournament."
        )
    if sprt is not None and teams != 2:
        raise UnknownContender(f"--sprt needs a game of two teams, {game.env.id} has {teams}: leave it out.")


def _test(config: SprtConfig, result: MatchResult) -> SprtRow:
    pairs = pair_counts(result.group_scores[:, 0])
    ratio = float(log_likelihood_ratio(pairs, config))
    counts = tuple(int(count) for count in pairs)
    return SprtRow(config, counts, ratio, config.lower, config.upper, config.decision(ratio))


def _report(
    game: Game,
    contenders: Sequence[Contender],
    conditions: ContestConditions,
    result: MatchResult,
    test: SprtRow | None,
    notes: Sequence[str],
) -> HeadToHead:
    teams, any_played = result.wins.shape[1], result.num_groups > 0
    rows = []
    for place, one in enumerate(contenders):
        score = result.score(place) if any_played and teams > 1 else None
        by_team = result.by_team(place) if score is not None else ()
        returned = result.mean_return(place) if any_played else None
        lost = result.aborted[place] if result.aborted else 0
        rows.append(ContenderRow(one.name, one.identity, one.reason, score, by_team, returned, lost))
    pairs = [
        PairCount(contenders[i].name, contenders[j].name, *result.counts(i, j))
        for i, j in itertools.combinations(range(len(contenders)), 2)
    ]
    first = rows[0].score if teams == 2 else None
    elo = None if first is None else Interval(elo_of(first.value), elo_of(first.low), elo_of(first.high))
    mean_steps = result.mean_steps if any_played else 0.0
    return HeadToHead(
        game.env.id, conditions, result.games, tuple(rows), tuple(pairs), elo, test, mean_steps, tuple(notes)
    )


def head_to_head_lines(report: HeadToHead) -> list[str]:
    """The match for people."""
    how = "likeliest action" if report.conditions.greedy else "sampled actions"
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
        lines.append(_sprt_line(report.sprt))
    lines += [f"  {row.name}: {row.reason}" for row in report.contenders]
    return [*lines, *(f"  {note}" for note in report.notes)]


def head_to_head_csv(report: HeadToHead) -> str:
    """A line for each contender."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "identity", "games", "score", "low", "high", "mean_return", "aborted"])
    for row in report.contenders:
        score = ("", "", "") if row.score is None else (row.score.value, row.score.low, row.score.high)
        returned = "" if row.mean_return is None else row.mean_return.value
        writer.writerow([row.name, row.identity, report.games, *score, returned, row.aborted])
    return text.getvalue()


def _sprt_line(test: SprtRow) -> str:
    config = test.config
    verdict = {
        "H1": f"H1 accepted: stronger by {config.elo1:g} Elo rather than {config.elo0:g}",
        "H0": f"H0 accepted: stronger by {config.elo0:g} Elo rather than {config.elo1:g}",
        "": "undecided: more games are needed",
    }[test.decision]
    pairs = ", ".join(str(count) for count in test.pairs)
    return (
        f"  SPRT: {verdict} (log-likelihood ratio {test.ratio:.2f} in [{test.lower:.2f}, {test.upper:.2f}],"
        f" pairs {pairs})"
    )


def _shown(value: Interval, form: str) -> str:
    return f"{value.value:{form}} [{value.low:{form}}, {value.high:{form}}]"
