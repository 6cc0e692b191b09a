"""The choices before a game against a policy of the run."""

from __future__ import annotations

import msgspec

from league.policies.auto_export import AUTO, EXACT, EXPORTS
from league.see.page.runs.opened_run import OpenedRun

BOTS = ("bot:random", "bot:mcts:50")
MAX_SNAPSHOTS = 300


class PlayQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policy: chosen beforehand, as by a link from another section."""

    policy: str = ""


class PlayChoices(msgspec.Struct, frozen=True):
    """The policies that may be played against.

    Fields:
      game: id of the run's env. policies: names, the one to play first; the newest snapshots before older ones.
      seats: of the game as far as the league has seen them, at least 1.
    """

    game: str
    policies: tuple[str, ...]
    bots: tuple[str, ...]
    seats: int


def read(run: OpenedRun, query: PlayQuery) -> PlayChoices:
    """The choices of a run."""
    env = run.config.get("env")
    game = str(env.get("id", "")) if isinstance(env, dict) else str(env or "")
    frozen = list(run.state.snapshots)[::-1][:MAX_SNAPSHOTS]
    trained = [AUTO, *(name for name in EXPORTS if name != EXACT)] if frozen else []
    names = tuple(dict.fromkeys((*trained, *run.state.players, *frozen)))
    return PlayChoices(game, names if frozen else (), BOTS, run.state.num_seats)
