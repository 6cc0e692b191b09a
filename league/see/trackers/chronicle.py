"""The story of a league for trackers, folded from its events: gates with their evidence, opponents, roles."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from league.core.metagame.lineage import opponents_met
from league.core.state.events import (
    DirectiveIssued,
    Event,
    Evidence,
    LeagueCreated,
    LeagueRewound,
    LeaseFinished,
    LeaseGranted,
    PlayerAdded,
)

MAX_GATES = 200
"""Newest decisions of gates that are kept."""


@dataclass(frozen=True)
class GateDecision:
    """A gate let a player be frozen, reset or transplanted.

    Fields:
      event: number in the journal. env_steps: of the league by then.
      player, kind, reason: of the directive that followed.
      opponents, evidence: as `gate_opponents` and `evidence` of `DirectiveIssued`.
    """

    event: int
    env_steps: int
    player: str
    kind: str
    reason: str
    opponents: int
    evidence: tuple[Evidence, ...]


@dataclass
class Met:
    """Games of a player against one opponent. score: wins and half the draws."""

    games: int = 0
    score: float = 0.0


class Chronicle:
    """Fold the events in their order.

    Fields:
      env_steps: so far. roles: player -> role. rewound: chain hash of the event that a rewind set aside last; empty
        before any. gates: newest decisions. met: (player, opponent) -> games since they were last taken.
    """

    def __init__(self) -> None:
        self.env_steps = 0
        self.roles: dict[str, str] = {}
        self.rewound = ""
        self.gates: deque[GateDecision] = deque(maxlen=MAX_GATES)
        self.met: dict[tuple[str, str], Met] = {}
        self._homes: dict[int, str] = {}
        self._settling: set[int] = set()
        self._teams: tuple[int, ...] = ()

    def fold(self, seq: int, event: Event) -> GateDecision | None:
        """Take an event; the decision of a gate where it is one."""
        if isinstance(event, LeaseGranted):
            if event.lease.home is not None:
                self._homes[event.lease.lease_id] = event.lease.home
            if event.lease.after_training:
                self._settling.add(event.lease.lease_id)
        elif isinstance(event, LeaseFinished):
            self._finish(event)
        elif isinstance(event, DirectiveIssued) and event.evidence:
            return self._decide(seq, event)
        elif isinstance(event, PlayerAdded):
            self.roles[event.player] = event.role
        elif isinstance(event, LeagueCreated):
            self._teams = event.teams
        elif isinstance(event, LeagueRewound):
            self.rewound = event.ended_chain
        return None

    def take_met(self) -> dict[tuple[str, str], Met]:
        """The games since the last call."""
        met, self.met = self.met, {}
        return met

    def _finish(self, event: LeaseFinished) -> None:
        if event.lease_id in self._settling:
            self._settling.discard(event.lease_id)
        else:
            self.env_steps += event.env_steps
        home = self._homes.pop(event.lease_id, None)
        if home is not None:
            for found in opponents_met(home, event, self._teams):
                met = self.met.setdefault((home, found.opponent), Met())
                met.games += found.games
                met.score += found.score

    def _decide(self, seq: int, event: DirectiveIssued) -> GateDecision:
        directive = event.directive
        decision = GateDecision(
            event=seq,
            env_steps=self.env_steps,
            player=directive.player,
            kind=directive.kind.value,
            reason=directive.reason,
            opponents=event.gate_opponents,
            evidence=event.evidence,
        )
        self.gates.append(decision)
        return decision
