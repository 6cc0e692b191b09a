"""`league bundle`: one archive with what somebody needs who is to help with a run; no weights, no secrets.

Each part is made by itself, so that a damaged run has a bundle too: it then says what could not be read.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import json
import os
import platform
import shutil
import tarfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from league.core.state.events import EVENTS
from league.errors import LeagueError
from league.json_report import JsonReport
from league.operate.support.redaction import Redactor, secrets_here
from league.run.control.log_files import last_lines, log_names, log_path
from league.see.reports.doctor import examine_run
from league.see.reports.status.status_report import read_status
from league.store.journal_reader import JournalReader
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from league.store.supervision import read_supervision
from league.version import __version__

EVENTS_KEPT = 1_000
LOG_LINES = 2_000
PACKAGES = ("torch", "numpy", "ray", "wandb", "safetensors", "lz4", "msgspec", "pydantic", "pettingzoo", "gymnasium")
MAX_FILES = 5_000
"""Files of the run that are listed at most."""

_README = """A bundle of the run {run}, made by `league bundle` {version} on {now}.

status.json, doctor.txt   what `league status --json` and `league doctor` say
config.yaml               configuration of the run
events.jsonl              the last {events:,} events of its journal
logs/                     the last {lines:,} lines of each log
files.txt                 its files with their sizes; none of weights is here
machine.json              this machine and its software
problems.txt              parts that could not be made, where there are any

Passwords, tokens, keys and the paths of addresses were replaced by [removed]. Names of users, machines and folders
are as they were: read it before you send it to anybody.
"""


@dataclass(frozen=True)
class Bundle(JsonReport):
    """The archive that was written. parts: names in it; problems: one line for each part that could not be made."""

    path: str
    num_bytes: int
    parts: tuple[str, ...]
    problems: tuple[str, ...]

    def text(self) -> str:
        lines = [f"{self.path}: {self.num_bytes / 1024:,.0f} KiB, {len(self.parts)} files, no weights, secrets removed"]
        return "\n".join([*lines, *(f"* not in it: {problem}" for problem in self.problems)])


def bundle_run(path: Path, target: Path | None, *, now: datetime) -> Bundle:
    """Write a bundle of a run, also of a live or damaged one.

    Args:
      target: file that is made; None for NAME-bundle-DATE.tar.gz in the current folder.
    Raises:
      MissingRun: there is no run. LeagueError: the file is there already. DiskFull, StorageError: it was not written.
    """
    folder = RunFolder.open(path)
    file = target or Path(f"{folder.path.name}-bundle-{now:%Y%m%d-%H%M%S}.tar.gz")
    if file.exists():
        raise LeagueError(f"{file} is there already: name another file.")
    redactor = Redactor(secrets_here(folder))
    parts: dict[str, str] = {}
    problems: list[str] = []
    for name, make in _makers(folder, now):
        try:
            parts[name] = redactor.clean(make())
        except LeagueError as error:
            problems.append(f"{name}: {error}")
        except Exception as error:  # boundary: whatever is wrong with the run, the other parts are wanted all the more
            problems.append(f"{name}: {error!r:.300}")
            parts[f"{name}.error.txt"] = redactor.clean(traceback.format_exc())
    if problems:
        parts["problems.txt"] = redactor.clean("\n".join(problems) + "\n")
    payload = _archive(parts, stem=f"{folder.path.name}-bundle", now=now)
    Storage().atomic_write_bytes(file, payload, private=True)
    return Bundle(str(file), len(payload), tuple(parts), tuple(problems))


def _makers(folder: RunFolder, now: datetime) -> Iterator[tuple[str, Callable[[], str]]]:
    yield (
        "README.txt",
        lambda: _README.format(
            run=folder.path.name, version=__version__, now=f"{now:%Y-%m-%d %H:%M}", events=EVENTS_KEPT, lines=LOG_LINES
        ),
    )
    yield "status.json", lambda: read_status(folder.path).to_json() + "\n"
    yield "doctor.txt", lambda: examine_run(folder.path).text() + "\n"
    yield "config.yaml", folder.read_config
    yield "events.jsonl", lambda: _events(folder)
    yield "supervisor.json", lambda: msgspec.json.encode(read_supervision(folder)).decode() + "\n"
    yield "files.txt", lambda: _files(folder.path)
    yield "machine.json", lambda: json.dumps(_machine(folder), indent=1) + "\n"
    for name in log_names(folder):
        yield f"logs/{name}.log", functools.partial(_log, folder, name)


def _log(folder: RunFolder, name: str) -> str:
    return "\n".join(last_lines(log_path(folder, name), LOG_LINES)) + "\n"


def _events(folder: RunFolder) -> str:
    """The last events, a JSON object in each line."""
    lines = []
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        first = max(journal.head().seq - EVENTS_KEPT + 1, 1)
        for seq, event in journal.replay(from_seq=first):
            body = msgspec.json.encode({"seq": seq, "kind": type(event).__name__, "event": event})
            lines.append(body.decode())
    return "\n".join(lines) + "\n"


def _files(root: Path) -> str:
    found = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    lines = [f"{path.stat().st_size:>14,}  {path.relative_to(root)}" for path in found[:MAX_FILES]]
    if len(found) > MAX_FILES:
        lines.append(f"{len(found) - MAX_FILES:,} more")
    return "\n".join(lines) + "\n"


def _machine(folder: RunFolder) -> dict[str, object]:
    """Facts of this machine that take no time to ask for."""
    disk = shutil.disk_usage(folder.path)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = {"league": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "cores of this process": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "memory_bytes": memory,
        "disk": {"total_bytes": disk.total, "free_bytes": disk.free},
        "gpus": sorted(path.name for path in Path("/proc/driver/nvidia/gpus").glob("*")),
        "versions": versions,
    }


def _archive(parts: dict[str, str], *, stem: str, now: datetime) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in parts.items():
            payload = text.encode(errors="replace")
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mtime, entry.mode = len(payload), int(now.timestamp()), 0o600
            archive.addfile(entry, io.BytesIO(payload))
    return buffer.getvalue()
