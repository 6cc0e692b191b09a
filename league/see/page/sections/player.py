"""One player: how it learns, whom it meets, and why its snapshots were taken.

Shape letter: C opponents met.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from league.core.state.events import (
    DirectiveIssued,
    Evidence,
    PlayerReset,
    PlayerTransplanted,
    SettingsChanged,
    SnapshotAdded,
)
from league.core.state.payoff import GAMES
from league.core.state.population import PLAYER, SNAPSHOT
from league.core.state.records import Hyperparameter
from league.core.state.state import LeagueState, PlayerState
from league.errors import LeagueError, nearest
from league.run.monitor import names
from league.run.monitor.names import Metric
from league.run.monitor.run_view import gate_view
from league.run.monitor.view import GateView
from league.see.page.runs.event_text import change_text, event_text
from league.see.page.runs.journal_fold import NotableEvent
from league.see.page.runs.metric_history import MetricSeries
from league.see.page.runs.opened_run import OpenedRun

CHARTS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("Loss", (names.LOSS_POLICY, names.LOSS_VALUE)),
    ("Entropy, nats", (names.ENTROPY,)),
    ("Policy lag, updates", (names.LAG_MEAN, names.LAG_MAX)),
    ("Clipped fraction and sample size", (names.RHO_CLIP_FRACTION, names.EFFECTIVE_SAMPLE_FRACTION)),
    ("Divergence, nats", (names.KL, names.TEACHER_KL)),
    ("Gradient norm", (names.GRADIENT_NORM,)),
    ("Step size", (names.LEARNING_RATE,)),
    ("Entropy cost", (names.ENTROPY_COST,)),
    ("Return and score of its last games", (names.RETURN_MEAN, names.SCORE)),
    ("Decisions of an episode", (names.EPISODE_LENGTH,)),
    ("Rating, Elo", (names.RATING,)),
)
"""Charts with their metrics; a metric that was never reported is left out."""

MAX_OPPONENTS = 40
MAX_EVENTS = 30


class PlayerQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of player; empty for the first."""

    player: str = ""


class MetricLine(msgspec.Struct, frozen=True):
    """One metric over time. label: of the metric without its player; meaning: for people."""

    label: str
    meaning: str
    series: MetricSeries


class Chart(msgspec.Struct, frozen=True):
    """Metrics that are drawn together."""

    title: str
    lines: tuple[MetricLine, ...]


class OpponentRow(msgspec.Struct, frozen=True):
    """Games of the player against one opponent.

    Fields:
      kind: "itself", "player", "snapshot" or "fixed". games: ever. weight: of them now, as learning players move on.
      win_rate, lower: posterior mean and its lower 5 % bound, which matchmaking and gates go by.
    """

    name: str
    kind: str
    games: int
    weight: float
    win_rate: float
    lower: float


class GateTrial(msgspec.Struct, frozen=True):
    """A snapshot that a gate asked for, with the evidence that it saw, hardest opponents first."""

    seq: int
    wall_time: float
    reason: str
    opponents: int
    evidence: tuple[Evidence, ...]


class PlayerChange(msgspec.Struct, frozen=True):
    """An event in the player's life. text: one sentence."""

    seq: int
    wall_time: float
    kind: str
    text: str


class PlayerSection(msgspec.Struct, frozen=True):
    """One player.

    Fields:
      players: names of all, for the choice. mix: kind of opponent -> fraction of its games as they weigh now.
      met: opponents met; opponents: those that weigh most. gate: its distance from the next snapshot.
      trials, changes: newest first. is_whole: False while older events are still being read.
    """

    player: str
    role: str
    players: tuple[str, ...]
    version: int
    trained_steps: int
    lost_steps: int
    games: int
    snapshots: int
    resets: int
    parent: str | None
    state: str
    hyperparameters: tuple[Hyperparameter, ...]
    charts: tuple[Chart, ...]
    mix: dict[str, float]
    met: int
    opponents: tuple[OpponentRow, ...]
    gate: GateView | None
    trials: tuple[GateTrial, ...]
    changes: tuple[PlayerChange, ...]
    is_whole: bool


def read(run: OpenedRun, query: PlayerQuery) -> PlayerSection:
    """A player of a run.

    Raises:
      LeagueError: there is none of that name.
    """
    state = run.state
    name = query.player or next(iter(state.players), "")
    player = state.players.get(name)
    if player is None:
        raise LeagueError(f"the league has no player {name!r}{nearest(name, state.players)}")
    opponents = _opponents(state, player)
    own = [event for event in run.notable if _is_of(event, name)]
    return PlayerSection(
        player=name,
        role=player.role,
        players=tuple(state.players),
        version=player.version,
        trained_steps=player.trained_steps,
        lost_steps=player.lost_steps,
        games=player.games,
        snapshots=player.num_snapshots,
        resets=player.generation,
        parent=player.parent,
        state="retired" if player.retired else "paused" if player.paused else "learns",
        hyperparameters=player.hyperparameters,
        charts=tuple(_charts(run, name)),
        mix=_mix(opponents),
        met=len(opponents),
        opponents=tuple(opponents[:MAX_OPPONENTS]),
        gate=gate_view(state, player),
        trials=tuple(_trials(own))[: -MAX_EVENTS - 1 : -1],
        changes=tuple(_changes(own, name))[: -MAX_EVENTS - 1 : -1],
        is_whole=run.has_history,
    )


def _charts(run: OpenedRun, player: str) -> Iterator[Chart]:
    for title, metrics in CHARTS:
        found = [(metric, run.metrics.series(metric.of(player))) for metric in metrics]
        lines = tuple(
            MetricLine(metric.name.rpartition("/")[2], metric.meaning, series)
            for metric, series in found
            if series.steps
        )
        if lines:
            yield Chart(title, lines)


def _opponents(state: LeagueState, player: PlayerState) -> list[OpponentRow]:
    """Everyone that the player has met, those whose games weigh most first."""
    payoff, population = state.payoff, state.population
    cells = payoff.cells_of(player.policy)
    if not len(cells):
        return []
    clock = population.staleness_clock.values
    away = payoff.away[cells]
    weights = payoff.present(cells, clock)[:, GAMES]
    games = payoff.totals_of(cells).sum(axis=(1, 2))
    known = payoff.posterior(player.policy, clock).take(away.astype(np.int64))
    kinds = population.kind.values[away]
    order = np.lexsort((away, -games, -weights)).tolist()
    return [
        OpponentRow(
            population.names[int(away[i])],
            _kind(int(kinds[i]), is_own=int(away[i]) == player.policy),
            int(games[i]),
            float(weights[i]),
            float(known.mean[i]),
            float(known.lower[i]),
        )
        for i in order
    ]


def _kind(kind: int, *, is_own: bool) -> str:
    return "itself" if is_own else {PLAYER: "player", SNAPSHOT: "snapshot"}.get(kind, "fixed")


def _mix(opponents: list[OpponentRow]) -> dict[str, float]:
    total = sum(opponent.weight for opponent in opponents)
    mix = dict.fromkeys(("itself", "player", "snapshot", "fixed"), 0.0)
    for opponent in opponents if total else ():
        mix[opponent.kind] += opponent.weight / total
    return mix


def _is_of(noted: NotableEvent, player: str) -> bool:
    event = noted.event
    if isinstance(event, DirectiveIssued):
        return event.directive.player == player
    if isinstance(event, SnapshotAdded):
        return event.snapshot.player == player
    if isinstance(event, PlayerReset | PlayerTransplanted):
        return event.player == player
    return isinstance(event, SettingsChanged) and any(
        change.key.startswith(f"players.{player}.") for change in event.changes
    )


def _trials(events: list[NotableEvent]) -> Iterator[GateTrial]:
    for noted in events:
        event = noted.event
        if isinstance(event, DirectiveIssued) and event.evidence:
            yield GateTrial(
                noted.seq,
                noted.wall_time,
                event.directive.reason,
                event.gate_opponents,
                event.evidence,
            )


def _changes(events: list[NotableEvent], player: str) -> Iterator[PlayerChange]:
    for noted in events:
        event, text = noted.event, ""
        if isinstance(event, SettingsChanged):
            own = tuple(change for change in event.changes if change.key.startswith(f"players.{player}."))
            text = f"{change_text(own)}{f' by {event.by}' if event.by else ''}."
        elif not isinstance(event, DirectiveIssued):
            text = event_text(event)
        if text:
            yield PlayerChange(noted.seq, noted.wall_time, noted.kind, text)
