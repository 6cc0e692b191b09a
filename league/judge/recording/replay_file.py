"""Replay files: a header with the digest of the rest, then the record, packed by msgpack and compressed.

Bytes 0 to 7 are `LGREPLAY`. Bytes 8 and 9 are the version of the format, 10 to 17 the size of the record before
compression, both little-endian. Bytes 18 to 49 are the sha256 of bytes 8 to 17 and of all from byte 50 on. There the
record follows: zlib over msgpack of `Replay`.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.judge.recording.replay import CorruptReplay, Replay, check_replay
from league.store.storage import Storage

MAGIC, VERSION = b"LGREPLAY", 1
SUFFIX = ".replay"
MAX_FILE_BYTES = 64 << 20
MAX_RECORD_BYTES = 256 << 20
_FIELDS = struct.Struct("<HQ")
_HEAD = len(MAGIC) + _FIELDS.size + hashlib.sha256().digest_size


def encode_replay(replay: Replay) -> bytes:
    """The file of a replay.

    Raises:
      CorruptReplay: its numbers do not agree.
    """
    check_replay(replay)
    record = msgspec.msgpack.encode(replay)
    fields, body = _FIELDS.pack(VERSION, len(record)), zlib.compress(record, 6)
    return MAGIC + fields + hashlib.sha256(fields + body).digest() + body


def decode_replay(content: bytes, *, source: str = "the replay") -> Replay:
    """The replay in a file; nothing is allocated before its sizes are known to be allowed.

    Args:
      source: named in errors.
    Raises:
      CorruptReplay: it is none, of another version, or not what was written.
    """
    if len(content) < _HEAD or not content.startswith(MAGIC):
        raise CorruptReplay(f"{source} is no replay file.")
    fields, rest = content[len(MAGIC) : len(MAGIC) + _FIELDS.size], content[_HEAD:]
    version, size = _FIELDS.unpack(fields)
    if version != VERSION:
        raise CorruptReplay(f"{source} has version {version} of the format; this league reads version {VERSION}.")
    if hashlib.sha256(fields + rest).digest() != content[len(MAGIC) + _FIELDS.size : _HEAD]:
        raise CorruptReplay(f"{source} is damaged: its digest does not match.")
    if size > MAX_RECORD_BYTES:
        raise CorruptReplay(f"{source} says that it holds {size} bytes, more than the {MAX_RECORD_BYTES} allowed.")
    try:
        unpacker = zlib.decompressobj()
        record = unpacker.decompress(rest, size + 1)
        if len(record) != size or not unpacker.eof:
            raise CorruptReplay(f"{source} is damaged: it does not hold the {size} bytes that it says.")
        replay = msgspec.msgpack.decode(record, type=Replay)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptReplay(f"{source} is damaged: {error}.") from error
    try:
        check_replay(replay)
    except CorruptReplay as error:
        raise CorruptReplay(str(error).replace("the replay", source, 1)) from error
    return replay


def write_replay(path: Path, replay: Replay, *, storage: Storage | None = None) -> Path:
    """Write a replay, durably; its folder is made where it is missing. Returns the path.

    Raises:
      CorruptReplay: its numbers do not agree. StorageError: it was not written.
    """
    content = encode_replay(replay)
    store = Storage() if storage is None else storage
    store.make_folder(path.absolute().parent)
    store.atomic_write_bytes(path, content)
    return path


def read_replay(path: Path) -> Replay:
    """Read a replay. Its game is neither made nor played: see `league.see.games.playback.verify_replay`.

    Raises:
      CorruptReplay: see `decode_replay`. StorageError: there is no such file, or it is too large.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a folder: give a replay file (*{SUFFIX}), as `league replays RUN` lists them.")
    try:
        content = Storage().read_bytes(path, max_bytes=MAX_FILE_BYTES)
    except FileNotFoundError as error:
        raise StorageError(f"{path} does not exist: give a replay file (*{SUFFIX}).") from error
    return decode_replay(content, source=str(path))
