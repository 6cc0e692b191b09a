"""Packages in repositories of a model hub, hf://OWNER/NAME, fetched as `league push` put them there.

A repository is a stranger's folder: weights, manifest and card are taken, and nothing of it is run. Its table of
digests pins every file; a revision that is a commit pins that table.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path

from league.config.contender_names import hub_endpoint, hub_folder, split_hub
from league.policies.fetched.zoo_index import MAX_INDEX_BYTES, Source, is_there, keep
from league.policies.package import SUMS_FILE, is_package

_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_hub(written: str, *, clock: Callable[[], float] = time.monotonic) -> Path:
    """Fetch the package of hf://OWNER/NAME[@REVISION] unless it is in the cache as it is there; returns its folder.

    Raises:
      LeagueError: no such repository, it answers too late or too much, or a file is not what its digest says.
      CorruptSnapshot: it holds no package.
    """
    repository, revision = split_hub(written)
    folder = hub_folder(written)
    if _COMMIT.fullmatch(revision) and is_package(folder):  # a commit never changes
        return folder
    with Source(hub_endpoint(), clock=clock, follows=True) as source:
        place = f"{repository}/resolve/{revision}/"
        sums = source.read(f"{place}{SUMS_FILE}", most=MAX_INDEX_BYTES)
        if not is_there(folder, hashlib.sha256(sums).hexdigest()):
            keep(source, place, sums, folder)
    return folder
