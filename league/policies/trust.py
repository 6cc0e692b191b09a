"""The rule of trust: which code a run folder may name and have loaded.

A folder is data. From it come only built-in names, ids of PettingZoo and Gymnasium, and names that the project
registers. Any other name, such as a game, an objective or a bot as "module:attribute" or "path/file.py:attribute", is
loaded in three cases alone:

- `league train` or `league export` of this user wrote the folder's mark, trust.json: the names (of a game with its
  options) under an HMAC whose key only this user can read, $XDG_STATE_HOME/league/secret (by default
  ~/.local/state/league/secret). The mark holds wherever the folder is moved on machines with that key; a name that is
  added to config.yaml, the journal or a manifest is not in it. A copied mark allows only the calls that this user has
  made before. It also has a digest of the code: code that was moved is loaded from elsewhere only where it is the same.
  Where no key can be made, one of this process signs the mark, for itself, its children and the restarts of its
  supervisor.
- The user says so: `--trust`, `trust=True`, or the game itself as `env=`. It is said of a place (`trust_places`): from
  then on this process loads what is named there.
- The user gives the same name (and game options) in a configuration of their own in this process.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.config.loading import config_of, overridden, plain_config
from league.config.plugin_names import OutsideName, outside_names
from league.config.run_config import RunConfig
from league.core.state.state import LeagueState
from league.core.state.state_codec import encode
from league.envs.plugins import admit, is_admitted
from league.envs.protocol import EnvConfig
from league.errors import LeagueError, StorageError
from league.policies.own_code import Code, locate, own_places, place_entry, read_record, source_entry
from league.processes.child_process import session_key
from league.store.known_runs import state_folder
from league.store.run_folder import RunFolder
from league.store.snapshots import SnapshotManifest

MARK_FILE = "trust.json"
MAX_MARK_BYTES = 1 << 18
KEY_BYTES = 32
PURPOSE = b"league run folder, names of outside code, version 1\n"


class Untrusted(LeagueError):  # noqa: N818
    """A folder names code that this user has not trusted."""


@dataclass(frozen=True)
class TrustedConfig:
    """The configuration of a run, whose code may be loaded in this process: `open_config` alone makes one.

    Fields:
      source: its file. plain: its values, read once.
    """

    source: Path
    plain: Mapping[str, object]

    def config(self, overrides: Sequence[str] = ()) -> RunConfig:
        """The records, with overrides by the user, "dotted.key=value" each: what those name is trusted.

        Raises:
          ConfigError: with every problem at once.
        """
        plain, problems = overridden(self.plain, overrides)
        known = {found.entry for found in outside_names(self.plain)}
        admit(found.entry for found in outside_names(plain) if found.entry not in known)
        return config_of(plain, problems, source=str(self.source))


def open_config(folder: RunFolder, *, text: str | None = None, env: EnvConfig | None = None) -> TrustedConfig:
    """The configuration of a run folder: the one way from a folder to its records.

    Args:
      text: of the configuration where it is not that of the folder's file.
      env: the caller's own game; the folder's game is then ignored.
    Raises:
      Untrusted: it names code that may not be loaded. ConfigError, StorageError: it cannot be read.
    """
    admit_marked(folder)
    plain, _ = plain_config(folder.read_config() if text is None else text, source=str(folder.config_path))
    names, record = [*outside_names(plain)], read_record(folder)
    if is_trusted(folder.path):
        _admit_names(folder.path, names, record)
    needed = [found for found in names if env is None or found.kind != "env"]
    require_trusted(needed, what=str(folder.path))
    _find_moved(folder, needed, record)
    return TrustedConfig(folder.config_path, plain)


def read_config(folder: RunFolder, *, overrides: Sequence[str] = (), env: EnvConfig | None = None) -> RunConfig:
    """The records of `open_config`, for those who need nothing else of it."""
    return open_config(folder, env=env).config(overrides)


def trust_places(places: Iterable[str | Path]) -> None:
    """Let this process load the code that is named at these places: the user says so.

    Args:
      places: folders of runs, snapshots, packages, tournaments and pools, addresses of pools, configurations whose
        policies from elsewhere are meant, and names of games; as the user wrote them.
    """
    admit(_word(place) for place in places)


def is_trusted(place: str | Path) -> bool:
    """True if the user has said of this very place that its code may be loaded."""
    return is_admitted(_word(place))


def _word(place: str | Path) -> str:
    return f"all of {place}" if "://" in str(place) else f"all of {os.path.realpath(place)}"


def require_trusted(names: Iterable[OutsideName], *, what: str) -> None:
    """Refuse names that may not be loaded here.

    Args:
      what: where they stand, for the message.
    Raises:
      Untrusted: naming them.
    """
    strange = [found for found in names if not is_admitted(found.entry)]
    if strange:
        shown = ", ".join(f"{found.path}: {found.name}" for found in strange[:3])
        raise Untrusted(
            f"{what} names code that your own `league train` did not put there ({shown}): loading it would run it. "
            "Look at that code, then add --trust (in Python trust=True, or give the game as env=)."
        )


def _find_moved(folder: RunFolder, names: Iterable[OutsideName], record: Mapping[str, Code]) -> None:
    """Have the code of a run read where it lies now.

    Raises:
      Untrusted: it lies elsewhere than when the run was made, and is not what the mark says.
    """
    for found, now in locate(folder.path, names, record, may_read=_is_as_marked):
        raise Untrusted(
            f"{folder.path} names {found.name}, and what lies at {now} now is not the code that your own"
            " `league train` noted: look at it, then add --trust (in Python trust=True, or give the game as env=)."
        )


def find_own_code(folder: RunFolder, names: Iterable[OutsideName]) -> None:
    """Admit what a folder's mark says, and have that code read where it lies now, as far as it is what was marked."""
    admit_marked(folder)
    own = [found for found in names if is_admitted(found.entry)]
    for _ in locate(folder.path, own, read_record(folder), may_read=_is_as_marked):
        continue  # it stays where its name says


def _is_as_marked(found: OutsideName, now: Path) -> bool:
    entry = source_entry(found.name, now)
    return is_admitted(place_entry(now)) or (entry is not None and is_admitted(entry))


def names_of_league(state: LeagueState) -> list[OutsideName]:
    """The code from outside that a journal names."""
    return [*outside_names({"league": encode(state.config)})]


def names_of_manifest(manifest: SnapshotManifest) -> list[OutsideName]:
    """The code from outside that a snapshot names: its game, the parts of its network, and its loader."""
    game = {"id": manifest.env_id, "kwargs": dict(manifest.env)}
    trainer = {"loader": manifest.loader}
    return [*outside_names({"env": game, "network": dict(manifest.network), "trainer": trainer})]


def admit_trusted(place: Path, manifests: Iterable[SnapshotManifest]) -> None:
    """Admit the code that snapshots at a place name, where the user trusts the place."""
    if is_trusted(place):
        _admit_names(place, [name for manifest in manifests for name in names_of_manifest(manifest)], {})


def _admit_names(path: Path, names: Sequence[OutsideName], record: Mapping[str, Code]) -> None:
    def may_read(_: OutsideName, now: Path) -> bool:
        admit([place_entry(now)])
        return True

    admit(found.entry for found in names)
    refused = [*locate(path, names, record, may_read=may_read)]
    assert not refused, "everything may be read"


def mark(folder: RunFolder, names: Iterable[OutsideName]) -> list[str]:
    """Note in the folder that this user's own command put these names there; a sentence where that cannot be done.

    Nothing is written where there are none.
    """
    found = [*names]
    if not found:
        return []
    entries, notes = sorted({*(one.entry for one in found), *own_places(found)}), []
    try:
        key = _key(create=True)
    except OSError as error:
        key = session_key(create=True)
        notes.append(
            f"{_key_path()} cannot be made ({error.strerror}), so {folder.path.name} will later count as another "
            "user's: commands will ask for --trust."
        )
    assert key is not None
    payload = json.dumps({"names": entries, "hmac": _sign(key, entries)}, indent=1)
    folder.storage.atomic_write_bytes(folder.path / MARK_FILE, payload.encode())
    return notes


def admit_marked(folder: RunFolder) -> None:
    """Admit the names under a folder's mark, if there is one and this user made it."""
    try:
        payload = json.loads(folder.storage.read_bytes(folder.path / MARK_FILE, max_bytes=MAX_MARK_BYTES))
        entries, given = payload["names"], payload["hmac"]
    except (OSError, StorageError, ValueError, KeyError, TypeError):
        return
    if not (isinstance(given, str) and isinstance(entries, list) and all(isinstance(name, str) for name in entries)):
        return
    for key in filter(None, (_own_key(), session_key(create=False))):
        if hmac.compare_digest(given.encode(), _sign(key, entries).encode()):
            admit(entries)


def _own_key() -> bytes | None:
    with contextlib.suppress(OSError):
        return _key(create=False)
    return None


def _sign(key: bytes, entries: Sequence[str]) -> str:
    body = json.dumps(sorted(entries)).encode()
    return hmac.new(key, PURPOSE + body, hashlib.sha256).hexdigest()


def _key_path() -> Path:
    return state_folder() / "secret"


def _key(*, create: bool) -> bytes | None:
    """The user's key; None where there is none and none is made, or where others can read or replace it.

    Raises:
      OSError: it cannot be made.
    """
    path = _key_path()
    if create and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, path)  # unlike a rename it keeps a key that another command has made just now
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            key = file.read(KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077 or len(key) != KEY_BYTES:
        if create:
            raise PermissionError(1, "it must be a file of 32 bytes of your own with mode 0600")
        return None
    return key
