"""The snapshots of a league on disk: what cannot be read is quarantined, not fatal; what is too many is retired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from league.core.retention import RETIRED
from league.core.state.commands import Command, QuarantineSnapshot, RestoreSnapshot, RetireSnapshots
from league.core.state.events import Event, SnapshotAdded, SnapshotRetired
from league.core.state.records import SnapshotInfo
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, MissingSnapshot, StorageError
from league.store.journaled_league import JournaledLeague

W_co = TypeVar("W_co", covariant=True)


class SnapshotFiles(Protocol[W_co]):
    """Where the weights of a league's snapshots lie. W_co: the form in which they are read."""

    @property
    def warn(self) -> Callable[[str], object]:
        """Tells the user one sentence."""
        ...

    @property
    def max_snapshots(self) -> int:
        """Snapshots that the league may hold."""
        ...

    def snapshot(self, info: SnapshotInfo) -> W_co:
        """The weights, verified. Raises MissingSnapshot, CorruptSnapshot."""
        ...

    def drop_snapshot(self, snapshot: str, state: LeagueState) -> None:
        """Remove the weights of a snapshot that is retired. Raises StorageError: they are still there."""
        ...


class KeptSnapshots(Generic[W_co]):
    """Reads snapshots; one that is damaged or gone is set aside in the journal, with a sentence for the user.

    Args:
      files: where their weights lie.
      league: history of the run.
      ask: has the league decide on a command.
    """

    def __init__(self, files: SnapshotFiles[W_co], *, league: JournaledLeague, ask: Callable[[Command], bool]) -> None:
        self._files = files
        self._league = league
        self._ask = ask
        self._retired: list[str] = []

    def of(self, snapshot: str) -> W_co | None:
        """The weights of a snapshot; None where they cannot be had, which is in the journal then."""
        if not self._league.state.is_present(snapshot):
            return None
        try:
            return self._files.snapshot(self._league.state.snapshots[snapshot])
        except (MissingSnapshot, CorruptSnapshot) as error:
            self._ask(QuarantineSnapshot(snapshot, str(error)))
            self._files.warn(
                f"Snapshot {snapshot} is set aside, the league continues without it: {error} "
                "Put the file back as it was, and the next start of the run takes the snapshot back."
            )
            return None

    def keep_within_limits(self, event: Event) -> None:
        """After a snapshot was added, remove the weights of those retired before, and retire what is too many.

        The weights of those that are retired now stay until then: games in flight may still be played with them.
        """
        state = self._league.state
        if isinstance(event, SnapshotRetired):
            self._retired.append(event.snapshot)
        elif isinstance(event, SnapshotAdded):
            gone, self._retired = self._retired, []
            for name in gone:
                self._drop(name)
            if len(state.population.snapshots()) > self._files.max_snapshots:
                self._ask(RetireSnapshots(self._files.max_snapshots))

    def _drop(self, snapshot: str) -> None:
        state = self._league.state
        if not state.is_present(snapshot):
            try:
                self._files.drop_snapshot(snapshot, state)
            except StorageError as error:  # they take room and harm nobody
                self._files.warn(f"The weights of {snapshot} are retired and still there: {error}")

    def take_back_mended(self) -> None:
        """Take quarantined snapshots back whose files are again what was written."""
        state = self._league.state
        absent = {state.population.names[number]: reason for number, reason in state.population.absent.items()}
        for name, reason in absent.items():
            if name not in state.snapshots:  # a player that has retired
                continue
            if reason.startswith(RETIRED):
                self._retired.append(name)
                continue
            try:
                self._files.snapshot(state.snapshots[name])
            except (MissingSnapshot, CorruptSnapshot):
                continue
            self._ask(RestoreSnapshot(name))
            self._files.warn(f"Snapshot {name} is whole again: the league meets it as before.")

    def steps_at(self, player: str, snapshot: str) -> int:
        """Trained steps of a player when its weights were those of a snapshot.

        `gate_steps` counts from when they became those of its parent: from its last snapshot or reset.
        """
        state = self._league.state
        known, info = state.players[player], state.snapshots[snapshot]
        is_older = snapshot != known.parent and info.player == player
        return info.trained_steps if is_older else known.gate_steps
