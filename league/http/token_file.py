"""Files that hold a token, each for its user alone; and the two tokens of a run, which stay over its restarts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from league.errors import LeagueError
from league.store.storage import Storage

MIN_CHARACTERS = 16
MAX_BYTES = 1 << 10
OPERATOR, READER = "operator", "reader"


class TokenFileError(LeagueError):
    """A file holds no token."""


@dataclass(frozen=True)
class Tokens:
    """Two words by which a server is called. operator: may change what it serves. reader: may only read."""

    operator: str
    reader: str


def new_tokens() -> Tokens:
    """Tokens for one start of a server."""
    return Tokens(new_token(), new_token())


def tokens_in(folder: Path, *, storage: Storage | None = None) -> Tokens:
    """The tokens in a folder, which are made where they are missing.

    Raises:
      TokenFileError: a file holds none. StorageError: one cannot be read or written.
    """
    storage = storage or Storage()
    storage.make_folder(folder)
    return Tokens(*(token_in(folder / name, make=True, storage=storage) for name in (OPERATOR, READER)))


def known_tokens(folder: Path) -> Tokens | None:
    """The tokens in a folder; None where there are none that can be read."""
    try:
        return Tokens(*(token_in(folder / name, make=False) for name in (OPERATOR, READER)))
    except LeagueError:
        return None


def remove_tokens(folder: Path, *, storage: Storage) -> None:
    """Remove the tokens of a folder, so that the next start of a server makes others.

    Raises:
      StorageError: they cannot be removed.
    """
    storage.remove_folder(folder)


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def token_in(path: Path, *, make: bool, storage: Storage | None = None) -> str:
    """The token in a file.

    Args:
      make: whether to write a new one, for this user alone, where there is no file.
    Raises:
      TokenFileError: there is none, or it is too short. StorageError: it cannot be read or written.
    """
    storage = storage or Storage()
    try:
        token = storage.read_bytes(path, max_bytes=MAX_BYTES).decode("ascii").strip()
    except FileNotFoundError as error:
        if not make:
            raise TokenFileError(f"{path} does not exist: copy the server's token there.") from error
        token = new_token()
        storage.atomic_write_bytes(path, f"{token}\n".encode(), private=True)
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path} holds no token of letters and digits.") from error
    if len(token) < MIN_CHARACTERS or not token.isprintable() or " " in token:
        raise TokenFileError(f"{path} holds no token of at least {MIN_CHARACTERS} characters without spaces.")
    return token
