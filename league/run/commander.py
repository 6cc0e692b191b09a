"""Has the league decide on commands, and keeps their events until they are durable and can be acted on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from league.core.state.commands import Command, NothingToLease, Refused
from league.core.state.events import DirectiveIssued, Event
from league.core.state.records import Directive
from league.errors import LeagueError
from league.store.journaled_league import JournaledLeague


class Commander:
    """Commands of the daemon and of everything around it.

    Args:
      league: history of the run.

    Attributes:
      refused: commands that the league refused, those for which there was nothing to lease left out.
      waiting: events to act on after the next commit.
    """

    def __init__(self, league: JournaledLeague) -> None:
        self._league = league
        self._excused: tuple[type[Exception], ...] = (Refused,)
        self.refused = 0
        self.waiting: list[Event] = []

    def ask(self, command: Command) -> bool:
        """Have the league decide on a command that it may refuse; False where it does, which is only counted."""
        try:
            self.demand((command,))
        except NothingToLease:
            return False
        except self._excused:
            self.refused += 1
            return False
        return True

    def demand(self, commands: Sequence[Command]) -> None:
        """Have the league decide on all of these or on none. Raises Refused."""
        self.waiting.extend(self._league.execute_all(commands))

    def issue_again(self, directives: Iterable[Directive]) -> None:
        """Act again on directives in the journal, which the hosts have lost; not on those that are acted on anyway."""
        waiting = {event.directive.directive_id for event in self.waiting if isinstance(event, DirectiveIssued)}
        self.waiting += [DirectiveIssued(found) for found in directives if found.directive_id not in waiting]

    def take_durable(self) -> list[Event]:
        """Commit; returns the events that are durable now and that nobody has acted on."""
        self._league.commit()
        durable, self.waiting = self.waiting, []
        return durable

    def give_up(self) -> None:
        """After an error, act on nothing more, and let every command fail: a plug-in of the core may be the cause."""
        self.waiting.clear()
        self._excused = (Refused, LeagueError)
