"""Contenders as a configuration writes them, told apart without loading any: `uci:stockfish`, `RUN:NAME`, `random`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from league.core.state.records import bot_name
from league.envs.bots import is_own_bot
from league.errors import LeagueError, nearest

PROGRAMS = ("uci", "gtp")
ADDRESSES = ("http", "unix")
"""Kinds, the word before the first colon, of contenders that are programs, and that are served elsewhere."""
FROM = ":"
"""Between a folder and the name of a policy in it."""
ZOO = "zoo:"
"""Before the name of a trained policy on the shelf, as in zoo:connect_four."""
HUB = "hf://"
"""Before a repository of a model hub, as in hf://OWNER/NAME and, for one of its commits or tags, hf://OWNER/NAME@REVISION."""
ZOO_VARIABLE = "LEAGUE_ZOO"
"""Folders of packages and addresses of indexes, in which such a name is looked for first.

Divided as in PATH; an address begins with https:// or http:// and ends at a space.
"""
SHIPPED = Path(__file__).parent / "zoo"
"""Packages that come with the installation."""
_ZOO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_HUB_NAME = re.compile(
    r"hf://([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})(?:@([A-Za-z0-9][\w.-]{0,99}))?"
)


def zoo_places() -> tuple[Path, ...]:
    """Folders of trained policies: those of the variable, then the one that is installed.

    An address stands for the folder of what was fetched from it, see `league.policies.fetched.zoo_index`.
    """
    named = (fetched_folder(text) if is_web(text) else Path(text).expanduser() for text in zoo_texts())
    return (*named, SHIPPED)


def zoo_texts() -> list[str]:
    """The folders and addresses in the variable, as they are written."""
    found = re.findall(rf"https?://\S+|[^{os.pathsep}]+", os.environ.get(ZOO_VARIABLE, ""))
    return [text.strip() for text in found if text.strip()]


def is_web(text: str) -> bool:
    """True for an address, as of the index of a zoo."""
    return text.startswith(("http://", "https://"))


def zoo_name_fits(name: str) -> bool:
    """True for a name that a policy on a shelf may have."""
    return _ZOO_NAME.fullmatch(name) is not None


def fetched_folder(address: str) -> Path:
    """The folder of this user that holds what was fetched from the index of a zoo; it need not be there."""
    return _cache() / "zoo" / hashlib.sha256(address.encode()).hexdigest()[:16]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "league"


def split_hub(written: str) -> tuple[str, str]:
    """OWNER/NAME, and the revision, "main" where none is given.

    Raises:
      LeagueError: it is no name of a repository.
    """
    found = _HUB_NAME.fullmatch(written)
    if found is None:
        raise LeagueError(f"{written[:120]} is no repository of a model hub: write hf://OWNER/NAME[@REVISION].")
    return found[1], found[2] or "main"


def hub_endpoint() -> str:
    """The address of the model hub: the variable HF_ENDPOINT, by default that of Hugging Face."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def hub_folder(written: str) -> Path:
    """The folder of this user that holds what was fetched from a repository; it need not be there."""
    repository, revision = split_hub(written)
    hub = hashlib.sha256(hub_endpoint().encode()).hexdigest()[:16]
    return _cache() / "hub" / hub / repository.replace("/", "--") / revision


def zoo_folder(written: str) -> Path:
    """The folder of zoo:NAME.

    Raises:
      LeagueError: no shelf has such a policy.
    """
    name = written.removeprefix(ZOO)
    if zoo_name_fits(name):
        for place in zoo_places():
            if (place / name / "manifest.json").is_file():
                return place / name
    known = {path.parent.name for place in zoo_places() for path in place.glob("*/manifest.json")}
    raise LeagueError(f"the zoo has no {name!r}{nearest(name, known)} `league zoo` lists what it has.")


def split_source(text: str, *, start: Path = Path()) -> tuple[Path, str]:
    """The folder of FOLDER or FOLDER:NAME, and the name of a policy in it; an empty name where none is given.

    The last colon separates them. It belongs to the folder where the whole text exists, where nothing follows, or where
    a slash follows, as in C:/runs/first. The folder before it may be empty, for `start` itself.

    Args:
      start: folder against which a relative one is read; "~" is the user's home.
    Raises:
      LeagueError: zoo:NAME is on no shelf, or hf://OWNER/NAME has not been fetched.
    """
    if text.startswith(ZOO):
        return zoo_folder(text), ""
    if text.startswith(HUB):
        if not (fetched := hub_folder(text)).is_dir():
            raise LeagueError(f"{text} has not been fetched yet: `league zoo --index {text}` does so.")
        return fetched, ""
    whole = start / Path(text).expanduser()
    folder, _, name = text.rpartition(FROM)
    if FROM not in text or not name or "/" in name or "\\" in name or whole.exists():
        return whole, ""
    return start / Path(folder).expanduser(), name


def kind_before_colon(written: str) -> str:
    """The word before the first colon; empty without one."""
    kind, colon, _ = written.partition(":")
    return kind if colon else ""


def is_folder(written: str) -> bool:
    """True for FOLDER and FOLDER:NAME; a bot of the user's own is `module:attribute` or `path/file.py:attribute`."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot") or written.partition(":")[0].endswith(".py"):
        return False
    if written.startswith((ZOO, HUB)):
        return True
    folder, _ = split_source(written)
    return folder.is_dir() or (FROM in written and "/" in str(folder))


def runs_outside_code(written: str) -> bool:
    """True if it starts a program, loads a bot of the user's own, or sends what a file holds to an address."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES):
        return True
    return not is_folder(written) and is_own_bot(bot_name(written))


def with_absolute_folder(written: str, starts: Iterable[Path]) -> str:
    """FOLDER or FOLDER:NAME with the absolute path of the folder in the first start that has it; else as it is."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot", "zoo", "hf"):
        return written
    for start in starts:
        folder, name = split_source(written, start=start)
        if folder.is_dir():
            return f"{folder.absolute()}{FROM}{name}" if name else str(folder.absolute())
    return written
