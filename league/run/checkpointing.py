"""Schedules the next restart state of each learner, by updates and by time, and tracks those under way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from league.agents.restart_state import counters_in
from league.config.run_config import RuntimeConfig
from league.core.state.records import Progress
from league.core.state.state import LeagueState, PlayerState
from league.hosts.protocol import InstallPlayer, LearnerProgress, TakeCheckpoint

RESCUE_S = 20.0
"""Longest wait for the restart states of learners after an error."""


class RestartStates:
    """Asks learners for their restart states; storing them is the daemon's.

    Args:
      settings: `checkpoint_updates` and `checkpoint_seconds`.
      state: the league as this start of the daemon finds it.
      submit: to the runtime.
    """

    def __init__(
        self, settings: RuntimeConfig, state: LeagueState, *, submit: Callable[[TakeCheckpoint], None]
    ) -> None:
        self.settings = settings
        self._submit = submit
        self._saved = {
            name: player.checkpoint.version for name, player in state.players.items() if player.checkpoint is not None
        }
        self._since: dict[str, float] = {}
        self._waiting: set[str] = set()

    @property
    def waiting(self) -> Collection[str]:
        """The players whose learner was asked and has not answered."""
        return self._waiting

    def ask_due(self, reports: Iterable[LearnerProgress], installed: Collection[str], *, now: float | None) -> None:
        """Ask every learner that is in place and whose restart state is due, see `due`."""
        known = [report.progress for report in reports if report.progress.player in installed]
        for player in self.due(known, now=now):
            self.ask(player)

    def due(self, progress: Iterable[Progress], *, now: float | None) -> list[str]:
        """Players whose restart state is due.

        By the updates that lie between it and the last one, and by the time for which there has been something to save.
        A version may be below the saved one: after a transplant, or where the report is older than the restart state.

        Args:
          progress: of every player that has reported any.
          now: seconds that never go back; None where updates alone count, as in a run that repeats exactly: PBT copies
            restart states.
        """
        found = []
        for known in progress:
            updates = known.version - self._saved.get(known.player, 0)
            if updates == 0:
                self._since.pop(known.player, None)
                continue
            by_time = now is not None and self._lasted(known.player, now) >= self.settings.checkpoint_seconds
            if by_time or abs(updates) >= self.settings.checkpoint_updates:
                found.append(known.player)
        return found

    def _lasted(self, player: str, now: float) -> float:
        """Seconds for which there has been something to save."""
        return now - self._since.setdefault(player, now)

    def ask(self, player: str) -> None:
        """Ask a player's learner, unless it is being asked already."""
        if player not in self._waiting:
            self._waiting.add(player)
            self._submit(TakeCheckpoint(player))

    def ask_all(self, players: Iterable[str]) -> None:
        """As `ask`, each of them, in an order that the next process repeats: a set of names has another one there."""
        for player in sorted(players):
            self.ask(player)

    def forget(self, players: Iterable[str]) -> None:
        """Their host was lost, and every answer with it."""
        self._waiting.difference_update(players)

    def saved(self, progress: Progress) -> None:
        """A restart state is stored."""
        self._waiting.discard(progress.player)
        self._since.pop(progress.player, None)
        self._saved[progress.player] = progress.version


def restored_progress(player: PlayerState, install: InstallPlayer, *, say: Callable[[str], object]) -> Progress:
    """The progress of a learner built from `install`; reports the player's lost training."""
    version, steps = 0, 0
    if install.saved is not None:
        counters = counters_in(install.saved)
        version, steps = counters.version, counters.trained_steps
    elif install.weights is not None:
        version, steps = install.weights.version, install.trained_steps
    lost = player.trained_steps - steps
    if lost > 0:
        say(f"{player.name} continues from {steps:,} trained steps: the {lost:,} after that are lost.")
    return Progress(player.name, version, steps)


def unsaved_progress(state: LeagueState, players: Iterable[str]) -> Iterator[str]:
    """One sentence for each of these players that has trained since the state that its learner will continue from."""
    for name in sorted(players):
        known = state.players[name]
        saved = known.gate_steps if known.checkpoint is None else known.checkpoint.trained_steps
        if known.trained_steps > saved:
            yield f"No restart state of {name} came in time: what it learnt after {saved:,} trained steps is lost."
