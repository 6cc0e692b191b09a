"""Takes up what lies in a pool's inbox: each folder is checked whole, joins once, and leaves the inbox.

What is damaged, of another game or not understood moves to `refused`, with a sentence beside it. What is still being
copied there stays until it is whole, or has not changed for a while.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from league.envs.protocol import EnvError, EnvSpec
from league.errors import JournalError, LeagueError, StorageError
from league.judge.pools.core.records import SNAPSHOT, PoolPolicy
from league.judge.pools.core.rules import AlreadyThere, BeginTest, EndTest, PoolRefused
from league.judge.pools.folder import PoolFolder
from league.judge.pools.request_file import SUFFIX, read_request
from league.policies.auto_export import AUTO
from league.policies.frozen import FrozenCopy
from league.policies.loading import build_policy, copies_at
from league.policies.package import is_frozen_folder
from league.policies.policy_store import fits
from league.policies.trust import names_of_manifest, require_trusted
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import TEMPORARY_PREFIX, Storage, temporary_path

MAX_TAKEN = 50
"""Folders of one look; the others wait for the next, so that workers are not kept waiting."""
QUIET_S = 30.0
"""Time without a change after which an incomplete folder counts as damaged."""
LEFT_S = 3600.0
"""Time without a change after which a temporary file is what a crash left: its writer needs seconds."""
MAX_REFUSED = 500
"""Folders kept in `refused`; the oldest go."""
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._:@+-]+")

Join = Callable[[PoolPolicy], object]


class Inbox:
    """The inbox of one pool.

    Args:
      spec: of the pool's game. store: of its weights.
      join: makes a policy part of the pool, durably. ask: begins or ends a test.
      say: tells the user one sentence.
      wall_time: as the times of files have it.
    """

    def __init__(
        self,
        folder: PoolFolder,
        spec: EnvSpec,
        store: LocalSnapshotStore,
        *,
        join: Join,
        ask: Callable[[BeginTest | EndTest], object],
        say: Callable[[str], object],
        storage: Storage | None = None,
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._store = store
        self._join = join
        self._ask = ask
        self._say = say
        self._storage = storage or Storage()
        self._wall_time = wall_time
        self._stuck: set[str] = set()

    def look(self) -> int:
        """Take up what is there; returns how many policies joined.

        Raises:
          StorageError, JournalError: of the pool itself; what was not taken up is still in the inbox.
        """
        joined = 0
        with os.scandir(self._folder.inbox) as entries:
            found = sorted(entry.name for entry in entries)
        self._sweep([name for name in found if name.startswith(TEMPORARY_PREFIX)])
        names = [name for name in found if not name.startswith(".")]
        for name in names[:MAX_TAKEN]:
            item = self._folder.inbox / name
            try:
                joined += self._take(item)
            except (StorageError, JournalError):  # the pool's own, and nothing that is wrong with the item
                raise
            except OSError as error:
                raise StorageError(f"{item}: {error.strerror}.") from error
            except (LeagueError, PoolRefused, EnvError) as error:
                if not self._may_still_change(item):
                    self._refuse(item, str(error))
        return joined

    def _sweep(self, names: list[str]) -> None:
        """Remove what no writer can be at any more; what cannot be removed is said once, and stops nobody."""
        for name in names:
            left = self._folder.inbox / name
            if name in self._stuck or self._may_still_change(left, quiet_s=LEFT_S):
                continue
            try:
                self._delete(left)
            except StorageError as error:  # it may belong to another user
                self._stuck.add(name)
                self._say(f"{left} was left by a crash and cannot be removed: {error}")

    def _take(self, item: Path) -> int:
        if item.name.endswith(SUFFIX) and not item.is_dir():
            with contextlib.suppress(AlreadyThere):
                self._ask(read_request(item).command)
            self._remove(item)
            return 0
        if item.is_symlink() or not is_frozen_folder(item):
            raise PoolRefused(f"{item.name} is not the folder of a snapshot, nor an exported policy")
        copies = copies_at(item, AUTO)
        joined = 0
        for copy in copies:  # a pool rates policies, so the members of a mixture join, as by `league pool add`
            of_mixture = f".{copy.name}" if len(copies) > 1 else ""
            name = _NOT_IN_NAME.sub("-", item.name + of_mixture).lstrip("._:@+-") or copy.manifest.digest[:12]
            with contextlib.suppress(AlreadyThere):
                join_copy(copy, name, self._spec, self._store, join=self._join, source=item)
                joined += 1
                self._say(f"{name} joined the pool.")
        self._remove(item)
        return joined

    def _may_still_change(self, item: Path, *, quiet_s: float = QUIET_S) -> bool:
        """True if something in it changed less than this time ago."""
        newest = 0.0
        with contextlib.suppress(OSError):
            newest = item.lstat().st_mtime
            if item.is_dir() and not item.is_symlink():
                newest = max([newest, *(file.lstat().st_mtime for file in item.iterdir())])
        return self._wall_time() - newest < quiet_s

    def _refuse(self, item: Path, reason: str) -> None:
        self._storage.make_folder(self._folder.refused)
        name = _NOT_IN_NAME.sub("-", item.name)[:100].lstrip(".") or "unnamed"
        taken = {path.name for path in self._folder.refused.iterdir()}
        while name in taken or f"{name}.txt" in taken:
            name += "+"
        self._storage.atomic_write_bytes(self._folder.refused / f"{name}.txt", f"{reason.rstrip('.')}.\n".encode())
        self._storage.publish_file(item, self._folder.refused / name)
        self._say(f"{item.name} was refused: {reason.rstrip('.')}. It lies in {self._folder.refused / name}.")
        notes = sorted(self._folder.refused.glob("*.txt"), key=lambda path: path.stat().st_mtime)
        for note in notes[: max(len(notes) - MAX_REFUSED, 0)]:
            self._remove(note.with_suffix(""))
            self._storage.remove(note)

    def _remove(self, item: Path) -> None:
        """Take its name away before its content, so that no half of it is found later."""
        if item.is_dir() and not item.is_symlink():
            doomed = temporary_path(item)
            self._storage.publish_file(item, doomed)
            item = doomed
        self._delete(item)

    def _delete(self, item: Path) -> None:
        if item.is_dir() and not item.is_symlink():
            self._storage.remove_folder(item)
        else:
            self._storage.remove(item)


def join_copy(
    copy: FrozenCopy, name: str, spec: EnvSpec, store: LocalSnapshotStore, *, join: Join, source: Path
) -> None:
    """Check a frozen policy against the pool's game, store its weights, and have it join.

    Raises:
      Untrusted: it names code that may not be loaded here.
      LeagueError, PoolRefused: it cannot be used; nothing joined.
    """
    require_trusted([found for found in names_of_manifest(copy.manifest) if found.kind != "env"], what=str(source))
    if not fits(copy.manifest, spec):
        raise PoolRefused(
            f"{name} was trained on {copy.manifest.env_id} and cannot play {spec.env_id}: seats, observations, actions "
            "or the mask differ"
        )
    build_policy(name, copy.weights, copy.manifest, spec, source=source)
    store.put(copy.weights, copy.manifest)
    where = f"{copy.name} of {source.parent.name or source}" if copy.name else str(source)
    join(PoolPolicy(name, SNAPSHOT, digest=copy.manifest.digest, source=where[:200]))
