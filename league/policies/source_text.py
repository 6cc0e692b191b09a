"""Reads "RUN", "RUN:NAME" and the folders of snapshots and packages as users type them."""

from __future__ import annotations

from pathlib import Path

from league.errors import MissingRun
from league.policies.auto_export import AUTO

FROM = ":"
"""Between a folder and the name of a policy in it."""


def parse_source(text: str) -> tuple[Path, str]:
    """The folder and the name of a policy in it, "auto" where none is given.

    Raises:
      MissingRun: there is no such folder.
    """
    path = Path(text).expanduser()
    if path.exists():
        return path, AUTO
    folder, colon, name = text.rpartition(FROM)
    if colon and name and Path(folder).expanduser().exists():
        return Path(folder).expanduser(), name
    raise MissingRun(
        f"{text} does not exist: give a run folder with a policy's name, such as runs/first:best, the folder of a "
        "snapshot, or one that `league export` made."
    )
