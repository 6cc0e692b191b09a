"""The table of runs: of each folder what its heartbeat, its configuration and its newest metrics say, and its size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.config.yaml import parse_yaml
from league.errors import LeagueError
from league.run.control.lifecycle import row_of
from league.run.control.run_labels import read_labels
from league.run.monitor import names
from league.run.monitor.jsonl_sink import last_row
from league.see.reports.status.run_size import disk_bytes
from league.store.run_folder import RunAccount, RunFolder

SIZES_S, SIZE_STAYS_S = 0.2, 60.0
"""Seconds that one table may spend on sizes, and for which a size is not counted again."""
_BEFORE, _AFTER = names.PROBE_VALUE.name.split("{yardstick}")
SCORES = "yardsticks."
"""Beginning of the yardsticks that any two runs of a game share."""


class ListedRun(msgspec.Struct, frozen=True):
    """One run.

    Fields:
      id: its name in addresses. path: its folder. game, name: of the configuration, empty where it cannot be read.
      phase, is_live, env_steps, steps_per_s, snapshots, message: as in `league ps`.
      started_at, heartbeat_at: of its last daemon, seconds since 1970, 0 where there was none.
      budget_spent: fraction in [0, 1]. left_s: seconds to go at the pace so far. None where unknown or ended.
      scores: yardstick -> newest score against it. rating: of its best snapshot, Elo on its own scale, None before one.
      labels: see `league.run.control.run_labels`.
      size_bytes: of its folder, None while it is not counted yet.
    """

    id: str
    path: str
    name: str
    game: str
    phase: str
    is_live: bool
    started_at: float
    heartbeat_at: float
    env_steps: int
    steps_per_s: float
    snapshots: int
    budget_spent: float | None
    left_s: float | None
    scores: dict[str, float]
    rating: float | None
    labels: tuple[str, ...]
    size_bytes: int | None
    message: str


@dataclass(frozen=True)
class _Size:
    at: float
    size_bytes: int


class ListedRuns:
    """Reads the rows; it remembers sizes and configurations. Its calls may come from any thread.

    Args:
      monotonic: seconds that never go back.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._sizes: dict[str, _Size] = {}
        self._games: dict[str, tuple[float, str, str]] = {}

    def rows(self, folders: Mapping[str, RunFolder]) -> list[ListedRun]:
        """The rows of some runs, in their order."""
        until = self._monotonic() + SIZES_S
        return [self._row(name, folder, until) for name, folder in folders.items()]

    def _row(self, identity: str, folder: RunFolder, until: float) -> ListedRun:
        known, account = row_of(folder), _account(folder)
        status = account.status
        newest = last_row(folder.metrics_path)
        values = {} if newest is None else newest.values
        game, name = self._game(identity, folder)
        return ListedRun(
            id=identity,
            path=known.run,
            name=name,
            game=game,
            phase=known.phase,
            is_live=known.live,
            started_at=status.started_at,
            heartbeat_at=status.heartbeat_at,
            env_steps=known.env_steps,
            steps_per_s=known.steps_per_s,
            snapshots=known.snapshots,
            budget_spent=known.budget_spent,
            left_s=account.left_s,
            scores=dict(_scores(values)),
            rating=values.get(names.BEST_RATING.name),
            labels=read_labels(folder.path),
            size_bytes=self._size(identity, folder.path, until),
            message=known.message,
        )

    def _game(self, identity: str, folder: RunFolder) -> tuple[str, str]:
        """Game and name of the configuration, read again where its file was written again."""
        try:
            written = folder.config_path.stat().st_mtime
            if identity not in self._games or self._games[identity][0] != written:
                plain = parse_yaml(folder.read_config(), source="config.yaml")
                found = plain if isinstance(plain, dict) else {}
                env = found.get("env")
                game = str(env.get("id", "")) if isinstance(env, dict) else str(env or "")
                self._games[identity] = (written, game, str(found.get("name", "")))
        except (OSError, LeagueError):
            return "", ""
        return self._games[identity][1:]

    def _size(self, identity: str, path: Path, until: float) -> int | None:
        known, now = self._sizes.get(identity), self._monotonic()
        if now < until and (known is None or now - known.at > SIZE_STAYS_S):
            known = self._sizes[identity] = _Size(now, disk_bytes(path))
        return None if known is None else known.size_bytes


def _account(folder: RunFolder) -> RunAccount:
    """The daemon of a run; one that never was where its heartbeat cannot be read."""
    try:
        return folder.account()
    except LeagueError:
        return RunAccount()


def _scores(values: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """The scores against yardsticks, by the name of the yardstick."""
    for name, value in values.items():
        if name.startswith(_BEFORE + SCORES) and name.endswith(_AFTER):
            yield name.removeprefix(_BEFORE + SCORES).removesuffix(_AFTER), value
