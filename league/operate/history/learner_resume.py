"""The state from which each learner continues at an earlier event of its league, and the training that is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from league.core.state.state import LeagueState, PlayerState
from league.errors import CorruptSnapshot, LeagueError, MissingSnapshot


@dataclass(frozen=True)
class RestartPoint:
    """The starting state of one learner.

    Fields:
      source: "checkpoint", its restart state with optimizer and counters; "snapshot", weights alone; "initial", the
        first weights of the seed, where the league had no snapshot of the player yet.
      name: digest or snapshot id; empty for "initial".
      trained_steps: at which it continues; lost_steps: trained between there and the event.
      reason: why it is not the restart state that the journal names; empty where it is, or names none.
    """

    player: str
    source: Literal["checkpoint", "snapshot", "initial"]
    name: str
    trained_steps: int
    lost_steps: int
    reason: str = ""

    @property
    def is_warning(self) -> bool:
        """True if the restart state is lost, which costs more than the training since it was saved."""
        return bool(self.reason)

    def text(self) -> str:
        """One sentence for people."""
        origin = {"checkpoint": f"its restart state {self.name[:12]}", "initial": "its first weights"}.get(
            self.source, f"the weights of its snapshot {self.name}, with a fresh optimizer"
        )
        sentence = f"{self.player} continues from {origin}, at {self.trained_steps:,} steps"
        lost = f"; {self.lost_steps:,} of its {self.trained_steps + self.lost_steps:,} trained steps are lost"
        if self.is_warning:
            return f"WARNING: {sentence}{lost}: {self.reason}"
        return sentence + (lost if self.lost_steps else "")


def restart_points(state: LeagueState, require: Callable[[str, str], None]) -> tuple[RestartPoint, ...]:
    """The restart point of every player of a league as it stood after an event.

    Args:
      require: called with player and digest of a restart state; raises MissingSnapshot or CorruptSnapshot where it
        cannot be had.
    Raises:
      LeagueError: a restart state is gone and its player descends from no snapshot.
    """
    return tuple(_restart_point(player, require) for player in state.players.values())


def lost_players(points: tuple[RestartPoint, ...]) -> tuple[str, ...]:
    """Players whose restart state is named by the journal but is missing."""
    return tuple(point.player for point in points if point.is_warning)


def _restart_point(player: PlayerState, require: Callable[[str, str], None]) -> RestartPoint:
    reason = ""
    if player.checkpoint is not None:
        try:
            require(player.name, player.checkpoint.digest)
        except (MissingSnapshot, CorruptSnapshot) as error:
            reason = _why(error)
        else:
            known = player.checkpoint
            lost = max(player.trained_steps - known.trained_steps, 0)
            return RestartPoint(player.name, "checkpoint", known.digest, known.trained_steps, lost)
    if player.parent is None:
        if reason:
            raise LeagueError(
                f"{player.name} cannot continue from that event: {reason}, and it had no snapshot yet; "
                "choose a later one."
            )
        return RestartPoint(player.name, "initial", "", 0, player.trained_steps)
    lost = max(player.trained_steps - player.gate_steps, 0)
    return RestartPoint(player.name, "snapshot", player.parent, player.gate_steps, lost, reason)


def _why(error: MissingSnapshot | CorruptSnapshot) -> str:
    if isinstance(error, CorruptSnapshot):
        return f"its restart state is corrupt ({error.reason})"
    return "its restart state of then is no longer kept"
