"""RUN/page.json: the address of the page that is served beside a daemon. Only the run's user may read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.store.lock import Holder, is_alive
from league.store.storage import Storage

HOST = "127.0.0.1"
PAGE_FILE = "page.json"
MAX_BYTES = 1 << 14


@dataclass(frozen=True)
class PageAddress:
    """The address of a page. url: with its token, for a browser."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """The whole address; what stands behind `#` is sent to nobody."""
        return f"http://{HOST}:{self.port}/#token={self.token}"


class PageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page of a run. server: the process that serves it; port, token: of its address."""

    server: Holder
    port: int
    token: str

    @property
    def address(self) -> PageAddress:
        """Its address."""
        return PageAddress(self.port, self.token)


def read_page_file(path: Path) -> PageFile | None:
    """The last page that was served beside a run; None where there was none."""
    try:
        payload = Storage().read_bytes(path / PAGE_FILE, max_bytes=MAX_BYTES)
        return msgspec.json.decode(payload, type=PageFile)
    except (FileNotFoundError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def live_page(path: Path) -> PageAddress | None:
    """The address of the page that is served beside a run now; None where there is none."""
    known = read_page_file(path)
    return known.address if known is not None and is_alive(known.server) else None
