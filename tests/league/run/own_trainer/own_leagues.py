"""Leagues of a trainer that learns nothing: its weights are a counter in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from league.run.own_trainer.own_league import League
from league.store.storage import Storage

GATE = {"test": {"kind": "threshold", "win_rate": 0.6}, "min_steps": 40, "timeout_steps": 200}
MAIN: dict[str, Any] = {"players": [{"gate": GATE}]}
WITH_EXPLOITER: dict[str, Any] = {"players": [{"gate": GATE}, {"role": "main_exploiter", "gate": GATE}]}
GAME = "rock_paper_scissors"


def open_league(
    folder: Path,
    settings: dict[str, Any] = MAIN,
    *,
    say: Callable[[str], object] = lambda sentence: None,
    storage: Storage | None = None,
    **changes: Any,
) -> League:
    """A league in `folder/run`, whose messages go to `say`."""
    asked: dict[str, Any] = {"env": GAME, "settings": settings, **changes}
    return League(folder / "run", say=say, storage=storage, **asked)


def weights(folder: Path, number: int) -> Path:
    """A file of weights of its own."""
    path = folder / "weights.bin"
    path.write_bytes(f"weights {number}".encode())
    return path


def add_due(league: League, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Freeze every player whose snapshot is due; yields it with the file that it starts again from."""
    for player in league.players:
        if league.snapshot_due(player):
            number = len(list((folder / "run" / "snapshots").glob("*/*")))
            yield player, league.add_snapshot(player, weights(folder, number))


def ready(folder: Path, settings: dict[str, Any] = MAIN, **changes: Any) -> League:
    """A league whose players have their first snapshots."""
    league = open_league(folder, settings, **changes)
    list(add_due(league, folder))
    return league
