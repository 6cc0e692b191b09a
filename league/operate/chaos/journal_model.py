"""A small model of a league's journal: what an outside reader may rely on, event by event.

It knows leases, directives and sums, and nothing of matchmaking, ratings or gates. The league's own state is held
against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from league.core.state.events import (
    CheckpointSaved,
    DirectiveDropped,
    DirectiveIssued,
    LeaseExpired,
    LeaseFinished,
    LeaseGranted,
    PlayerReset,
    PlayerTransplanted,
    RunStarted,
    RunStopped,
    SettingsChanged,
    SnapshotAdded,
)
from league.core.state.records import Directive, Lease
from league.core.state.state import LeagueState


@dataclass
class JournalModel:
    """The fold of a journal as an outside reader knows it.

    Fields:
      note: takes one sentence on each rule that is broken.
      seq: number of the last event. token: of the last start. running: whether a run is active.
      leases: open ones by id. over: lease id -> how it ended. directives: open ones by id. done: directive id -> how it
        ended.
      resets: player -> directive of its last reset, None once a transplant brought weights of another player.
      restart_states: player -> digest of its newest one.
      games, env_steps, finished, expired: sums over the leases.
    """

    note: Callable[[str], object]
    seq: int = 0
    token: int = 0
    running: bool = False
    leases: dict[int, Lease] = field(default_factory=dict)
    over: dict[int, str] = field(default_factory=dict)
    directives: dict[int, Directive] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)
    resets: dict[str, int | None] = field(default_factory=dict)
    restart_states: dict[str, str] = field(default_factory=dict)
    changes: dict[int, SettingsChanged] = field(default_factory=dict)
    games: int = 0
    env_steps: int = 0
    finished: int = 0
    expired: int = 0

    def advance(self, events: Iterable[tuple[int, object]]) -> None:
        """Fold further events, with their numbers."""
        for seq, event in events:
            self._require(seq == self.seq + 1, f"event {seq} follows event {self.seq}")
            self.seq = seq
            self._fold(event)

    def compare(self, state: LeagueState) -> None:
        """Hold the league's state against the model."""
        totals = state.totals
        pairs = {
            "open leases": (state.leases, self.leases),
            "open directives": (state.directives, self.directives),
            "token": (state.token, self.token),
            "games": (totals.games, self.games),
            "env steps": (totals.env_steps + totals.settling_steps, self.env_steps),
            "finished leases": (totals.leases_finished, self.finished),
            "expired leases": (totals.leases_expired, self.expired),
        }
        for name, (said, known) in pairs.items():
            self._require(said == known, f"{name} at event {self.seq}: the league says {said}, its journal {known}")

    def _fold(self, event: object) -> None:
        if isinstance(event, RunStarted | RunStopped):
            self._require(not self.leases, f"event {self.seq} leaves leases open: {list(self.leases)}")
            self._require(
                event.token == self.token + isinstance(event, RunStarted), f"event {self.seq}: token {event.token}"
            )
            self.token, self.running = event.token, isinstance(event, RunStarted)
        elif isinstance(event, LeaseGranted):
            self._grant(event.lease)
        elif isinstance(event, LeaseFinished):
            self._end_lease(event.lease_id, event.token, "finished")
            self.finished += 1
            self.env_steps += event.env_steps
            self.games += sum(outcome.games for outcome in event.outcomes)
        elif isinstance(event, LeaseExpired):
            self._end_lease(event.lease_id, None, "expired")
            self.expired += 1
        elif isinstance(event, DirectiveIssued):
            number = event.directive.directive_id
            self._require(
                number not in self.directives and number not in self.done, f"directive {number} is issued twice"
            )
            self.directives[number] = event.directive
        elif isinstance(event, SnapshotAdded | PlayerReset | PlayerTransplanted | DirectiveDropped):
            self._end_directive(event)
        elif isinstance(event, CheckpointSaved):
            self.restart_states[event.player] = event.digest
        elif isinstance(event, SettingsChanged):
            self.changes[self.seq] = event

    def _grant(self, lease: Lease) -> None:
        self._require(self.running and lease.token == self.token, f"lease {lease.lease_id} has token {lease.token}")
        self._require(
            lease.lease_id not in self.over and lease.lease_id not in self.leases, f"lease {lease.lease_id} comes twice"
        )
        holder = next((other.lease_id for other in self.leases.values() if other.host == lease.host), None)
        self._require(holder is None, f"{lease.host} gets lease {lease.lease_id} while it works on lease {holder}")
        self.leases[lease.lease_id] = lease

    def _end_lease(self, lease_id: int, token: int | None, how: str) -> None:
        lease = self.leases.pop(lease_id, None)
        if lease is None:
            before = self.over.get(lease_id)
            had = f"and had {before}" if before else "and was not granted"
            self.note(f"event {self.seq}: lease {lease_id} {how}, {had}")
        else:
            self._require(
                token in (None, lease.token), f"lease {lease_id} of run {lease.token} was answered under token {token}"
            )
        self.over[lease_id] = how

    def _end_directive(self, event: SnapshotAdded | PlayerReset | PlayerTransplanted | DirectiveDropped) -> None:
        number, how = event.directive_id, type(event).__name__
        directive = self.directives.pop(number, None)
        self._require(
            directive is not None, f"directive {number} ends by {how}, and had ended by {self.done.get(number)}"
        )
        self.done[number] = how
        if isinstance(event, PlayerReset):
            self.resets[event.player] = number
            self.restart_states.pop(event.player, None)
        elif isinstance(event, PlayerTransplanted):
            self.resets[event.player] = None
            self.restart_states[event.player] = event.digest

    def _require(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.note(sentence)
