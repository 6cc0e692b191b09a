"""Time that each figure of a large league takes from its folded state: what the page waits for, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from benchmarks.report import Report, Row
from league.core.metagame.lineage import Lineage, LineageFold, OpponentGames
from league.core.metagame.ratings import league_ratings
from league.core.state.commands import ConfirmSnapshot, CreateLeague, ReportProgress, RequestSnapshot, StartRun
from league.core.state.events import EVENTS, Event
from league.core.state.league_config import LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.records import Progress
from league.core.state.state import LeagueState
from league.see.reports.figures.lineage_graph import MAX_LANES, lineage_graph
from league.see.reports.figures.meta_game import meta_game_inputs, solve_meta_game
from league.see.reports.figures.opponent_mix import opponent_mix
from league.see.reports.figures.payoff_matrix import MAX_POLICIES, payoff_matrix
from league.see.reports.figures.ratings_over_time import MAX_PLAYERS, ratings_over_time
from league.see.reports.figures.yardsticks import yardsticks
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague

PLAYERS, SNAPSHOTS_EACH = 1_000, 5
RESULTS = 1_000_000
GAMES = 20
TIMES = 20
OPPONENTS = 300
ROLES = ("main_agent", "main_exploiter", "league_exploiter")
BOT = "bot:random"
REQUIRED_MS = 100.0


def figures(folder: Path) -> list[Row]:
    """Longest of twenty readings of each figure, its JSON included, in processor time."""
    report = Report()
    league = large_league(folder / "journal.db")
    take_snapshots(league)
    meet(league.state, np.random.default_rng(0))
    began = time.process_time()
    ratings = league_ratings(league.state)
    size = f"{len(league.state.players):,} players, {len(league.state.snapshots):,} snapshots, {RESULTS:,} results"
    report.add(f"ratings of {size}, made beside the requests", 1e3 * (time.process_time() - began), "ms")
    fold = LineageFold()
    with JournalReader.open_readonly(folder / "journal.db", events=EVENTS) as journal:
        for _, event in journal.replay():
            fold.take(cast(Event, event))
    state, lineage = league.state, with_opponents(fold.lineage)
    player = next(iter(state.players))
    readings: dict[str, Callable[[], object]] = {
        "payoff": lambda: payoff_matrix(state, ratings),
        f"payoff, {MAX_POLICIES} policies": lambda: payoff_matrix(state, ratings, who="all", limit=MAX_POLICIES),
        "payoff by seat": lambda: payoff_matrix(state, ratings, seat=1),
        "ratings over time": lambda: ratings_over_time(state, ratings, limit=MAX_PLAYERS),
        "lineage": lambda: lineage_graph(lineage, ratings, limit=MAX_LANES),
        "meta-game": lambda: solve_meta_game(meta_game_inputs(state, ratings)),
        "opponent mix": lambda: opponent_mix(lineage, player),
        "yardsticks": lambda: yardsticks(state),
    }
    for name, read in readings.items():
        report.add(f"{name} of {size}, longest of {TIMES}", longest_ms(read), "ms", at_most=REQUIRED_MS)
    league.close()
    return report.rows


def large_league(path: Path) -> JournaledLeague:
    """A league of three roles and a rated bot, with a first snapshot of each player."""
    counts = (PLAYERS - 2 * (PLAYERS // 3), PLAYERS // 3, PLAYERS // 3)
    groups = tuple(PlayerConfig(role=role, count=count) for role, count in zip(ROLES, counts, strict=True))
    league = JournaledLeague.create(path, wall_time=lambda: 0.0)
    league.execute(CreateLeague(0, 2, (0, 1), LeagueConfig(players=groups, ratings=RatingConfig(bots=(BOT,)))))
    league.execute(StartRun())
    for directive in list(league.state.directives.values()):
        league.execute(ConfirmSnapshot(directive.directive_id, "0" * 64, 0, 0))
    league.commit()
    return league


def with_opponents(lineage: Lineage) -> Lineage:
    """The lineage with games against hundreds of opponents before each snapshot, as long training brings them."""
    met = tuple(OpponentGames(node.snapshot, GAMES, 0.5 * GAMES) for node in lineage.descents[:OPPONENTS])
    return replace(lineage, descents=tuple(replace(node, opponent_mix=met) for node in lineage.descents))


def take_snapshots(league: JournaledLeague) -> None:
    """Further snapshots of every player, each after some training."""
    for number in range(1, SNAPSHOTS_EACH):
        for name in league.state.players:
            league.execute(ReportProgress(Progress(name, number, 100_000 * number)))
            league.execute(RequestSnapshot(name, "benchmark"))
        for directive in list(league.state.directives.values()):
            steps = league.state.players[directive.player].trained_steps
            league.execute(ConfirmSnapshot(directive.directive_id, "0" * 64, number, steps))
    league.commit()


def meet(state: LeagueState, rng: np.random.Generator) -> None:
    """Games of random pairs of snapshots, entered into the payoff as results of leases are."""
    snapshots, bot = state.population.snapshots(), state.population.index[BOT]
    pairs = rng.choice(snapshots, size=(RESULTS, 2))
    pairs[: len(snapshots)] = np.stack([snapshots, np.full(len(snapshots), bot)], axis=1)  # all have met the bot
    won = rng.binomial(GAMES, 0.5, size=RESULTS)
    for (home, away), wins in zip(pairs.tolist(), won.tolist(), strict=True):
        if home != away:
            state.payoff.add(home, away, seat=0, results=(wins, 0, GAMES - wins), score=wins, now=0.0)
            state.payoff.add(away, home, seat=1, results=(GAMES - wins, 0, wins), score=GAMES - wins, now=0.0)
            state.rating_games.values[home] += GAMES
            state.rating_games.values[away] += GAMES


def longest_ms(read: Callable[[], object]) -> float:
    """Processor milliseconds of the slowest reading."""
    slowest = 0.0
    for _ in range(TIMES):
        began = time.process_time()
        msgspec.json.encode(read())
        slowest = max(slowest, time.process_time() - began)
    return 1e3 * slowest


ROWS: dict[str, Callable[[Path], list[Row]]] = {"figures": figures}
"""Name -> function that measures in an empty folder."""
