"""The run folder: the paths of its files, its lock and its heartbeat.

<run>/config.yaml   resolved configuration       <run>/status.json  heartbeat of the daemon
<run>/journal.db    what happened                <run>/run.lock     held by the live daemon
<run>/snapshots/    frozen policies              <run>/metrics.jsonl
<run>/checkpoints/  restart states of learners   <run>/logs/, <run>/wandb/, <run>/replays/
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import msgspec

from league.errors import MissingRun, RunExists, StorageError
from league.store.lock import Holder, RunLock, is_holding, is_of_this_host
from league.store.storage import Storage, checked_name

logger = logging.getLogger(__name__)

MAX_CONFIG_BYTES = 1 << 20
MAX_STATUS_BYTES = 1 << 20
HOSTS_FILE, CLOCK_FILE = "hosts.safetensors", "clock.json"
RESUME_FILES = {HOSTS_FILE: 4 << 30, CLOCK_FILE: 1 << 16}
"""The files that a stop leaves beside the journal, with their largest sizes in bytes: games in flight and the clock."""

MAX_SILENCE_S = 300.0
"""Oldest heartbeat of a daemon on another host that still counts as alive; clocks of hosts may differ a little."""
_JOB_FILES = "runtime_resources"
"""Folder in which Ray keeps what jobs bring along."""

_FOLDERS = ("snapshots", "checkpoints", "logs", "wandb")


@dataclass(frozen=True)
class WorkerStatus:
    """One process of the run.

    Fields:
      kind: "actor_host", "learner_host", "tracker" or the like. device: where its learners compute, for people.
      name: of a host, such as "actor-0".
    """

    kind: str
    pid: int
    device: str = ""
    name: str = ""

    def text(self) -> str:
        return f"{self.kind} {self.pid}" + (f" ({self.device})" if self.device else "")


@dataclass(frozen=True)
class AlertStatus:
    """An alert that has not recovered.

    Fields:
      alert: name of its condition. subject: what it is about, empty for the run itself. text: one sentence.
      since: wall time at which it began, seconds since 1970.
    """

    alert: str
    subject: str
    text: str
    since: float


@dataclass(frozen=True, kw_only=True)
class Troubles:
    """The troubles of a run as its daemon counts them: a part of the heartbeat, and from there of every view of a run.

    Fields:
      refused, hosts_lost: answers refused and hosts lost since the daemon's start.
      parked: hosts that were lost so often that they are tried again only now and then.
      quarantined_games: that failed so often that they are not played any more.
      stuck: the call of an env that has not come back for long, with its game; empty for none.
    """

    refused: int = 0
    hosts_lost: int = 0
    parked: tuple[str, ...] = ()
    quarantined_games: int = 0
    stuck: str = ""


@dataclass(frozen=True)
class RunStatus(Troubles):
    """The daemon's heartbeat, written about once a second; it is not durable, and only the journal is the truth.

    Fields:
      daemon: the process that wrote it.
      phase: "starting", "running", "draining", "stopped" or "failed".
      started_at, heartbeat_at: wall time, seconds since 1970: labels for people.
      journal_seq: events durable when it was written; a journal that later holds fewer has lost some.
      workers: processes of the run on this host.
      games, env_steps, players, snapshots: totals of the league.
      steps_per_s: env steps per second, recent.
      message: one line for people, such as why the run failed.
      trained_s: seconds trained since the run's first start; budget_spent: fraction of the budget in [0, 1]. None
        before the daemon has counted either.
      seat_names: of the game, empty where it has none or an earlier version wrote it.
      alerts: that have not recovered. paused_by: who paused training, empty where it is not paused.
    """

    daemon: Holder
    phase: str
    started_at: float
    heartbeat_at: float
    journal_seq: int
    workers: tuple[WorkerStatus, ...] = ()
    games: int = 0
    env_steps: int = 0
    steps_per_s: float = 0.0
    players: int = 0
    snapshots: int = 0
    message: str = ""
    trained_s: float | None = None
    budget_spent: float | None = None
    alerts: tuple[AlertStatus, ...] = ()
    paused_by: str = ""
    seat_names: tuple[str, ...] = ()


MIN_SPENT = 0.005
"""Fraction of a budget from which on there is a pace."""

NEVER = RunStatus(Holder(0, "", 0), "stopped", 0.0, 0.0, 0)
"""In the place of a heartbeat, before the first."""


@dataclass(frozen=True)
class RunAccount:
    """The daemon of a run as its folder shows it now: what every view of a run draws from.

    Fields:
      status: the last heartbeat. Its phase may also be "killed": it ended without a last heartbeat; or "silent": it
        runs on another host and has not written for minutes. Of a daemon that is gone there is no more than still
        holds: no workers, speed, parked hosts, call that is stuck, alerts or pause.
      live: whether the daemon works on the run.
      age_s: seconds since the daemon last wrote, 0 before the first heartbeat.
    """

    status: RunStatus = NEVER
    live: bool = False
    age_s: float = 0.0

    @property
    def began(self) -> bool:
        """True once there was a heartbeat."""
        return self.status is not NEVER

    @property
    def left_s(self) -> float | None:
        """Seconds until the budget is spent at the pace so far; None without a daemon, a budget or a pace."""
        spent, trained_s = self.status.budget_spent, self.status.trained_s
        if not self.live or trained_s is None or spent is None or spent < MIN_SPENT:
            return None
        return trained_s * max(1.0 - spent, 0.0) / spent


def _no_run(path: Path) -> str:
    """The error for a path that is no run folder, with a suggestion of the right path."""
    if not path.exists():
        return f"{path} does not exist: give a run folder (`league train CONFIG` makes one under runs/)."
    around = next((folder for folder in path.parents if (folder / "config.yaml").is_file()), None)
    if around is not None and (around / "journal.db").is_file():
        return f"{path} is not a run folder but a part of one: give {around}."
    what = "it has no config.yaml" if path.is_dir() else "it is a file"
    return f"{path} is not a run folder ({what}): `league train CONFIG` makes one under runs/."


class RunFolder:
    """Paths of one run, its lock and its heartbeat. Holds no open file until `lock` is acquired."""

    def __init__(self, path: Path, *, storage: Storage | None = None) -> None:
        """Args: path: made absolute at once, since a worker's current folder is another one."""
        self.path = path.absolute()
        self.storage = storage or Storage()
        self.lock = RunLock(self.path / "run.lock")
        self.config_path = self.path / "config.yaml"
        self.journal_path = self.path / "journal.db"
        self.status_path = self.path / "status.json"
        self.hosts_path = self.path / HOSTS_FILE
        self.clock_path = self.path / CLOCK_FILE
        self.metrics_path = self.path / "metrics.jsonl"
        self.snapshots_path = self.path / "snapshots"
        self.checkpoints_path = self.path / "checkpoints"
        self.logs_path = self.path / "logs"
        self.wandb_path = self.path / "wandb"
        self.rows_path = self.path / "rows"
        self.replays_path = self.path / "replays"
        self.exports_path = self.path / "exports.json"
        self.supervisor_path = self.path / "supervisor.json"
        self.supervisor_lock = RunLock(self.path / "supervisor.lock")
        self.door_path = self.path / "control.json"
        self.tokens_path = self.path / "tokens"

    @property
    def console_log_path(self) -> Path:
        """Output of a run that `league up` started."""
        return self.logs_path / "console.log"

    @classmethod
    def create(cls, path: Path, *, config_yaml: str, storage: Storage | None = None) -> RunFolder:
        """A new run folder. The configuration is written last: a folder without one is not a run.

        Raises:
          RunExists: something that holds a run is there.
        """
        run = cls(path, storage=storage)
        if run.config_path.exists() or run.journal_path.exists():
            raise RunExists(
                f"{run.path} already holds a run: continue it with `league resume {path}`, or choose another --run-dir."
            )
        for name in _FOLDERS:
            run.storage.make_folder(run.path / name)
        run.storage.atomic_write_bytes(run.config_path, config_yaml.encode())
        return run

    @classmethod
    def open(cls, path: Path, *, storage: Storage | None = None) -> RunFolder:
        """An existing run folder.

        Raises:
          MissingRun: there is none.
        """
        run = cls(path, storage=storage)
        if not run.config_path.is_file():
            raise MissingRun(_no_run(run.path))
        return run

    def make_logs_folder(self) -> None:
        """Make the folder of logs, before the run itself is made where something else already writes there."""
        self.storage.make_folder(self.logs_path)

    def account(self) -> RunAccount:
        """The daemon of the run as it is now. Raises as `read_status`."""
        return self.account_of(self.read_status())

    def account_of(self, status: RunStatus | None) -> RunAccount:
        """As `account`, from a heartbeat that was read before; None before the first."""
        if status is None:
            return RunAccount()
        age_s = max(time.time() - status.heartbeat_at, 0.0)
        if self.is_live(status):
            return RunAccount(status, live=True, age_s=age_s)
        lost = "killed" if is_of_this_host(status.daemon) else "silent"
        phase = status.phase if status.phase in ("stopped", "failed") else lost
        gone = replace(status, phase=phase, workers=(), steps_per_s=0.0, parked=(), stuck="", alerts=(), paused_by="")
        return RunAccount(gone, age_s=age_s)

    def read_config(self) -> str:
        """The resolved configuration as written at the start.

        Raises:
          StorageError: it cannot be read, or is no text in UTF-8.
        """
        content = self.storage.read_bytes(self.config_path, max_bytes=MAX_CONFIG_BYTES)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"{self.config_path} is not text in UTF-8 (byte {error.start}): `league resume RUN --restore-config` "
                "writes it again as the journal has it."
            ) from error

    def write_config(self, text: str) -> None:
        """Replace the configuration; the caller holds the lock and has the text in the journal."""
        self.storage.atomic_write_bytes(self.config_path, text.encode())

    def read_resume_file(self, name: str) -> bytes:
        """One of `RESUME_FILES`.

        Raises:
          FileNotFoundError: it is not there. StorageError: it is too large, or cannot be read.
        """
        return self.storage.read_bytes(self.path / name, max_bytes=RESUME_FILES[name])

    def write_resume_file(self, name: str, content: bytes | None, *, durable: bool = True) -> None:
        """Replace one of `RESUME_FILES`; None removes it."""
        assert name in RESUME_FILES
        if content is None:
            self.storage.remove(self.path / name)
        else:
            self.storage.atomic_write_bytes(self.path / name, content, durable=durable)

    def write_status(self, status: RunStatus) -> None:
        """Replace the heartbeat; atomic, not durable."""
        self.storage.atomic_write_bytes(self.status_path, msgspec.json.encode(status), durable=False)

    @property
    def seat_names(self) -> tuple[str, ...]:
        """[S] as its daemon last noted them; empty where the game names none, or nothing can be read."""
        try:
            status = self.read_status()
        except StorageError:
            return ()
        return () if status is None else status.seat_names

    def read_status(self) -> RunStatus | None:
        """The last heartbeat; None before the first one, and where a power cut left an empty or torn file.

        Heartbeats are not flushed to the disk. The journal is, and needs none of them.

        Raises:
          StorageError: the file cannot be read, or holds something else, such as the status of another version.
        """
        try:
            payload = self.storage.read_bytes(self.status_path, max_bytes=MAX_STATUS_BYTES)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(payload, type=RunStatus)
        except msgspec.ValidationError as error:
            raise StorageError(
                f"{self.status_path} is not a status file ({error}): remove it, the next heartbeat writes a new one."
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def durable_seq(self) -> int:
        """Events that the last heartbeat saw durable; 0, with a line in the log, where it cannot be read.

        The journal has a mark of its own that shows a lost end.
        """
        try:
            status = self.read_status()
        except StorageError as error:
            logger.warning("the journal is read without the heartbeat: %s", error)
            return 0
        return 0 if status is None else status.journal_seq

    def is_live(self, status: RunStatus, *, wall_time: Callable[[], float] = time.time) -> bool:
        """True while the daemon that wrote the status is still working on the run.

        A daemon on another host is judged by its heartbeat: one that is too old means a dead daemon or a copied folder.
        """
        if status.phase in ("stopped", "failed") or not is_holding(status.daemon, self.path):
            return False
        return is_of_this_host(status.daemon) or wall_time() - status.heartbeat_at < MAX_SILENCE_S


def new_run_path(name: str, *, now: datetime, root: Path = Path("runs")) -> Path:
    """`root/<name>-<YYYYmmdd-HHMMSS>`, with `-2`, `-3`, ... appended where that is taken.

    Raises:
      InvalidName: the name may not be part of a path.
    """
    stem = f"{checked_name(name, what='the run name')}-{now:%Y%m%d-%H%M%S}"
    path = root / stem
    number = 2
    while path.exists():
        path = root / f"{stem}-{number}"
        number += 1
    return path


def require_lasting(path: Path) -> None:
    """Refuse a folder that would be removed with its job: the copy of the working directory in which a Ray job runs.

    Raises:
      StorageError: it is one.
    """
    if _JOB_FILES in path.absolute().parts:
        raise StorageError(
            f"{path.absolute()} lies in the job's own copy of the working directory, which Ray removes after the job: "
            "give `--run-dir` on a disk that stays."
        )
