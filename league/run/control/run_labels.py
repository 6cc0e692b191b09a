"""Labels of a run: words by which its user finds it again, in a file of the run folder; the run never reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from league.errors import LeagueError
from league.store.storage import Storage

LABELS_FILE = "labels.json"
MAX_LABELS, MAX_FILE_BYTES = 12, 1 << 14
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/=+-]{0,39}")


def read_labels(run: Path) -> tuple[str, ...]:
    """The labels of a run folder; none where there is no such file, or it holds something else."""
    try:
        return tuple(
            msgspec.json.decode(Storage().read_bytes(run / LABELS_FILE, max_bytes=MAX_FILE_BYTES), type=list[str])
        )
    except (OSError, LeagueError, msgspec.MsgspecError, UnicodeDecodeError):
        return ()


def write_labels(run: Path, labels: Sequence[str]) -> None:
    """Give a run folder these labels in the place of those that it has.

    Raises:
      LeagueError: too many, or one that is no label.
    """
    wanted = list(dict.fromkeys(label.strip() for label in labels if label.strip()))
    if len(wanted) > MAX_LABELS:
        raise LeagueError(f"a run has at most {MAX_LABELS} labels, not {len(wanted)}.")
    for label in wanted:
        if not _LABEL.fullmatch(label):
            raise LeagueError(f"{label[:80]!r} is no label: at most 40 letters, digits, spaces and . _ / = + - fit.")
    Storage().atomic_write_bytes(run / LABELS_FILE, msgspec.json.encode(wanted))
