"""Metrics to wandb without training ever waiting for it: rows go to a spool on disk, a process of its own uploads them.

The process (`wandb_worker`, the only place that imports wandb) reads the spool from where it last stopped. It ends with
its standard input, which closes with the sink or the daemon, however that died. It then hands over what is left, and
ends at the deadline at the latest.
"""

from __future__ import annotations

import contextlib
import netrc
import os
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from league.config.run_config import WandbConfig
from league.monitor.names import ELAPSED_S
from league.monitor.sink import SinkContext
from league.monitor.spool import Spool
from league.trackers.identity import lasting_identity
from league.trackers.wandb_job import WandbJob

CLOSE_DEADLINE_S, LAST_DEADLINE_S = 8.0, 3.0
"""Longest wait for the uploading process at the end, and how much longer it lives where the daemon has died."""

ROWS_PER_E_FOLD = 10_000
"""Rows while a run's time grows by a factor of e: 2 s apart until five and a half hours, four minutes apart after
30 days. wandb keeps every row that it is given in a file of its own in the run folder, which cannot be thinned."""
_DEFAULT_SERVER = "https://api.wandb.ai"


def resolved_mode(mode: str, environment: Mapping[str, str]) -> str:
    """The mode to start in: for "auto" what WANDB_MODE says, else online where the user is logged in, else offline."""
    if mode != "auto":
        return mode
    asked = environment.get("WANDB_MODE", "")
    if asked in ("online", "offline", "disabled"):
        return asked
    return "online" if _is_logged_in(environment) else "offline"


def _is_logged_in(environment: Mapping[str, str]) -> bool:
    """True if the environment or the netrc file holds a key; the key itself is not kept."""
    if environment.get("WANDB_API_KEY"):
        return True
    server = urllib.parse.urlsplit(environment.get("WANDB_BASE_URL") or _DEFAULT_SERVER).hostname or ""
    home = Path(environment.get("HOME", "/"))
    for path in (environment.get("NETRC"), home / ".netrc", home / "_netrc"):
        if path and Path(path).is_file():
            with contextlib.suppress(netrc.NetrcParseError, OSError, UnicodeDecodeError):
                return netrc.netrc(path).authenticators(server) is not None
    return False


class WandbSink:
    """Spools rows and minds the uploading process; `start` before the first row."""

    def __init__(
        self,
        job: WandbJob,
        *,
        spool: Spool,
        warn: Callable[[str], None],
        close_deadline_s: float,
    ) -> None:
        self._close_deadline_s = close_deadline_s
        self._job = job
        self._spool = spool
        self._warn = warn
        self._worker: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._warned = False
        self._logged_at: float | None = None
        self._folder = Path(job.run_path) / "wandb"

    @property
    def worker_pid(self) -> int | None:
        """The uploading process, while there is one."""
        return None if self._worker is None else self._worker.pid

    def start(self) -> None:
        """Start the uploading process; returns at once."""
        try:
            self._worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "league.trackers.wandb_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C at the terminal is for the daemon, which then closes us in order
            )
            assert self._worker.stdin is not None and self._worker.stdout is not None
            os.set_blocking(self._worker.stdout.fileno(), False)
            self._worker.stdin.write(msgspec.json.encode(self._job) + b"\n")
            self._worker.stdin.flush()
        except OSError as error:
            self._stop_worker()
            self._warn_once(f"the uploading process could not be started ({error.strerror})")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """As in the protocol: one line on the local disk, less often the longer the run has lasted."""
        elapsed = values.get(ELAPSED_S.name)
        if elapsed is None or self._logged_at is None or elapsed - self._logged_at >= elapsed / ROWS_PER_E_FOLD:
            self._spool.log(step, values)
            self._logged_at = elapsed
        self._read_messages()
        if self._worker is not None and self._worker.poll() is not None:
            self._stop_worker()
            self._warn_once("the uploading process has ended")

    def close(self) -> None:
        """As in the protocol: waits `close_deadline_s` at most."""
        self._spool.close()
        worker = self._worker
        if worker is None:
            return
        assert worker.stdin is not None
        with contextlib.suppress(OSError):
            worker.stdin.close()
        try:
            worker.wait(self._close_deadline_s)
            self._read_messages()
        except subprocess.TimeoutExpired:
            self._read_messages()
            self._warn_once(f"the server took more than {self._close_deadline_s:g} s to finish")
        self._stop_worker()

    def _read_messages(self) -> None:
        """Pass on what the worker says: a line `folder PATH`, `warning TEXT` or `note TEXT`."""
        if self._worker is None or self._worker.stdout is None:
            return
        self._unread += self._worker.stdout.read() or b""
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            kind, _, text = line.decode(errors="replace").partition(" ")
            if kind == "folder":
                self._folder = Path(text)
            elif kind == "warning":
                self._warn_once(text)
            elif kind == "note":
                self._warn(f"wandb: {text}.")

    def _warn_once(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(
                f"wandb: {reason}. Training is not affected; the metrics are kept. Upload them later with "
                f"`wandb sync {self._folder}`."
            )

    def _stop_worker(self) -> None:
        """End the process and what it started, and forget it."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class NoSink:
    """Null object for a disabled tracker."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def open_wandb_sink(context: SinkContext) -> WandbSink | NoSink:
    """The sink, started; or none where the settings or the environment disable it."""
    settings = context.settings if isinstance(context.settings, WandbConfig) else WandbConfig()
    mode = resolved_mode(settings.mode, os.environ)
    if mode == "disabled":
        return NoSink()
    folder = context.run_path / "wandb"
    context.storage.make_folder(folder)
    identity = lasting_identity(folder, context.run_name, storage=context.storage)
    job = WandbJob(
        run_path=str(context.run_path),
        spool=str(folder / "spool.jsonl"),
        mode=mode,
        group=context.run_name,
        run_id=identity.run_id,
        config={**context.config, "auto": dict(context.reasons)},
        settings=settings,
        last_deadline_s=CLOSE_DEADLINE_S + LAST_DEADLINE_S,
    )
    spool = Spool(
        Path(job.spool),
        storage=context.storage,
        clock=context.clock,
        warn=context.warn,
        max_bytes=context.spool_bytes,
    )
    sink = WandbSink(job, spool=spool, warn=context.warn, close_deadline_s=CLOSE_DEADLINE_S)
    sink.start()
    return sink
