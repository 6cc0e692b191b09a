"""The hosts of a run on Ray by name, and which learner host holds which player."""

from __future__ import annotations

from typing import Any

from league.runtime.on_ray.calls import Host


class Roster:
    """The hosts, learner hosts first and actor hosts last.

    Args:
      players: every player; player number p is held by learner host p modulo their number.
      learners, actors, inference: numbers of hosts at the start of the run.

    Attributes:
      hosts: by name.
    """

    def __init__(self, players: tuple[str, ...], *, learners: int, actors: int, inference: int = 0) -> None:
        numbers = (
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

    def learner_handles(self) -> dict[str, Any]:
        """Player -> handle of its learner host, None while that is not there."""
        return {player: self.hosts[name].handle for player, name in self._learner_of.items()}
