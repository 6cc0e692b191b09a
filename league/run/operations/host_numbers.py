"""Keeps as many actor hosts as the configuration has now: ends drained ones and starts others, while the run goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from league.core.marks import DRAINED, WORKING
from league.core.state.commands import ChangeLeague, Command
from league.core.state.events import ConfigChange
from league.core.state.state import LeagueState
from league.errors import LeagueError

BY = "league"
"""The author of these changes, for the journal."""


class ActorHosts(Protocol):
    """The part of a runtime that starts and ends actor hosts, see `league.hosts.protocol.Runtime`."""

    def add_actor_host(self) -> str: ...

    def remove_actor_host(self, name: str) -> None: ...


class HostNumbers:
    """The actor hosts of a run.

    A host that is to leave is drained in the journal first. It then gets no further lease, and ends with
    the one it has.

    Args:
      number: at the start; 0 where the runtime itself follows the machines of a cluster.
      ask: has the league decide on a command. say: tells the user one sentence.
    """

    def __init__(
        self, runtime: ActorHosts, *, number: int, ask: Callable[[Command], bool], say: Callable[[str], object]
    ) -> None:
        self._runtime = runtime
        self._ask = ask
        self._say = say
        self._present = dict.fromkeys(f"actor-{place}" for place in range(number))
        self._gave_up_at = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Every actor host, drained ones that have not ended among them."""
        return tuple(self._present)

    def started(self, host: str) -> None:
        """The runtime has started a host."""
        self._present[host] = None

    def gone(self, host: str) -> None:
        """The runtime has ended a host by itself."""
        self._present.pop(host, None)

    def settle(self, state: LeagueState, *, number: int) -> tuple[str, ...]:
        """Do what is due; returns the hosts that were ended.

        Args:
          number: of hosts that are to work; 0 where the runtime follows the machines of a cluster.
        """
        busy = {lease.host for lease in state.leases.values()}
        ended = tuple(name for name in self._present if state.hosts.get(name) == DRAINED and name not in busy)
        for name in ended:
            self._runtime.remove_actor_host(name)
            self.gone(name)
        kept = [name for name in self._present if state.hosts.get(name) != DRAINED]
        if number and len(kept) > number:
            self._drain(kept[number - len(kept) :])
        if number > len(kept) and number != self._gave_up_at:
            self._add(number - len(kept), number=number)
        return ended

    def _drain(self, names: list[str]) -> None:
        changes = tuple(ConfigChange(f"hosts.{name}", json.dumps(WORKING), json.dumps(DRAINED)) for name in names)
        self._ask(ChangeLeague(changes, by=BY, reason="there are to be fewer actor hosts"))

    def _add(self, missing: int, *, number: int) -> None:
        try:
            for _ in range(missing):
                self.started(self._runtime.add_actor_host())
        except LeagueError as error:
            self._gave_up_at = number
            self._say(f"No further actor host could be started: {error}")
