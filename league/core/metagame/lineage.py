"""Lineage: each snapshot's parent, the reason for it and its opponent mix, as a graph folded from a league's events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from league.core.state.events import (
    DirectiveIssued,
    Event,
    Evidence,
    LeagueForked,
    LeagueRewound,
    LeaseFinished,
    LeaseGranted,
    PlayerAdded,
    PlayerReset,
    PlayerTransplanted,
    PolicyImported,
    SnapshotAdded,
)
from league.core.state.records import Hyperparameter, SnapshotInfo

Kind = Literal["first", "trained", "reset", "transplant", "outside"]
"""The origin of a snapshot: training on, training after a reset, or another player's weights."""


@dataclass(frozen=True)
class OpponentGames:
    """Games against one opponent. score: wins and half the draws."""

    opponent: str
    games: int
    score: float


@dataclass(frozen=True)
class LineageNode:
    """A snapshot and where it comes from.

    Fields:
      snapshot: id. player, role: who made it; empty for one from outside. reason: why it was taken.
      parent: snapshot that its weights descend from. kind: how.
      donor: player whose weights were copied since the parent, where one was.
      version, trained_steps: its player's progress.
      hyperparameters: its player's PBT values when it was taken.
      changes: (name, before, after) of those that differ from the parent's.
      opponent_mix: games of its player since the snapshot before it, most games first.
      evidence: what the gate saw when it asked for the snapshot, hardest opponents first; empty where none asked.
      gate_opponents: how many it judged.
    """

    snapshot: str
    player: str
    role: str
    reason: str
    parent: str | None
    kind: Kind
    donor: str | None
    version: int
    trained_steps: int
    hyperparameters: tuple[Hyperparameter, ...]
    changes: tuple[tuple[str, float | None, float | None], ...]
    opponent_mix: tuple[OpponentGames, ...]
    evidence: tuple[Evidence, ...] = ()
    gate_opponents: int = 0


@dataclass(frozen=True)
class Fork:
    """The league was taken over from another run. after: number of the snapshots that came from there."""

    run: str
    event: int
    after: int


@dataclass(frozen=True)
class Rewind:
    """The league was taken back to `event`. set_aside: where what came after it lies; after: as of `Fork`."""

    event: int
    set_aside: str
    after: int


@dataclass(frozen=True)
class Lineage:
    """All snapshots in the order in which they came, the forks, and the rewinds."""

    descents: tuple[LineageNode, ...]
    forks: tuple[Fork, ...]
    rewinds: tuple[Rewind, ...] = ()

    def line_of(self, snapshot: str) -> Lineage:
        """The snapshot, its parent, the parent's parent and so on to the first, alone.

        Raises:
          KeyError: there is no such snapshot.
        """
        parents = {descent.snapshot: descent.parent for descent in self.descents}
        line: set[str] = set()
        ancestor: str | None = snapshot
        while ancestor is not None:
            line.add(ancestor)
            ancestor = parents[ancestor]
        return Lineage(tuple(descent for descent in self.descents if descent.snapshot in line), forks=())

    @property
    def opponent_mix(self) -> tuple[OpponentGames, ...]:
        """The opponents met by all of it, most games first."""
        games: Counter[str] = Counter()
        score: Counter[str] = Counter()
        for descent in self.descents:
            for met in descent.opponent_mix:
                games[met.opponent] += met.games
                score[met.opponent] += met.score  # type: ignore[assignment]  # a Counter adds floats as well
        return tuple(OpponentGames(name, count, float(score[name])) for name, count in games.most_common())


@dataclass
class _Present:
    """Events of a player since its last snapshot."""

    kind: Kind = "first"
    donor: str | None = None
    hyperparameters: tuple[Hyperparameter, ...] = ()
    games: Counter[str] = field(default_factory=Counter)
    score: dict[str, float] = field(default_factory=dict)


class LineageFold:
    """The lineage of a league as its events come; `take` each of them once, in order."""

    def __init__(self) -> None:
        self._players: dict[str, _Present] = {}
        self._homes: dict[int, str] = {}
        self._directives: dict[int, DirectiveIssued] = {}
        self._descents: dict[str, LineageNode] = {}
        self._forks: list[Fork] = []
        self._rewinds: list[Rewind] = []
        self._teams: tuple[int, ...] = ()

    @property
    def lineage(self) -> Lineage:
        """The lineage up to the last event."""
        return Lineage(tuple(self._descents.values()), tuple(self._forks), tuple(self._rewinds))

    def take(self, event: Event) -> None:
        """Fold one event."""
        if isinstance(event, PlayerAdded):
            self._players[event.player] = _Present(hyperparameters=event.hyperparameters)
        elif isinstance(event, LeaseGranted) and event.lease.home is not None:
            self._homes[event.lease.lease_id] = event.lease.home
        elif isinstance(event, LeaseFinished) and event.lease_id in self._homes:
            home = self._homes.pop(event.lease_id)
            _eat(self._players[home], home, event, self._teams)
        elif isinstance(event, PlayerReset):
            self._players[event.player].kind, self._players[event.player].donor = "reset", None
        elif isinstance(event, PlayerTransplanted):
            present = self._players[event.player]
            present.kind, present.donor, present.hyperparameters = "transplant", event.donor, event.hyperparameters
        elif isinstance(event, DirectiveIssued):
            self._directives[event.directive.directive_id] = event
        elif isinstance(event, SnapshotAdded):
            _descend(event.snapshot, self._directives.pop(event.directive_id), self._players, self._descents)
        elif isinstance(event, PolicyImported):
            self._descents[event.snapshot.snapshot_id] = _imported(event.snapshot)
        elif isinstance(event, LeagueForked):
            self._forks.append(Fork(event.run, event.event, len(self._descents)))
        elif isinstance(event, LeagueRewound):
            self._rewinds.append(Rewind(event.event, event.set_aside, len(self._descents)))
        elif hasattr(event, "teams"):
            self._teams = event.teams


def lineage_of(events: Iterable[Event]) -> Lineage:
    """The lineage of a league from all its events."""
    fold = LineageFold()
    for event in events:
        fold.take(event)
    return fold.lineage


def _eat(present: _Present, home: str, event: LeaseFinished, teams: tuple[int, ...]) -> None:
    """Records the games of a lease."""
    for met in opponents_met(home, event, teams):
        present.games[met.opponent] += met.games
        present.score[met.opponent] = present.score.get(met.opponent, 0.0) + met.score


def opponents_met(home: str, event: LeaseFinished, teams: tuple[int, ...]) -> Iterator[OpponentGames]:
    """The games of a player's lease: against each opponent once, however many seats of a team it holds.

    Args:
      teams: [num_seats] team number of each seat.
    """
    for outcome in event.outcomes:
        if not outcome.games or home not in outcome.policies:
            continue
        seat = outcome.policies.index(home)
        met = {
            policy: opponent
            for opponent, policy in enumerate(outcome.policies)
            if teams[opponent] != teams[seat] and policy != home
        }
        if not met and len(set(teams)) > 1:
            yield OpponentGames(home, outcome.games, 0.5 * outcome.games)
        for policy, opponent in met.items():
            won = outcome.wins[seat][opponent] + 0.5 * outcome.draws[seat][opponent]
            yield OpponentGames(policy, outcome.games, won)


def _descend(
    snapshot: SnapshotInfo, asked: DirectiveIssued, players: dict[str, _Present], descents: dict[str, LineageNode]
) -> None:
    present = players[snapshot.player]
    kind: Kind = "first" if snapshot.parent is None else "trained" if present.kind == "first" else present.kind
    parent = descents.get(snapshot.parent) if snapshot.parent is not None else None
    descents[snapshot.snapshot_id] = LineageNode(
        snapshot=snapshot.snapshot_id,
        player=snapshot.player,
        role=snapshot.role,
        reason=snapshot.reason,
        parent=snapshot.parent,
        kind=kind,
        donor=present.donor,
        version=snapshot.version,
        trained_steps=snapshot.trained_steps,
        hyperparameters=present.hyperparameters,
        changes=() if parent is None else _changes(parent.hyperparameters, present.hyperparameters),
        opponent_mix=tuple(
            OpponentGames(name, games, present.score[name])
            for name, games in sorted(present.games.items(), key=_most_first)
        ),
        evidence=asked.evidence,
        gate_opponents=asked.gate_opponents,
    )
    players[snapshot.player] = _Present(kind="trained", hyperparameters=present.hyperparameters)


def _imported(snapshot: SnapshotInfo) -> LineageNode:
    return LineageNode(
        snapshot.snapshot_id,
        player="",
        role="",
        reason=snapshot.reason,
        parent=None,
        kind="outside",
        donor=None,
        version=snapshot.version,
        trained_steps=snapshot.trained_steps,
        hyperparameters=(),
        changes=(),
        opponent_mix=(),
    )


def _changes(
    before: tuple[Hyperparameter, ...], after: tuple[Hyperparameter, ...]
) -> tuple[tuple[str, float | None, float | None], ...]:
    old = {item.name: item.value for item in before}
    new = {item.name: item.value for item in after}
    return tuple((name, old.get(name), new.get(name)) for name in (old | new) if old.get(name) != new.get(name))


def _most_first(met: tuple[str, int]) -> tuple[int, str]:
    return -met[1], met[0]
