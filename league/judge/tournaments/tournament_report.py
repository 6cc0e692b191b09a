"""The report of a tournament: standings on one scale, scores of all pairings, as a record, lines and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from league.core.state.records import is_bot
from league.json_report import JsonReport
from league.judge.matches.contest import MAX_FAILURES, ContestConditions, how_networks_act
from league.judge.matches.match_result import Interval
from league.judge.matches.sprt import SprtRow
from league.judge.tournaments.formats import ladder_order, swiss_points
from league.judge.tournaments.records import Enrolled, TournamentConfig, TournamentCreated
from league.judge.tournaments.standings import ELO, RETURN, Anchor, scale_of, scores_between, standings
from league.judge.tournaments.tournament import Tournament
from league.text_table import TextTable
from league.wording import counted

FIRST_ANCHOR = "bot:random"
PAIRS = ("pairs_0", "pairs_1/4", "pairs_1/2", "pairs_3/4", "pairs_1")
"""Columns of the pairs of games by the mean score of the first."""


@dataclass(frozen=True)
class ContenderStanding:
    """One contender, from the top of the table down.

    Fields:
      name, identity, reason: as of `Contender`.
      rating: on the scale of the report, with its 95 % interval; None without a game.
      games, score, aborted, retired: as of `Standing`.
      points: of a Swiss tournament; None in other formats.
      rung: place on a ladder, from 1; None in other formats.
    """

    name: str
    identity: str
    reason: str
    rating: Interval | None
    games: int
    score: float | None
    aborted: int
    retired: bool
    points: float | None = None
    rung: int | None = None


@dataclass(frozen=True)
class PairTestRow:
    """The sequential test of a pairing.

    Fields:
      round: from 1. home, away: the contenders, the test being on the strength of home over away.
      games: that count. test: what it says.
    """

    round: int
    home: str
    away: str
    games: int
    test: SprtRow


@dataclass(frozen=True)
class TournamentReport(JsonReport):
    """A tournament as far as it has been played. It holds no times: the same games make the same report.

    Fields:
      env_id, env_kwargs: the game. config: the settings. greedy: as it was decided.
      scale: "elo", "skill" (openskill's mu) or "return". anchor: contender whose rating is fixed; "" on returns.
      rounds: that have ended. games: that were played.
      standings: highest rating first.
      scores: [C][C] score of the row's against the column's contender, both in the order of the standings.
      tests: of every pairing, round by round; empty where none was asked for.
    """

    must_be_finite: ClassVar[bool] = True

    env_id: str
    env_kwargs: dict[str, object]
    config: TournamentConfig
    greedy: bool
    scale: str
    anchor: str
    rounds: int
    games: int
    standings: tuple[ContenderStanding, ...]
    scores: tuple[tuple[float | None, ...], ...]
    tests: tuple[PairTestRow, ...] = ()


def report_of(created: TournamentCreated, state: Tournament, *, teams: int) -> TournamentReport:
    """The report of a tournament as it stands."""
    config, contenders, results = created.config, created.contenders, state.results()
    anchor = _anchor_of(config, contenders)
    rows = standings(
        results,
        contenders=len(contenders),
        teams=teams,
        anchor=anchor,
        aborted=state.aborted,
        most=MAX_FAILURES,
    )
    order = [row.place for row in rows]
    points = swiss_points(len(contenders), state.closed_rounds) if config.format == "swiss" else None
    ladder = ladder_order(len(contenders), state.closed_rounds) if config.format == "ladder" else None
    scores = scores_between(results, len(contenders))
    return TournamentReport(
        env_id=created.env_id,
        env_kwargs=created.env_kwargs,
        config=config,
        greedy=created.greedy,
        scale=scale_of(teams),
        anchor="" if scale_of(teams) == RETURN else contenders[anchor.place].name,
        rounds=state.round,
        games=state.games_played,
        standings=tuple(
            ContenderStanding(
                name=contenders[row.place].name,
                identity=contenders[row.place].identity,
                reason=contenders[row.place].reason,
                rating=row.rating,
                games=row.games,
                score=row.score,
                aborted=row.aborted,
                retired=row.retired,
                points=None if points is None else points[row.place],
                rung=None if ladder is None else ladder.index(row.place) + 1,
            )
            for row in rows
        ),
        scores=tuple(tuple(scores[first][second] for second in order) for first in order),
        tests=tuple(
            PairTestRow(
                round=row.round + 1,
                home=contenders[row.lineup[0]].name,
                away=contenders[row.lineup[1]].name,
                games=row.games,
                test=row.test,
            )
            for row in state.tests()
        ),
    )


def tournament_head(report: TournamentReport) -> str:
    """One line on what was played."""
    how = how_networks_act(ContestConditions(greedy=report.greedy, search=report.config.search))
    fixed = f", {report.anchor} at {report.config.anchor_elo:g}" if report.anchor else ""
    return f"{report.env_id}: {report.config.format}, {counted(report.games, 'game')}, {how}{fixed}"


def table_of(report: TournamentReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column heads and rows of the standings as text."""
    form = "+.0f" if report.scale == ELO else ".3g"
    own = [name for name in ("points", "rung") if any(getattr(row, name) is not None for row in report.standings)]
    aborted = ["aborted"] if any(row.aborted for row in report.standings) else []
    decided = _decided_tests(report)
    tested = ["decided"] if report.config.sprt is not None else []
    heads = ("#", "contender", report.scale, "95 % interval", "score", "games", *own, *tested, *aborted)
    rows = []
    for number, row in enumerate(report.standings, 1):
        rating = row.rating
        rows.append(
            (
                str(number),
                row.name + (" (retired)" if row.retired else ""),
                "" if rating is None else f"{rating.value:{form}}",
                "" if rating is None else f"{rating.low:{form}} to {rating.high:{form}}",
                "" if row.score is None else f"{row.score:.3f}",
                f"{row.games:,}",
                *(f"{getattr(row, name):g}" for name in own),
                *(decided.get(row.name, "0 of 0") for _ in tested),
                *(str(row.aborted) for _ in aborted),
            )
        )
    return heads, rows


def tournament_lines(report: TournamentReport) -> list[str]:
    """The standings for people."""
    heads, rows = table_of(report)
    lines = [tournament_head(report), *TextTable(heads, rows, left=(1,)).lines()]
    return [*lines, *(f"{name_of_test(row)}: {counted(row.games, 'game')}, {row.test.text}" for row in report.tests)]


def name_of_test(row: PairTestRow) -> str:
    """The pairing of a test for people, with its round where there are several."""
    return f"SPRT {row.home} - {row.away}" + (f", round {row.round}" if row.round > 1 else "")


def tournament_csv(report: TournamentReport) -> str:
    """A line for each contender, its scores against all others after the standings' columns."""
    names = [row.name for row in report.standings]
    rows = []
    for row, scores in zip(report.standings, report.scores, strict=True):
        rating = (None,) * 3 if row.rating is None else (row.rating.value, row.rating.low, row.rating.high)
        rows.append([row.name, row.identity, *rating, row.score, row.games, row.aborted, *scores])
    heads = ["name", "identity", report.scale, "low", "high", "score", "games", "aborted", *names]
    return TextTable(heads, rows).csv()


def sprt_csv(report: TournamentReport) -> str:
    """A line for each sequential test."""
    heads = ["round", "home", "away", "games", *PAIRS, "ratio", "lower", "upper", "decision"]
    rows = []
    for row in report.tests:
        test = row.test
        bounds = (test.ratio, test.lower, test.upper)
        rows.append([row.round, row.home, row.away, row.games, *test.pairs, *bounds, test.decision])
    return TextTable(heads, rows).csv()


def _decided_tests(report: TournamentReport) -> dict[str, str]:
    """Contender -> how many of its tests have decided."""
    tests = [(name, bool(row.test.decision)) for row in report.tests for name in (row.home, row.away)]
    names = dict.fromkeys(name for name, _ in tests)
    counts = {name: [decided for one, decided in tests if one == name] for name in names}
    return {name: f"{sum(decided)} of {len(decided)}" for name, decided in counts.items()}


def _anchor_of(config: TournamentConfig, contenders: Sequence[Enrolled]) -> Anchor:
    """The anchor that was given, else random play, else the first bot, else the first contender."""
    names = [one.name for one in contenders]
    if config.anchor:
        return Anchor(names.index(config.anchor), config.anchor_elo)
    bots = [place for place, name in enumerate(names) if is_bot(name)]
    first = names.index(FIRST_ANCHOR) if FIRST_ANCHOR in names else bots[0] if bots else 0
    return Anchor(first, config.anchor_elo)
