"""A small process that says which call of a game ended this process in native code, which nothing here can survive.

`faulthandler` writes of a segmentation fault, or of an `abort` in a library, into a pipe. The witness at its other end
waits for the end of this process, and tells in one sentence what was written. The call of code of others is noted in
shared memory by `league.envs.guard.foreign_code`.

Run as a program it is the witness: `witness.py PAGE`, the number of a file descriptor.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

PAGE_BYTES, LENGTH_BYTES = 512, 2
"""Size of the note of the call that is going on, and of the number of its bytes at its beginning."""

LAST_WORDS_S = 5.0
"""Longest time between the first word of `faulthandler` and the end of the process."""

LOOK_S = 1.0
FATAL = "Fatal Python error: "
PACKAGES = f"{os.sep}lib{os.sep}python"


class Witness:
    """This process's side: a page with the call that is going on, and a pipe for what `faulthandler` writes.

    It starts with the first call of code of others inside `watching`.
    """

    def __init__(self) -> None:
        self._is_wanted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._page: mmap.mmap | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """For the body, tell of an end in native code; where somebody else uses `faulthandler`, leave it to him."""
        self._is_wanted = not faulthandler.is_enabled()
        try:
            yield
        finally:
            self._is_wanted = False
            self._close()

    def begin(self, owner: str, what: str) -> None:
        """Note a call that begins."""
        if self._page is None:
            if not self._is_wanted:
                return
            self._start()
        self._write(f"{owner}: {what}".encode()[: PAGE_BYTES - LENGTH_BYTES])

    def end(self) -> None:
        """Note that the call has ended."""
        if self._page is not None:
            self._write(b"")

    def _write(self, call: bytes) -> None:
        assert self._page is not None
        self._page[: LENGTH_BYTES + len(call)] = len(call).to_bytes(LENGTH_BYTES, "little") + call

    def _start(self) -> None:
        """Start the process, in a session of its own, so that Ctrl-C does not reach it."""
        with tempfile.TemporaryFile() as file:
            file.truncate(PAGE_BYTES)
            self._page = mmap.mmap(file.fileno(), PAGE_BYTES)
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", __file__, str(file.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(file.fileno(),),
                bufsize=0,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        faulthandler.enable(file=self._process.stdin, all_threads=False)
        os.register_at_fork(after_in_child=self._leave)

    def _close(self) -> None:
        process = self._process
        if process is not None:
            self._leave()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=LAST_WORDS_S)

    def _leave(self) -> None:
        """Stop telling; also in a copy of this process, whose end is not ours."""
        if self._process is not None:
            faulthandler.disable()
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process, self._page = None, None


witness = Witness()


def sentence(words: str, call: str) -> str:
    """The sentence about the end of a process; "" where it did not end in native code.

    Args:
      words: what `faulthandler` wrote. call: "GAME: CALL", "" outside of code of others.
    """
    if FATAL not in words:
        return ""
    lines = [line.strip() for line in words[words.index(FATAL) :].splitlines()]
    places = [line for line in lines if line.startswith("File")]
    places = [place for place in places if PACKAGES not in place] or places  # rather the game than what it called
    where = f"; it was in {places[0]}" if places else ""
    reason = lines[0].removeprefix(FATAL)
    if not call:
        return f"this process ended in native code outside of any game ({reason}{where})."
    return (
        f"{call} ended this process in native code ({reason}{where}); what was saved is kept; with "
        "`env.workers: 1` such an end costs one episode."
    )


def _heard(parent: int) -> str:
    """What `faulthandler` wrote before the parent ended; "" where it ended otherwise, or lives on."""
    words, began = b"", 0.0
    os.set_blocking(0, False)
    while os.getppid() == parent:
        select.select([0], [], [], LOOK_S if not words else 0.02)
        with contextlib.suppress(BlockingIOError):
            heard = os.read(0, 1 << 16)
            if not heard:
                break
            began = began if words else time.monotonic()
            words += heard
        if words and time.monotonic() > began + LAST_WORDS_S:
            words = b""
    with contextlib.suppress(BlockingIOError):
        words += os.read(0, 1 << 16)
    return words.decode(errors="replace")


def main() -> None:
    """Wait for the end of the parent and tell its last words."""
    parent = os.getppid()
    with mmap.mmap(int(sys.argv[1]), PAGE_BYTES, prot=mmap.PROT_READ) as page:
        words = _heard(parent)
        size = int.from_bytes(page[:LENGTH_BYTES], "little")
        call = page[LENGTH_BYTES : LENGTH_BYTES + size].decode(errors="replace")
    text = sentence(words, call)
    if text:
        sys.stderr.write(f"league: {text}\n")


if __name__ == "__main__":
    main()
