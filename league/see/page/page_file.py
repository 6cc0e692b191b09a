"""RUN/page.json: the address of the page that is served beside a daemon. Only the run's user may read it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.config.loading import parse_config
from league.errors import StorageError
from league.http.token_file import Tokens, known_tokens
from league.store.lock import Holder, is_holding
from league.store.run_folder import RunFolder
from league.store.storage import Storage

PAGE_FILE = "page.json"
MAX_BYTES = 1 << 14
START_S, LOOK_EVERY_S = 20.0, 0.1
"""Longest wait for the page of a run that has just been started."""


@dataclass(frozen=True)
class PageAddress:
    """The address of a page. base: without a token. tokens: of an operator and a reader."""

    base: str
    tokens: Tokens

    @property
    def url(self) -> str:
        """The whole address for an operator; what stands behind `#` is sent to nobody."""
        return f"{self.base}/#token={self.tokens.operator}"

    @property
    def reader_url(self) -> str:
        """The whole address for somebody who may see all and change nothing."""
        return f"{self.base}/#token={self.tokens.reader}"


class PageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page of a run. server: the process that serves it. base: its address; the tokens lie in RUN/tokens."""

    server: Holder
    base: str


def read_page_file(path: Path) -> PageFile | None:
    """The last page that was served beside a run; None where there was none."""
    try:
        payload = Storage().read_bytes(path / PAGE_FILE, max_bytes=MAX_BYTES)
        return msgspec.json.decode(payload, type=PageFile)
    except (FileNotFoundError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def page_beside(
    path: Path, *, wait_s: float = START_S, sleep: Callable[[float], None] = time.sleep
) -> PageAddress | None:
    """`live_page`, awaited while a live run that serves its page has not begun to.

    Raises:
      LeagueError: the heartbeat or the configuration of the run cannot be read.
    """
    deadline, folder = time.monotonic() + wait_s, RunFolder(path)
    found = live_page(path)
    if found is not None or not _is_live(folder):
        return found
    if not parse_config(folder.read_config(), source=str(folder.config_path)).control.page:
        return None
    while (found := live_page(path)) is None and time.monotonic() < deadline and _is_live(folder):
        sleep(LOOK_EVERY_S)
    return found


def _is_live(folder: RunFolder) -> bool:
    return folder.config_path.is_file() and folder.account().live


def live_page(path: Path) -> PageAddress | None:
    """The address of the page that is served beside a run now; None where there is none."""
    known, tokens = read_page_file(path), known_tokens(RunFolder(path).tokens_path)
    if known is None or tokens is None or not is_holding(known.server, path):
        return None
    return PageAddress(known.base, tokens)
