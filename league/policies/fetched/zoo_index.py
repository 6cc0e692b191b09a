"""Indexes of zoos: packages that lie at an address, fetched into this user's cache, each pinned by a digest.

The index is index.json: `{"packages": {NAME: SHA256}}`, the digest of NAME/SHA256SUMS, which pins every other file.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx
import msgspec

from league.config.contender_names import fetched_folder, is_web, zoo_name_fits, zoo_texts
from league.errors import LeagueError
from league.http.address import is_loopback
from league.policies.package import SUMS_FILE, read_package, read_sums

INDEX_FILE = "index.json"
MAX_INDEX_BYTES, MAX_BYTES = 1 << 20, 256 << 20
"""Bytes of an index, and of all that one call fetches."""
LONGEST_S, SILENT_S = 300.0, 20.0
"""Seconds for one call, and for one answer to come on."""
SUFFIXES = (".json", ".md", ".safetensors")
"""Of the files that are fetched: none of them can hold code that a reader would run."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ZooIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """packages: name -> sha256 of its table of digests."""

    packages: dict[str, str]


def index_of(folder: Path) -> ZooIndex:
    """The index of the packages directly in a folder."""
    found = sorted(folder.glob(f"*/{SUMS_FILE}"))
    return ZooIndex({path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found})


def named_indexes() -> list[str]:
    """The addresses in the variable of the zoo's places."""
    return [text for text in zoo_texts() if is_web(text)]


def fetch_zoo(address: str, *, clock: Callable[[], float] = time.monotonic) -> Path:
    """Fetch the packages of an index that are not in the cache as they are there; returns their folder.

    Args:
      address: of the folder that holds the index.
    Raises:
      LeagueError: the address cannot be reached, answers too late or too much, or a file is not what the index says.
    """
    folder = fetched_folder(address)
    with Source(address, clock=clock) as source:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            index = msgspec.json.decode(source.read(INDEX_FILE, most=MAX_INDEX_BYTES), type=ZooIndex)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LeagueError(f"{address}/{INDEX_FILE} is no index of a zoo: {error}.") from error
        for name, digest in index.packages.items():
            if not zoo_name_fits(name) or not _DIGEST.fullmatch(digest):
                raise LeagueError(f"{address} lists {name[:80]!r} with {digest[:80]!r}: no name with a sha256.")
            if not is_there(folder / name, digest):
                sums = source.read(f"{name}/{SUMS_FILE}", most=MAX_INDEX_BYTES)
                if hashlib.sha256(sums).hexdigest() != digest:
                    raise LeagueError(f"{name}/{SUMS_FILE} is not what the index says: nothing of it is kept.")
                for file in named_by(sums):
                    if not file.endswith(SUFFIXES):
                        raise LeagueError(f"{name} holds {file}: an index gives {', '.join(SUFFIXES)} alone.")
                keep(source, f"{name}/", sums, folder / name)
    return folder


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    if not is_web(address) or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise LeagueError(f"{address} is no address of a zoo: write https://HOST/PATH.")
    _require_https(address)


def _require_https(address: str, *, or_here: bool = True) -> None:
    """Raise LeagueError for an address without https, if it is not, where that will do, of this machine."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (or_here and is_loopback(parts.hostname or "")):
        raise LeagueError(f"{address} could be changed on its way: use https.")


class Source:
    """Reads files below an address within bounds of time and size that all of them share; a context manager.

    Args:
      follows: whether an answer may name another address, which is asked then.
    """

    def __init__(self, address: str, *, clock: Callable[[], float], follows: bool = False) -> None:
        _require_safe(address)
        or_here = urlsplit(address).scheme != "https"  # no answer from outside names a service of this machine
        self._client = httpx.Client(
            timeout=SILENT_S,
            follow_redirects=follows,
            event_hooks={"request": [lambda request: _require_https(str(request.url), or_here=or_here)]},
        )
        self._address, self._until, self._clock = address.rstrip("/"), clock() + LONGEST_S, clock
        self._left = MAX_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """A file of at most so many bytes, or of what is left of all.

        Raises:
          LeagueError: it cannot be read within its bounds.
        """
        url, limit = f"{self._address}/{path}", min(self._left, most or self._left)
        content = bytearray()
        try:
            with self._client.stream("GET", url) as answer:
                if answer.status_code != 200:
                    raise LeagueError(f"{url} answers {answer.status_code}.")
                for block in answer.iter_bytes():
                    content += block
                    if len(content) > limit:
                        raise LeagueError(f"{url} has more than {limit:,} bytes.")
                    if self._clock() > self._until:
                        raise LeagueError(f"{self._address} takes more than {LONGEST_S:g} s.")
        except httpx.HTTPError as error:
            raise LeagueError(f"{url} cannot be read: {type(error).__name__} {error}.") from error
        self._left -= len(content)
        return bytes(content)


def is_there(folder: Path, digest: str) -> bool:
    """True if the folder holds the package whose table of digests has this digest."""
    try:
        return hashlib.sha256((folder / SUMS_FILE).read_bytes()).hexdigest() == digest
    except OSError:
        return False


def named_by(sums: bytes) -> dict[str, str]:
    """File -> digest, by the content of a table of digests. Raises CorruptSnapshot."""
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / SUMS_FILE).write_bytes(sums)
        return read_sums(path)


def keep(source: Source, place: str, sums: bytes, folder: Path) -> None:
    """Fetch the files of a package that hold no code beside its folder, verify them, and put them there.

    Args:
      place: of its files, below the address of the source. sums: its table of digests.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetched-") as temporary:
        made = Path(temporary) / folder.name
        made.mkdir()
        (made / SUMS_FILE).write_bytes(sums)
        for file, expected in named_by(sums).items():
            if file.endswith(SUFFIXES):
                content = source.read(f"{place}{file}")
                if hashlib.sha256(content).hexdigest() != expected:
                    raise LeagueError(f"{place}{file} is not what {SUMS_FILE} says: nothing of it is kept.")
                (made / file).write_bytes(content)
        read_package(made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
