"""One daemon per run folder: a lock that the kernel frees when its holder dies, with the holder's name inside."""

from __future__ import annotations

import fcntl
import os
import socket
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from league.errors import DiskFull, RunInUse, StorageError
from league.store.storage import NO_SPACE

_MAX_BYTES = 4096


@dataclass(frozen=True)
class Holder:
    """The process that holds a run folder.

    Fields:
      pid, host: of the process.
      started: its start in the kernel's ticks since boot, which tells it from a later process of the same pid;
        0 where the system does not say.
      folder: its absolute path; empty where it is not known.
    """

    pid: int
    host: str
    started: int
    folder: str = ""


class RunLock:
    """The lock of one run folder; `acquire` and `release`, or a context manager.

    A child made by fork does not keep it: an env worker that outlives the daemon must not block the next one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """True while this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
          RunInUse: a live process holds it; names its pid and host.
          DiskFull, StorageError: the file system does not allow it.
        """
        assert self._descriptor is None, "the lock is already held by this object"
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(this_process()), 0)
        except BlockingIOError as error:
            holder = _decode(os.pread(descriptor, _MAX_BYTES, 0))
            os.close(descriptor)
            raise RunInUse(
                self._path.parent,
                pid=None if holder is None else holder.pid,
                host=None if holder is None else holder.host,
            ) from error
        except OSError as error:
            os.close(descriptor)
            if error.errno in NO_SPACE:
                raise DiskFull(self._path) from error
            raise StorageError(f"{self._path} cannot be locked: {error.strerror}.") from error
        self._descriptor = descriptor
        _HELD.add(self)

    def release(self) -> None:
        """Give the lock up; may be called twice. The file stays, since removing it would let two daemons in."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _HELD.discard(self)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


_HELD: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _release_in_forked_child() -> None:
    for lock in list(_HELD):
        lock.release()


os.register_at_fork(after_in_child=_release_in_forked_child)


def this_process(folder: Path | None = None) -> Holder:
    """This process as a holder of `folder`."""
    held = "" if folder is None else str(folder.absolute())
    return Holder(pid=os.getpid(), host=socket.gethostname(), started=start_ticks(os.getpid()), folder=held)


def start_ticks(pid: int) -> int:
    """Start of a process in ticks since boot; 0 if it does not exist (or is a zombie) or the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()  # the command name in parentheses may hold spaces
    return 0 if fields[0] == "Z" else int(fields[19])


def is_of_this_host(holder: Holder) -> bool:
    """True if the process runs, or ran, on this host."""
    return holder.host == socket.gethostname()


def is_alive(holder: Holder) -> bool:
    """True if that very process still lives, as far as this host can see; a process of another host counts as alive."""
    if not is_of_this_host(holder):
        return True
    if holder.started:
        return start_ticks(holder.pid) == holder.started
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_holding(holder: Holder, folder: Path) -> bool:
    """True if that very process still lives and holds this folder, and not the one of which this is a copy."""
    if not is_alive(holder):
        return False
    try:
        return not holder.folder or not is_of_this_host(holder) or folder.samefile(holder.folder)
    except OSError:
        return False


def _decode(payload: bytes) -> Holder | None:
    """The holder in a lock file; None while its new holder has not signed yet."""
    try:
        return msgspec.json.decode(payload, type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
