"""The only raw file writes of the platform: a file is replaced whole and durably, or is left as it was.

Order of a write: temporary name (outside every glob that a reader uses), write, fsync, rename, fsync of the folder.
Between any two of these steps stands a fault point, a no-op in production, at which the tests crash, tear or starve us.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from league.errors import DiskFull, InvalidName, StorageError

FAULT_POINTS: dict[str, str] = {
    "write.before_open": "nothing has happened yet",
    "write.torn": "half of the bytes are in the temporary file",
    "write.before_fsync": "all bytes are written, none need be on the disk",
    "write.before_rename": "the temporary file is durable, the old one still has the name",
    "write.before_folder_fsync": "the new file has the name, the folder entry need not be on the disk",
    "write.done": "all is durable",
    "append.before_write": "the line is not in the file",
    "append.torn": "half of the line is in the file",
    "overwrite.before_write": "the old bytes are in the file",
    "overwrite.torn": "half of the new bytes are in the file",
    "overwrite.before_fsync": "the new bytes are in the file, and need not be on the disk",
    "make.before_mkdir": "the folder is not there",
    "make.before_fsync": "the folder is there, and need not be on the disk",
    "publish.before_rename": "a new file is complete, it has not its final name",
    "publish.before_fsync": "the file has its final name, which need not be on the disk",
    "folder.before_rename": "a temporary folder is complete, nothing has its final name",
    "folder.before_fsync": "the folder has its final name, which need not be on the disk",
    "swap.before_exchange": "the new folder is complete, and both have their old names",
    "swap.before_fsync": "the new folder has the final name, which need not be on the disk",
    "link.before_link": "the second name is not there",
    "link.before_fsync": "the file has both names, the second need not be on the disk",
    "remove.before_unlink": "the file is still there",
    "remove.before_rmtree": "the folder is still there, whole",
    "remove.before_fsync": "the file or folder is gone, which need not be on the disk",
    "sweep.before_remove": "the left-over of a crash is still there",
    "journal.before_commit": "the rows are in an open transaction",
    "journal.after_commit": "the rows are durable, the caller does not know it yet",
}
"""Every fault point and what is true there; `Storage.fault` refuses others, so that a new one cannot stay unlisted."""

TEMPORARY_PREFIX = ".tmp-"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_COPY_BYTES = 1 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Of Linux, for renameat2(2)."""

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems that cannot make a hard link, or not at that path."""


def no_fault(point: str) -> None:
    """The production hook: does nothing."""


def checked_name(name: str, *, what: str = "name") -> str:
    """`name` itself if it may become part of a path.

    Raises:
      InvalidName: it is not 1 to 64 of a-z, 0-9, `_`, `-`, starting with a letter or digit.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidName(
            f"{what} {name[:80]!r} is not allowed: use 1 to 64 of the characters a-z, 0-9, '_' and '-', "
            "starting with a letter or a digit."
        )
    return name


def temporary_path(path: Path) -> Path:
    """The path of a file or folder while it is written, before its rename to `path`; `sweep` removes leftovers.

    Both ends differ from the final name: a reader's `*.ckpt` matches dot files too in pathlib.
    """
    return path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}.partial")


class Storage:
    """Durable file operations, with the fault hook that tests set."""

    def __init__(self, *, hook: Callable[[str], None] = no_fault) -> None:
        self._hook = hook

    def fault(self, point: str) -> None:
        """Pass a fault point: `hook` may raise here what a dying process or a broken disk would do."""
        assert point in FAULT_POINTS, f"fault point {point!r} is not listed in FAULT_POINTS"
        self._hook(point)

    def atomic_write_bytes(self, path: Path, payload: bytes, *, durable: bool = True, private: bool = False) -> None:
        """Make `path` hold exactly `payload`: after a crash at any instant it holds the old bytes or the new.

        Args:
          path: file to replace or create; its folder must exist.
          durable: whether to fsync file and folder; False is for what may be lost in a power cut (a heartbeat).
          private: whether only this user may read it.
        Raises:
          DiskFull, StorageError: nothing was replaced.
        """
        temporary = temporary_path(path)
        with _named_os_errors(path, remove=temporary):
            self.fault("write.before_open")
            mode = 0o600 if private else 0o644
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
            try:
                if private:
                    os.fchmod(descriptor, mode)
                half = len(payload) // 2
                _write_all(descriptor, payload[:half])
                self.fault("write.torn")
                _write_all(descriptor, payload[half:])
                self.fault("write.before_fsync")
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.fault("write.before_rename")
            temporary.replace(path)
        with _named_os_errors(path, outcome="The new content is there but need not survive a power cut."):
            self.fault("write.before_folder_fsync")
            if durable:
                fsync_folder(path.parent)
            self.fault("write.done")

    def read_bytes(self, path: Path, *, max_bytes: int) -> bytes:
        """The whole file, which may not be a symbolic link.

        Raises:
          FileNotFoundError: there is none.
          StorageError: it is longer than `max_bytes`, or cannot be read.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
        try:
            with open(descriptor, "rb", closefd=True) as file:  # noqa: PTH123  from a descriptor opened without following links
                size = os.fstat(descriptor).st_size
                if size > max_bytes:
                    raise StorageError(f"{path} has {size} bytes, more than the {max_bytes} allowed for such a file.")
                return file.read(size + 1)  # more would set `max_bytes` of memory aside for a file of a few
        except IsADirectoryError as error:  # raised before the file object owns the descriptor
            os.close(descriptor)
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}.") from error

    def append_line(self, path: Path, line: bytes) -> None:
        """Add one line (without its newline) to a log; a crash may tear the last line but no earlier one.

        A torn last line is closed first, so that it spoils no other.

        Raises:
          DiskFull, StorageError: the line need not be there.
        """
        with _named_os_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
            try:
                self.fault("append.before_write")
                size = os.fstat(descriptor).st_size
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                payload = (b"\n" if torn else b"") + line + b"\n"
                half = len(payload) // 2
                _write_all(descriptor, payload[:half])
                self.fault("append.torn")
                _write_all(descriptor, payload[half:])
            finally:
                os.close(descriptor)

    def overwrite(self, path: Path, payload: bytes, *, offset: int, durable: bool) -> None:
        """Overwrite bytes inside an existing file; a power cut may leave a mixture there.

        Raises:
          DiskFull, StorageError: the bytes need not be there.
        """
        with _named_os_errors(path, outcome="What lies elsewhere in the file is intact."):
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                self.fault("overwrite.before_write")
                half = len(payload) // 2
                for start, part in ((0, payload[:half]), (half, payload[half:])):
                    if os.pwrite(descriptor, part, offset + start) != len(part):
                        raise OSError(errno.EIO, "only a part was written")
                    if start == 0:
                        self.fault("overwrite.torn")
                self.fault("overwrite.before_fsync")
                if durable:
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, durably; a copy of it where the file system knows no second names.

        Only for files that are replaced and never changed in place: both names show the same content.

        Raises:
          FileNotFoundError: there is no `source`.
          DiskFull, StorageError: `target` was not made.
        """
        with _named_os_errors(target):
            self.fault("link.before_link")
            found = _link_or_copy(source, target)
            if found:
                self.fault("link.before_fsync")
                fsync_folder(target.parent)
        if not found:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents durably; it may exist."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        if not missing:
            return
        with _named_os_errors(path):
            self.fault("make.before_mkdir")
            path.mkdir(parents=True, exist_ok=True)
            self.fault("make.before_fsync")
            for folder in missing:
                fsync_folder(folder.parent)

    def publish_file(self, temporary: Path, final: Path) -> None:
        """Give a complete temporary file, which is on the disk, its final name, durably.

        Raises:
          DiskFull, StorageError: `final` was not made, or need not survive a power cut.
        """
        with _named_os_errors(final):
            self.fault("publish.before_rename")
            temporary.rename(final)
            self.fault("publish.before_fsync")
            fsync_folder(final.parent)

    def publish_folder(self, temporary: Path, final: Path) -> None:
        """Give a complete temporary folder its final name, durably. `final` must not exist.

        Raises:
          DiskFull, StorageError: `final` was not made.
        """
        with _named_os_errors(final):
            fsync_folder(temporary)
            self.fault("folder.before_rename")
            temporary.rename(final)
            self.fault("folder.before_fsync")
            fsync_folder(final.parent)

    def swap_folder(self, temporary: Path, final: Path) -> None:
        """Exchange the names of a complete temporary folder and of the one that it replaces, durably.

        Where the file system cannot exchange two names, `final` is missing for an instant, and then lies at
        `set_aside_path(final)`.

        Raises:
          DiskFull, StorageError: `final` is the one of before, or the new one, which need not survive a power cut.
        """
        with _named_os_errors(final):
            fsync_folder(temporary)
            self.fault("swap.before_exchange")
            if not _exchange(temporary, final):
                aside = set_aside_path(final)
                final.rename(aside)
                temporary.rename(final)
                aside.rename(temporary)
            self.fault("swap.before_fsync")
            fsync_folder(final.parent)

    def remove(self, path: Path) -> None:
        """Remove a file; that it is already gone is no error."""
        with _named_os_errors(path):
            self.fault("remove.before_unlink")
            path.unlink(missing_ok=True)
            self.fault("remove.before_fsync")
            fsync_folder(path.parent)

    def remove_folder(self, path: Path) -> None:
        """Remove a folder with all that is in it; that it is already gone is no error."""
        with _named_os_errors(path):
            if path.exists():
                self.fault("remove.before_rmtree")
                shutil.rmtree(path)
                self.fault("remove.before_fsync")
                fsync_folder(path.parent)

    def sweep(self, folder: Path) -> int:
        """Remove the temporary files and folders that a crash left directly in `folder`; returns how many."""
        swept = 0
        with _named_os_errors(folder):
            for left in sorted(folder.glob(f"{TEMPORARY_PREFIX}*")):
                self.fault("sweep.before_remove")
                if left.is_dir() and not left.is_symlink():
                    for file in left.iterdir():
                        file.unlink()
                    left.rmdir()
                else:
                    left.unlink(missing_ok=True)
                swept += 1
        return swept


def set_aside_path(path: Path) -> Path:
    """The name of a folder while another takes its place, on file systems that cannot exchange two names."""
    return path.with_name(f"{path.name}.before")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(error, os.strerror(error), str(other))


def _link_or_copy(source: Path, target: Path) -> bool:
    """Links or copies a file; returns False if the source is missing."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with source.open("rb") as read, target.open("xb") as write:
            shutil.copyfileobj(read, write, _COPY_BYTES)
            write.flush()
            os.fsync(write.fileno())
    return True


def fsync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def _named_os_errors(
    path: Path, *, remove: Path | None = None, outcome: str = "What was there before is intact."
) -> Iterator[None]:
    """Turn an OSError into ours, after removing the temporary file. A dying process runs none of this."""
    try:
        yield
    except OSError as error:
        if remove is not None:
            with contextlib.suppress(OSError):
                remove.unlink(missing_ok=True)
        if error.errno in NO_SPACE:
            raise DiskFull(path) from error
        raise StorageError(f"{path} could not be written: {error.strerror or error}. {outcome}") from error
