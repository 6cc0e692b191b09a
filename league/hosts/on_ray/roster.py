"""The hosts of a run on Ray by name, and which learner host holds which player."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from league.errors import LeagueError
from league.hosts.protocol import Report

LearnerCall = tuple[Callable[[Any], Any], Callable[[Any], list[Report]]]
"""A call of a learner host, given its handle, and the reports that its result makes."""


@dataclass
class Host:
    """One Ray actor and what it owes.

    Fields:
      kind: "replay_host", "learner_host", "inference_host" or "actor_host". pid: 0 until it is ready.
      is_added: whether it came while the run went.
      failures: losses in a row. parked: whether these are too many, so that it is tried again only now and then.
      tasks: of a learner host, in order; the first of them is under way where `is_busy`.
      asked_at, answered_at: when it was last asked how far it is, and when it last said so.
    """

    name: str
    kind: str
    handle: Any = None
    pid: int = 0
    is_added: bool = False
    failures: int = 0
    parked: bool = False
    start_at: float = 0.0
    tasks: deque[LearnerCall] = field(default_factory=deque)
    is_busy: bool = False
    is_asked: bool = False
    asked_at: float = 0.0
    answered_at: float = 0.0


class Roster:
    """The hosts, replay hosts first, then learner hosts, and actor hosts last.

    Args:
      players: every player; player number p is held by learner host p modulo their number.
      learners, actors, inference, replays: numbers of hosts at the start of the run.

    Attributes:
      hosts: by name.
    """

    def __init__(
        self, players: tuple[str, ...], *, learners: int, actors: int, inference: int = 0, replays: int = 0
    ) -> None:
        numbers = (
            ("replay_host", "replay", replays),
            ("learner_host", "learner", learners),
            ("inference_host", "inference", inference),
            ("actor_host", "actor", actors),
        )
        hosts = [Host(f"{stem}-{place}", kind) for kind, stem, number in numbers for place in range(number)]
        self.hosts = {host.name: host for host in hosts}
        self._learner_of = {player: f"learner-{place % learners}" for place, player in enumerate(players)}
        self._next_actor = actors

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Names of the hosts of a kind."""
        return tuple(name for name, host in self.hosts.items() if host.kind == kind)

    def add_actor(self) -> str:
        """A further actor host, whose name is returned; names are not given twice."""
        name = f"actor-{self._next_actor}"
        self.hosts[name], self._next_actor = Host(name, "actor_host", is_added=True), self._next_actor + 1
        return name

    def remove_learner(self, name: str) -> tuple[Host, tuple[str, ...]]:
        """Take a learner host out; each of its players, which are returned too, comes to a host with the fewest."""
        host, players = self.hosts.pop(name), self.players_of(name)
        self._learner_of = {player: held for player, held in self._learner_of.items() if held != name}
        for player in players:
            self.learner_host_of(player)
        return host, players

    def learner_host_of(self, player: str) -> Host:
        """The host of a player; one that joins late comes to a host with the fewest."""
        if player not in self._learner_of:
            held = list(self._learner_of.values())
            self._learner_of[player] = min(self.of_kind("learner_host"), key=held.count)
        return self.hosts[self._learner_of[player]]

    def players_of(self, name: str) -> tuple[str, ...]:
        """The players that a host holds."""
        return tuple(player for player, held in self._learner_of.items() if held == name)

    def replay_handles(self) -> tuple[Any, ...]:
        """Handles of the replay hosts in their order, None for one that is not ready."""
        return tuple(host.handle if host.pid else None for host in self.hosts.values() if host.kind == "replay_host")

    def learner_handles(self) -> dict[str, Any]:
        """Player -> handle of its learner host, None while that is not there."""
        return {player: self.hosts[name].handle for player, name in self._learner_of.items()}

    def require_others(self, host: Host, reason: str) -> None:
        """Let the run end where it needs a parked host: each learner host holds players, of actor and replay hosts one
        will do.

        Raises:
          LeagueError: it needs this one.
        """
        like = [other for other in self.hosts.values() if other.kind == host.kind]
        one_will_do = host.kind in ("actor_host", "replay_host")
        if one_will_do and not all(other.parked for other in like):
            return
        kind = host.kind.replace("_", " ")
        of_all = f", like every other {kind}" if one_will_do and len(like) > 1 else ""
        raise LeagueError(
            f"{host.name} was lost {host.failures} times in a row without doing any work in between{of_all}; "
            f"last: {reason}. Mend the cause, then `league resume` the run."
        )
