"""Everything that the static report shows of runs: read once, written as HTML, Markdown, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec

from league.config.yaml import parse_yaml
from league.core.metagame.lineage import lineage_of
from league.core.metagame.ratings import league_ratings
from league.core.state.events import EVENTS, Event
from league.core.state.state import LeagueState
from league.run.monitor.jsonl_sink import MetricRow, decode_row
from league.see.reports.figures.comparison import Comparison, comparison
from league.see.reports.figures.curves import Curve, PlayerCurves, player_curves, run_curves, series_of
from league.see.reports.figures.lineage_graph import LineageGraph, lineage_graph
from league.see.reports.figures.meta_game import MetaGame, meta_game
from league.see.reports.figures.opponent_mix import OpponentMix, opponent_mix
from league.see.reports.figures.payoff_matrix import PayoffMatrix, payoff_matrix
from league.see.reports.figures.ratings_over_time import RatingsOverTime, ratings_over_time
from league.see.reports.figures.yardsticks import YardstickFigures, yardsticks
from league.store.journal_reader import JournalReader
from league.store.journaled_league import read_state
from league.store.run_folder import RunFolder
from league.version import __version__

SCHEMA = 1
MAX_PLAYERS = 8
"""Players whose curves and opponents are shown; of more, those that have trained most."""
MAX_METRICS_BYTES = 32 << 20
"""Newest part of metrics.jsonl that is read."""


class RunFigures(msgspec.Struct, frozen=True):
    """One run.

    Fields:
      run: its folder. name: short, unique among the runs of the report. phase: "running", "stopped" or the like.
      live: whether its daemon runs. games, env_steps, players, snapshots: of the league. events: in its journal.
      curves: of the whole run. player_curves, mixes: of the players that have trained most.
    """

    run: str
    name: str
    phase: str
    live: bool
    games: int
    env_steps: int
    players: int
    snapshots: int
    events: int
    ratings: RatingsOverTime
    payoff: PayoffMatrix
    lineage: LineageGraph
    meta_game: MetaGame
    yardsticks: YardstickFigures
    curves: tuple[Curve, ...]
    player_curves: tuple[PlayerCurves, ...]
    mixes: tuple[OpponentMix, ...]


class Report(msgspec.Struct, frozen=True):
    """The whole report. made_at: seconds since 1970. comparison: None for a single run."""

    schema: int
    version: str
    made_at: float
    runs: tuple[RunFigures, ...]
    comparison: Comparison | None

    def to_json(self) -> str:
        """As one JSON object."""
        return msgspec.json.encode(self).decode()


def read_report(paths: Sequence[Path], *, now: float) -> Report:
    """The figures of runs, also of live ones.

    Args:
      now: seconds since 1970.
    Raises:
      MissingRun, JournalError, StorageError. ConfigError: a config.yaml is no YAML.
    """
    folders = [RunFolder.open(path) for path in paths]
    names = _short_names(paths)
    runs = tuple(_run_figures(folder, name) for folder, name in zip(folders, names, strict=True))
    both = None
    if len(runs) > 1:
        plain = [parse_yaml(folder.read_config(), source=str(folder.config_path)) for folder in folders]
        both = comparison([(run.name, config, run.curves) for run, config in zip(runs, plain, strict=True)])
    return Report(SCHEMA, __version__, now, runs, both)


def _run_figures(folder: RunFolder, name: str) -> RunFigures:
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal, journal.one_moment():
        state, events = read_state(journal), journal.head().seq
        lineage = lineage_of(cast(Event, event) for _, event in journal.replay())
    account = folder.account()
    ratings, series = league_ratings(state), series_of(metric_rows(folder.metrics_path))
    players = most_trained(state, MAX_PLAYERS)
    return RunFigures(
        run=str(folder.path),
        name=name,
        phase=account.status.phase,
        live=account.live,
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        players=len(state.players),
        snapshots=len(state.snapshots),
        events=events,
        ratings=ratings_over_time(state, ratings),
        payoff=payoff_matrix(state, ratings),
        lineage=lineage_graph(lineage, ratings),
        meta_game=meta_game(state, ratings),
        yardsticks=yardsticks(state),
        curves=run_curves(series),
        player_curves=tuple(player_curves(series, player) for player in players),
        mixes=tuple(opponent_mix(lineage, player) for player in players),
    )


def most_trained(state: LeagueState, most: int) -> tuple[str, ...]:
    """The players that have trained most, in the order in which they came."""
    ordered = sorted(state.players.values(), key=lambda player: -player.trained_steps)[:most]
    chosen = {player.name for player in ordered}
    return tuple(name for name in state.players if name in chosen)


def metric_rows(path: Path) -> Iterator[MetricRow]:
    """Rows of metrics.jsonl, oldest first, of its newest part where it is large; none where there is no file."""
    try:
        with path.open("rb") as file:
            start = max(file.seek(0, 2) - MAX_METRICS_BYTES, 0)
            file.seek(start)
            if start:
                file.readline()
            for line in file:
                row = decode_row(line)
                if row is not None:
                    yield row
    except FileNotFoundError:
        return


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path; the whole path where two end alike."""
    last = [path.resolve().name for path in paths]
    return [name if last.count(name) == 1 else str(path) for name, path in zip(last, paths, strict=True)]
