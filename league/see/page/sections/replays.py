"""The recorded games of a run, newest first."""

from __future__ import annotations

import msgspec

from league.see.games.replay_list import ReplayList, ReplayRow
from league.see.page.runs.opened_run import OpenedRun

MAX_ROWS = 200


class ReplaysQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """home, away: only games of these two. file, game: the one that is shown; the browser reads it by itself."""

    home: str = ""
    away: str = ""
    file: str = ""
    game: int = 0


class Replays(msgspec.Struct, frozen=True):
    """The list. damaged: a sentence for each file that cannot be read. path: of the folder of replays."""

    rows: tuple[ReplayRow, ...]
    damaged: tuple[str, ...]
    path: str


def read(run: OpenedRun, query: ReplaysQuery) -> Replays:
    """The recorded games of a run."""
    found = ReplayList(run.folder.replays_path)
    wanted = {name for name in (query.home, query.away) if name}
    rows = [row for row in found.rows() if wanted <= {holder.name for holder in row.seats}]
    return Replays(tuple(rows[:MAX_ROWS]), found.damaged, str(run.folder.replays_path))
