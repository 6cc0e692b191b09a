"""Ends learner hosts that are drained: nobody plays, their players are saved, and the other hosts take them over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from league.core.marks import DRAINED
from league.core.state.state import LeagueState


class LearnerHosts(Protocol):
    """The part of a runtime that ends learner hosts, see `league.hosts.protocol.Runtime`."""

    def remove_learner_host(self, name: str) -> tuple[str, ...]: ...


class SavesRestartStates(Protocol):
    """The part of `league.run.checkpointing.RestartStates` that saves every player."""

    @property
    def waiting(self) -> Collection[str]: ...

    def ask_all(self, players: Iterable[str]) -> None: ...

    def forget(self, players: Iterable[str]) -> None: ...


class LearnerDrain:
    """The learner hosts of a run.

    No lease is granted while one is to leave. So no game is lost, and no learner learns after it was saved.

    Args:
      number: of hosts at the start.
      say: tells the user one sentence.
    """

    def __init__(
        self,
        runtime: LearnerHosts,
        *,
        number: int,
        say: Callable[[str], object],
    ) -> None:
        self._runtime = runtime
        self._say = say
        self._present = dict.fromkeys(f"learner-{place}" for place in range(number))
        self._has_asked = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every learner host, drained ones that have not ended among them."""
        return tuple(self._present)

    def leaving(self, state: LeagueState) -> list[str]:
        """Hosts that are drained and have not ended."""
        return [name for name in self._present if state.hosts.get(name) == DRAINED]

    def settle(
        self, state: LeagueState, restart_states: SavesRestartStates, *, installed: Iterable[str]
    ) -> tuple[str, ...]:
        """Do what is due: ask for the players' restart states once no lease is open, then end the hosts.

        Args:
          installed: players whose learner is in place; one that is not continues from its last restart state.
        Returns:
          Players that the other learner hosts are to hold now, from their restart states.
        """
        leaving = self.leaving(state)
        moved: list[str] = []
        if not leaving or state.leases or restart_states.waiting:
            return ()
        if not self._has_asked:
            self._has_asked = True
            restart_states.ask_all(installed)
            return ()
        self._has_asked = False
        for name in leaving:
            del self._present[name]
            players = self._runtime.remove_learner_host(name)
            restart_states.forget(players)
            moved += players
            self._say(f"{name} has ended; the other learner hosts hold {', '.join(players) or 'no more'} now.")
        return tuple(moved)
