"""Encodes a record as a chunk of bytes: a checked header, one block per field (bits, lz4 or raw), and a checksum.

A record is any table of fields, see `field_table`; the header names its type, unless it is `Unrolls`.

Layout, little-endian: magic "LGC2" | u32 header bytes | header (JSON) | field blocks | 16 bytes XXH3-128 over all
before. Chunks of "LGC1", under blake2b, are read as well. The checksum finds damage on the way, at the speed of
memory; who may send a chunk is the transport's to know. Nothing is allocated before the header has been checked
against the caps, and nothing nested is ever decompressed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import lz4.block
import numpy as np
import xxhash
from numpy.typing import NDArray

from league.agents.unroll.field_table import ANY, FieldTable, Record, lines_of, mappings_of
from league.agents.unroll.unroll import Unrolls
from league.envs.protocol import MAX_OBSERVATION_FIELDS, OBSERVATION_DTYPES

Table = TypeVar("Table", bound=FieldTable[Any])

DIGEST_BYTES = 16


@dataclass(frozen=True)
class _Format:
    """One version of the layout. schema: stated in its header. digest: 16 bytes over all before."""

    schema: int
    digest: Callable[[memoryview], bytes]


FORMATS = {
    b"LGC1": _Format(1, lambda content: hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()),
    b"LGC2": _Format(2, xxhash.xxh3_128_digest),
}
MAGIC = b"LGC2"
"""Of the chunks that are written."""
MAX_HEADER_BYTES = 128 << 10
MAX_RAW_BYTES = 256 << 20
MAX_FIELDS, MAX_DIMS = MAX_OBSERVATION_FIELDS + 24, 8
"""Caps of a chunk, far above those of any game: what comes from another process must not exhaust this one."""
FORMER_HEADER_FIELDS = frozenset({"opponents"})
"""Fields that chunks of this schema may carry but no code reads."""
MAX_RATIO = 255
"""Largest growth of an lz4 block on decompression: one that claims more is refused before memory is allocated."""
MIN_RATIO = 1.3
"""Below this ratio a field is stored raw: decompressing would cost more than the bytes saved."""
REMEASURE_EVERY = 64
"""Chunks after which the choice of a field's compression is measured again."""


class StoredField(NamedTuple):
    """A row of the field table. stored_bytes: size of its block, equal to raw_bytes where lz4 did not gain."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    raw_bytes: int
    stored_bytes: int


class ChunkError(ValueError):
    """Bytes that are no valid chunk, or arrays that cannot become one; the message names the failed check."""


@dataclass(frozen=True)
class ChunkHeader:
    """Facts about a chunk beyond its arrays.

    Fields:
      run, player: run and player whose learner it is for.
      version_min, version_max: versions of the weights that acted.
      noise: checksum of the table of noise by whose indices the record speaks; 0, which is not written, for none.
    """

    run: str
    player: str
    version_min: int
    version_max: int
    noise: int = 0


@dataclass(frozen=True)
class OpenChunk:
    """A chunk whose checksum and field table have been checked. Threads may decode several at once.

    Fields:
      header: whose it is. num_rows: as its table says.
      body: the blocks of its fields, in the order of the table.
      record: name of the type of its record.
    """

    header: ChunkHeader
    num_rows: int
    body: memoryview
    table: tuple[StoredField, ...]
    record: str

    def rows_of(self, kind: type[Table]) -> Table:
        """Decompress the fields of a record of this type. Raises ChunkError where one is not what its table row says.

        The type is what the caller expects: none is looked up by the name in the chunk.
        """
        if self.record != kind.__name__:
            raise ChunkError(f"a chunk of {self.record} came where {kind.__name__} are learnt from")
        arrays: dict[str, NDArray[np.generic]] = {}
        offset = 0
        for stored in self.table:
            arrays[stored.name] = _array(stored, self.body[offset : offset + stored.stored_bytes])
            offset += stored.stored_bytes
        return _made(kind, arrays)

    @property
    def whole(self) -> bytes:
        """The bytes that were opened."""
        assert isinstance(self.body.obj, bytes), "as `Lz4Codec.open` took them"
        return self.body.obj

    def unrolls(self) -> Unrolls:
        """As `rows_of`, of unrolls."""
        return self.rows_of(Unrolls)


class Lz4Codec:
    """Converts records to bytes and back: bool fields as bits, fields through lz4 if a measurement shows a gain."""

    def __init__(self) -> None:
        self._compress: dict[str, bool] = {}
        self._chunks = 0

    def encode(self, record: Record, header: ChunkHeader) -> bytes:
        """Encode a record. Raises ChunkError if a field holds NaN or infinity, or a cap is exceeded."""
        if self._chunks % REMEASURE_EVERY == 0:
            self._compress.clear()
        self._chunks += 1
        blocks, table, raw_total = [], [], 0
        for name, array in record.arrays().items():
            _require_allowed(name, array)
            payload = (
                np.packbits(array.view(np.uint8)).tobytes()
                if array.dtype == np.bool_
                else _little_endian(array).tobytes()
            )
            block = self._block(name, payload)
            table.append([name, _name_of(array.dtype), list(array.shape), len(payload), len(block)])
            blocks.append(block)
            raw_total += len(payload)
        if raw_total > MAX_RAW_BYTES:
            raise ChunkError(f"a chunk of {raw_total} raw bytes exceeds the cap of {MAX_RAW_BYTES}: send fewer rows")
        named = {name: value for name, value in vars(header).items() if name != "noise" or value}
        stated: dict[str, object] = {"schema": FORMATS[MAGIC].schema, "header": named, "fields": table}
        if not isinstance(record, Unrolls):
            stated["record"] = type(record).__name__
        head = json.dumps(stated).encode()
        if len(head) > MAX_HEADER_BYTES or len(table) > MAX_FIELDS:
            caps = f"{MAX_FIELDS} and {MAX_HEADER_BYTES}"
            raise ChunkError(f"{len(table)} fields and a header of {len(head)} bytes exceed the caps of {caps}")
        pieces = (MAGIC, struct.pack("<I", len(head)), head, *blocks)
        checksum = xxhash.xxh3_128()
        for piece in pieces:
            checksum.update(piece)
        return b"".join((*pieces, checksum.digest()))

    def open(self, chunk: bytes) -> OpenChunk:
        """Check a chunk once, without decompression; raises ChunkError for faults found so far."""
        head, offset = _checked_head(chunk)
        table = _checked_table(head, len(chunk) - offset - DIGEST_BYTES)
        if not table or not table[0].shape:
            raise ChunkError("the field table does not say how many rows there are")
        record, body = head.get("record", Unrolls.__name__), memoryview(chunk)[offset:-DIGEST_BYTES]
        if not isinstance(record, str):
            raise ChunkError(f"the header does not name its record: {record!r:.200}")
        return OpenChunk(_chunk_header(head["header"]), table[0].shape[0], body, tuple(table), record)

    def decode(self, chunk: bytes) -> tuple[ChunkHeader, Unrolls]:
        """Decode a chunk of unrolls. Raises ChunkError if the bytes are not exactly the output of `encode`."""
        opened = self.open(chunk)
        return opened.header, opened.unrolls()

    def _block(self, name: str, payload: bytes) -> bytes:
        wanted = self._compress.get(name)
        if wanted is False or not payload:
            return payload
        packed: bytes = lz4.block.compress(payload, store_size=False)
        if wanted is None:
            self._compress[name] = len(packed) * MIN_RATIO < len(payload)
        return packed if len(packed) < len(payload) else payload


def _made(kind: type[Table], arrays: Mapping[str, NDArray[np.generic]]) -> Table:
    """Make the record, after checking that all fields are present and their shapes and dtypes agree."""
    lines, mappings = {line.name: line for line in lines_of(kind)}, mappings_of(kind)
    named: dict[str, Any] = {field: {} for field in mappings}
    for name, array in arrays.items():
        field, dot, key = name.partition(".")
        if dot and field in mappings:
            named[field][key] = array
        else:
            named[name] = array
    missing = {name for name, line in lines.items() if not line.optional} - set(named)
    strange = set(named) - set(lines) - set(mappings)
    if missing or strange:
        raise ChunkError(f"the fields of the chunk are not those of {kind.__name__}: {sorted(missing | strange)}")
    sizes: dict[str, int] = {}
    present = [line for line in lines.values() if line.name in named]
    for line in sorted(present, key=lambda line: line.optional):  # the first one that must be there states the extents
        _check_extents(line.name, named[line.name], line.axes, sizes, dtype=line.dtype)
    for field, axes in mappings.items():
        for key, array in named[field].items():
            _check_extents(f"{field}.{key}", array, axes, sizes)
    return kind(**named)


def _check_extents(
    name: str, array: NDArray[np.generic], axes: tuple[str, ...], sizes: dict[str, int], *, dtype: str = ANY
) -> None:
    """Raise ChunkError if the extents, number of axes or dtype of a field are not those of its line.

    sizes: letter -> extent, of the fields before this one; letters met for the first time are added.
    """
    letters = [axis for axis in axes if axis != ANY]
    wrong = array.ndim < len(letters) or (ANY not in axes and array.ndim != len(letters))
    for axis, extent in zip(letters, array.shape, strict=False):
        letter, plus, _ = axis.partition("+")
        stated = extent - bool(plus)
        wrong |= stated < 0 or sizes.setdefault(letter, stated) != stated
    if wrong or dtype not in (ANY, _name_of(array.dtype)):
        raise ChunkError(f"field {name} is {array.dtype} {array.shape}, its axes are {' '.join(axes)} with {sizes}")


def _chunk_header(plain: dict[str, object]) -> ChunkHeader:
    named = {name: value for name, value in plain.items() if name not in FORMER_HEADER_FIELDS}
    texts, versions = (plain.get("run"), plain.get("player")), (plain.get("version_min"), plain.get("version_max"))
    numbers = (*versions, plain.get("noise", 0))
    known = {field.name for field in fields(ChunkHeader)}
    stated = {"noise", *named}
    if stated != known or not all(type(x) is str for x in texts) or not all(type(x) is int for x in numbers):
        raise ChunkError(f"the header does not say whose chunk it is: {plain!r:.200}")
    return ChunkHeader(**named)  # type: ignore[arg-type]  # checked above


@functools.cache
def _name_of(dtype: np.dtype[np.generic]) -> str:
    """The name of a dtype, which numpy puts together each time it is asked."""
    return dtype.name


def _require_allowed(name: str, array: NDArray[np.generic]) -> None:
    if _name_of(array.dtype) not in OBSERVATION_DTYPES or array.ndim > MAX_DIMS:
        raise ChunkError(f"field {name} is {array.dtype} with {array.ndim} axes: a chunk cannot carry it")
    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return
    first = np.argwhere(~np.isfinite(array))[0].tolist()
    raise ChunkError(f"field {name} holds a number that is not finite at {first}: the env or the policy produced it")


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _checked_head(chunk: bytes) -> tuple[dict, int]:  # type: ignore[type-arg]
    form = FORMATS.get(chunk[: len(MAGIC)])
    if len(chunk) < len(MAGIC) + 4 + DIGEST_BYTES or form is None:
        raise ChunkError(f"{len(chunk)} bytes that do not start as a chunk")
    if form.digest(memoryview(chunk)[:-DIGEST_BYTES]) != chunk[-DIGEST_BYTES:]:
        raise ChunkError("the checksum does not match: the chunk was damaged on its way")
    (size,) = struct.unpack_from("<I", chunk, len(MAGIC))
    start = len(MAGIC) + 4
    if size > MAX_HEADER_BYTES or start + size > len(chunk) - DIGEST_BYTES:
        raise ChunkError(f"a header of {size} bytes does not fit")
    try:
        head = json.loads(chunk[start : start + size])
    except (ValueError, RecursionError) as error:
        raise ChunkError("the header is not JSON") from error
    if not isinstance(head, dict) or head.get("schema") != form.schema:
        raise ChunkError(f"the chunk has another schema than {form.schema}: actors and learners differ in version")
    return head, start + size


def _checked_table(head: dict, body_bytes: int) -> list[StoredField]:  # type: ignore[type-arg]
    table: list[StoredField] = []
    rows = head.get("fields")
    if not isinstance(rows, list) or len(rows) > MAX_FIELDS or not isinstance(head.get("header"), dict):
        raise ChunkError("the field table is missing or too long")
    for row in rows:
        table.append(_checked_row(row))
    total_raw = sum(stored.raw_bytes for stored in table)
    total_stored = sum(stored.stored_bytes for stored in table)
    if len({stored.name for stored in table}) != len(table):
        raise ChunkError("the field table names a field twice")
    if total_raw > MAX_RAW_BYTES or total_stored != body_bytes:
        raise ChunkError(f"the fields need {total_raw} raw and {total_stored} stored bytes; the body has {body_bytes}")
    return table


def _checked_row(row: object) -> StoredField:
    refusal = ChunkError(f"the field table has a row that is not allowed: {row!r:.200}")
    if not (isinstance(row, list) and len(row) == 5 and isinstance(row[2], list) and len(row[2]) <= MAX_DIMS):
        raise refusal
    name, dtype, shape, raw_bytes, stored_bytes = row
    numbers = [*shape, raw_bytes, stored_bytes]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in OBSERVATION_DTYPES:
        raise refusal
    if not all(type(number) is int and 0 <= number <= MAX_RAW_BYTES for number in numbers):
        raise refusal
    if math.prod(max(extent, 1) for extent in shape) > 8 * MAX_RAW_BYTES:  # numpy refuses it even where an extent is 0
        raise refusal
    items = math.prod(shape)
    expected = (items + 7) // 8 if dtype == "bool" else items * np.dtype(dtype).itemsize
    if raw_bytes != expected or stored_bytes > raw_bytes or raw_bytes > MAX_RATIO * stored_bytes:
        raise ChunkError(f"field {name}: {raw_bytes} raw and {stored_bytes} stored bytes for shape {shape} of {dtype}")
    return StoredField(name, dtype, tuple(shape), raw_bytes, stored_bytes)


def _array(stored: StoredField, block: memoryview) -> NDArray[np.generic]:
    """The array of a field. Raises ChunkError where the block does not decompress to its raw bytes."""
    raw: bytes | memoryview = block
    if len(block) != stored.raw_bytes:
        try:
            raw = lz4.block.decompress(block, uncompressed_size=stored.raw_bytes)
        except lz4.block.LZ4BlockError as error:
            raise ChunkError(f"field {stored.name} does not decompress to {stored.raw_bytes} bytes") from error
        if len(raw) != stored.raw_bytes:
            raise ChunkError(
                f"field {stored.name} decompressed to {len(raw)} bytes, its table row says {stored.raw_bytes}"
            )
    if stored.dtype != "bool":
        return np.frombuffer(raw, dtype=np.dtype(stored.dtype).newbyteorder("<")).reshape(stored.shape)
    flags = np.unpackbits(np.frombuffer(raw, np.uint8), count=math.prod(stored.shape))
    return flags.view(np.bool_).reshape(stored.shape)
