"""Pushes the snapshots of a live run to the inbox of a rating pool, beside the daemon's loop."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from league.config.run_config import PoolConfig
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, LeagueError, MissingSnapshot
from league.judge.pools.folder import PoolFolder
from league.policies.frozen import FrozenCopy
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore, write_snapshot_files
from league.store.storage import Storage, temporary_path

LOOK_EVERY_S = 5.0
CLOSE_S = 5.0
"""Longest wait for the last snapshots at the end of a run."""
MAIN_AGENT = "main_agent"


def push_copy(folder: PoolFolder, name: str, copy: FrozenCopy, *, storage: Storage) -> str:
    """Put one policy into the inbox, whole or not at all; returns a sentence.

    Raises:
      DiskFull, StorageError: it is not there.
    """
    final = folder.inbox / re.sub(r"[^A-Za-z0-9._@+-]+", "-", name)
    if final.exists():
        return f"{final.name} lies in the inbox already."
    temporary = temporary_path(final)
    storage.make_folder(temporary)
    write_snapshot_files(storage, temporary, copy.weights, copy.manifest)
    storage.publish_folder(temporary, final)
    return f"{final.name} lies in the inbox of {folder.path}."


def in_thread(job: Callable[[], None]) -> threading.Thread:
    """Run a job beside; nothing waits for it but `close`."""
    thread = threading.Thread(target=job, name="pool-push", daemon=True)
    thread.start()
    return thread


def open_pusher(config: PoolConfig, run: RunFolder, *, say: Callable[[str], object]) -> PoolPusher:
    """The pusher of a run; leaving its context pushes what is left."""
    return PoolPusher(config, run.path, LocalSnapshotStore(run.snapshots_path), say=say)


class PoolPusher:
    """Pushes what is new every few seconds; trouble is one sentence, and tried again.

    Args:
      config: which pool, and what to push. run: folder of the run. store: its snapshots.
      say: tells the user one sentence. monotonic: seconds that never go back.
    """

    def __init__(
        self,
        config: PoolConfig,
        run: Path,
        store: LocalSnapshotStore,
        *,
        say: Callable[[str], object],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._run = run.resolve().name
        self._store = store
        self._say = say
        self._monotonic = monotonic
        self._due = -float("inf")
        self._done: set[str] = set()
        self._thread: threading.Thread | None = None
        self._last: LeagueState | None = None
        self._trouble = ""

    def look(self, state: LeagueState) -> None:
        """Begin to push what is new, where it is time to; returns at once."""
        self._last = state
        if not self._config.folder or self._monotonic() < self._due or self._is_busy():
            return
        self._due = self._monotonic() + LOOK_EVERY_S
        self._begin(state)

    def close(self) -> None:
        """Push what is left for a few seconds at most; may be called twice."""
        if not self._config.folder or self._last is None:
            return
        deadline = self._monotonic() + CLOSE_S
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        if not self._is_busy():
            self._begin(self._last)
        if self._thread is not None:
            self._thread.join(max(deadline - self._monotonic(), 0.0))
        self._last = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, state: LeagueState) -> None:
        wanted = [(name, state.snapshots[name].digest) for name in self._wanted(state) if name not in self._done]
        if wanted:
            self._thread = in_thread(lambda: self._push(wanted))

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _wanted(self, state: LeagueState) -> list[str]:
        if self._config.what == "tagged":
            return sorted(set(state.tags.values()) & state.snapshots.keys())
        return [name for name, info in state.snapshots.items() if info.player and info.role == MAIN_AGENT]

    def _push(self, wanted: list[tuple[str, str]]) -> None:
        folder = PoolFolder(Path(self._config.folder).expanduser())
        try:
            folder.require()
            known = LocalSnapshotStore(folder.policies)
            for name, digest in wanted:
                if not known.folder(digest).exists():
                    with contextlib.suppress(MissingSnapshot, CorruptSnapshot):  # the run itself says so elsewhere
                        copy = FrozenCopy(name, 1.0, *self._store.get(digest))
                        push_copy(folder, f"{self._run}.{name}", copy, storage=Storage())
                self._done.add(name)
            self._trouble = ""
        except (LeagueError, OSError) as error:
            if str(error) != self._trouble:
                self._say(f"Snapshots cannot be pushed to the pool {folder.path}: {error}")
            self._trouble = str(error)
