"""A loss of power: bytes that were written and not synced are lost in part."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class PowerCut:
    """Follows writes and syncs; `strike` tears what was not synced. The files of sqlite are its own affair."""

    def __init__(self) -> None:
        self._unsynced: dict[int, tuple[int, int]] = {}

    @contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A context whose writes are followed."""
        write, pwrite = os.write, os.pwrite

        def noted_write(descriptor: int, payload: bytes) -> int:
            appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
            start = os.fstat(descriptor).st_size if appends else os.lseek(descriptor, 0, os.SEEK_CUR)
            done = write(descriptor, payload)
            self._note(descriptor, start, start + done)
            return done

        def noted_pwrite(descriptor: int, payload: bytes, offset: int) -> int:
            self._note(descriptor, offset, offset + len(payload))
            return pwrite(descriptor, payload, offset)

        def synced(descriptor: int) -> None:
            self._unsynced.pop(os.fstat(descriptor).st_ino, None)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", noted_write)
            patch.setattr(os, "pwrite", noted_pwrite)
            patch.setattr(os, "fsync", synced)
            patch.setattr(os, "fdatasync", synced)
            yield

    def strike(self, folder: Path) -> None:
        """Lose the second half of every range that was not synced."""
        for path in folder.rglob("*"):
            facts = path.stat()
            if facts.st_ino in self._unsynced and path.is_file():
                first, end = self._unsynced[facts.st_ino]
                with path.open("r+b") as file:
                    if end >= facts.st_size:
                        file.truncate((first + end) // 2)
                    else:
                        file.seek((first + end) // 2)
                        file.write(bytes(end - (first + end) // 2))

    def _note(self, descriptor: int, first: int, end: int) -> None:
        inode = os.fstat(descriptor).st_ino
        before = self._unsynced.get(inode, (first, end))
        self._unsynced[inode] = (min(first, before[0]), max(end, before[1]))
