"""Reads "RUN", "RUN:NAME" and the folders of snapshots and packages as users type them."""

from __future__ import annotations

from pathlib import Path

from league.config.contender_names import split_source
from league.errors import MissingRun
from league.policies.auto_export import AUTO


def parse_source(text: str) -> tuple[Path, str]:
    """The folder and the name of a policy in it, "auto" where none is given.

    Raises:
      MissingRun: there is no such folder.
    """
    folder, name = split_source(text)
    if folder.exists():
        return folder, name or AUTO
    raise MissingRun(
        f"{text} does not exist: give a run folder with a policy's name, such as runs/first:best, the folder of a "
        "snapshot, or one that `league export` made."
    )
