"""Chunks: exact round trips, bytes that are for ever, and nothing but ChunkError for whatever is no chunk."""

from __future__ import annotations

import dataclasses
import json
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from league.agents.unroll.codec import (
    DIGEST_BYTES,
    FORMATS,
    MAGIC,
    MAX_FIELDS,
    MAX_HEADER_BYTES,
    MAX_RAW_BYTES,
    ChunkError,
    ChunkHeader,
    Lz4Codec,
)
from league.agents.unroll.unroll import Unrolls
from league.envs.protocol import OBSERVATION_DTYPES

GOLDEN = Path(__file__).parents[2] / "golden" / "chunk-v1.bin"
HEADER = ChunkHeader(run="r-1", player="main-0", version_min=3, version_max=5)


def unrolls_of(
    *,
    rows: int = 3,
    steps: int = 4,
    obs: dict[str, tuple[str, tuple[int, ...]]] | None = None,
    mask: int | None = 7,
    box: tuple[int, ...] | None = None,
    core_size: int = 2,
    seed: int = 0,
) -> Unrolls:
    """Unrolls of finite numbers; obs: name -> (dtype, shape)."""
    rng = np.random.default_rng(seed)

    def numbers(dtype: str, *shape: int) -> np.ndarray:
        if dtype == "bool":
            return rng.random(shape) < 0.3
        return (rng.normal(size=shape) * 50).astype(dtype)

    here, shown = (rows, steps), (rows, steps + 1)
    fields = {"board": ("bool", (2, 3)), "clock": ("float32", ())} if obs is None else obs
    return Unrolls(
        obs={name: numbers(dtype, *shown, *shape) for name, (dtype, shape) in fields.items()},
        action_mask=None if mask is None else numbers("bool", *shown, mask),
        resets=numbers("bool", *shown),
        actions=numbers("int16", *here) if box is None else numbers("float32", *here, *box),
        log_probs=numbers("float32", *here),
        rewards=np.zeros(here, np.float32),
        discounts=np.ones(here, np.float32),
        valid=numbers("bool", *here),
        versions=numbers("int32", *here),
        core=numbers("float32", rows, core_size),
    )


def arrays_of(unrolls: Unrolls) -> dict[str, Any]:
    plain = {name: value for name, value in vars(unrolls).items() if name != "obs" and value is not None}
    return {**plain, **{f"obs.{name}": array for name, array in unrolls.obs.items()}}


def assert_equal(left: Unrolls, right: Unrolls) -> None:
    one, two = arrays_of(left), arrays_of(right)
    assert one.keys() == two.keys()
    for name in one:
        assert (one[name].dtype, one[name].shape) == (two[name].dtype, two[name].shape), name
        assert one[name].tobytes() == two[name].tobytes(), name


def parts(chunk: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and body of a chunk."""
    (size,) = struct.unpack_from("<I", chunk, 4)
    return json.loads(chunk[8 : 8 + size]), chunk[8 + size : -DIGEST_BYTES]


def sealed(head: Any, body: bytes) -> bytes:
    """A chunk with a true checksum over whatever it holds. head: JSON value, or its bytes."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return signed(MAGIC + struct.pack("<I", len(text)) + text + body)


def signed(content: bytes) -> bytes:
    return content + xxhash.xxh3_128_digest(content)


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
names = st.text(min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    obs=st.dictionaries(names, st.tuples(st.sampled_from(sorted(OBSERVATION_DTYPES)), shapes), max_size=4),
    rows=st.integers(0, 5),
    steps=st.integers(0, 9),
    mask=st.none() | st.integers(1, 20),
    box=st.none() | shapes,
    core_size=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_what_was_encoded_is_decoded_bit_for_bit(obs: Any, rows: int, steps: int, seed: int, **shape: Any) -> None:
    unrolls = unrolls_of(rows=rows, steps=steps, obs=obs, seed=seed, **shape)
    header, back = Lz4Codec().decode(Lz4Codec().encode(unrolls, HEADER))
    assert header == HEADER
    assert_equal(back, unrolls)


def test_a_codec_gives_the_same_arrays_whatever_it_has_measured_before() -> None:
    codec = Lz4Codec()
    for number in range(70):
        unrolls = unrolls_of(rows=1 + number % 5, obs={"x": ("float32" if number % 2 else "bool", (4,))}, seed=number)
        assert_equal(codec.decode(codec.encode(unrolls, HEADER))[1], unrolls)


def test_views_and_foreign_byte_orders_travel_as_their_values() -> None:
    unrolls = unrolls_of(rows=6)
    strided = dataclasses.replace(
        unrolls, rewards=np.asfortranarray(unrolls.log_probs), log_probs=unrolls.log_probs.astype(">f4")
    )
    _, back = Lz4Codec().decode(Lz4Codec().encode(strided.rows(1, 4), HEADER))
    assert np.array_equal(back.log_probs, unrolls.log_probs[1:4])
    assert np.array_equal(back.rewards, unrolls.log_probs[1:4])
    assert back.log_probs.dtype == np.float32


def test_chunks_of_the_first_version_are_read_for_ever() -> None:
    header, unrolls = Lz4Codec().decode(GOLDEN.read_bytes())
    assert header == HEADER
    rows, shown, steps = 2, np.arange(4), np.arange(3)
    assert_equal(
        unrolls,
        Unrolls(
            obs={
                "board": np.add.outer(np.arange(rows), shown)[..., None] % np.arange(2, 9) == 0,
                "clock": np.tile(shown.astype(np.float32) / 4, (rows, 1)),
                "cards": np.zeros((rows, 4, 40), np.uint8),
            },
            action_mask=np.tile(np.array([True, False, True]), (rows, 4, 1)),
            resets=np.array([[True, False, False, True], [False, False, True, False]]),
            actions=np.tile(steps.astype(np.int16), (rows, 1)),
            log_probs=np.tile(-steps.astype(np.float32) / 8, (rows, 1)),
            rewards=np.array([[0, 0, 1], [0, -1, 0]], np.float32),
            discounts=np.array([[1, 1, 0], [1, 0, 1]], np.float32),
            valid=np.array([[True, True, True], [True, True, False]]),
            versions=np.array([[3, 3, 4], [4, 5, 5]], np.int32),
            core=np.array([[0.5], [-0.5]], np.float32),
        ),
    )


def test_a_flipped_bit_anywhere_is_refused() -> None:
    chunk = bytearray(Lz4Codec().encode(unrolls_of(rows=1, steps=2), HEADER))
    codec = Lz4Codec()
    for place in range(len(chunk)):
        chunk[place] ^= 1 << (place % 8)
        with pytest.raises(ChunkError):
            codec.decode(bytes(chunk))
        chunk[place] ^= 1 << (place % 8)
    codec.decode(bytes(chunk))


def test_every_truncation_and_every_tail_is_refused() -> None:
    chunk = Lz4Codec().encode(unrolls_of(rows=1, steps=2), HEADER)
    for length in range(len(chunk)):
        with pytest.raises(ChunkError):
            Lz4Codec().decode(chunk[:length])
    for tail in (b"\0", chunk):
        with pytest.raises(ChunkError):
            Lz4Codec().decode(chunk + tail)


def row_lies(row: list[Any]) -> list[list[Any]]:
    """Rows of a field table that say something else than the true one."""
    name, dtype, shape, raw, stored = row
    return [
        [name, "object", shape, raw, stored],
        [name, ["f"], shape, raw, stored],
        [name, dtype, None, raw, stored],
        [name, dtype, "ab", raw, stored],
        [name, dtype, [*shape, -1], raw, stored],
        [name, dtype, [*shape, True], raw, stored],
        [name, dtype, [1.0], raw, stored],
        [name, dtype, [0, 1 << 40], 0, 0],
        [name, dtype, [0, *([1 << 27] * 7)], 0, 0],
        [name, dtype, [1] * 9, raw, stored],
        [name, dtype, [10**400, *shape], raw, stored],
        [name, dtype, shape, float(raw), stored],
        [name, dtype, shape, raw + 1, stored],
        [name, dtype, shape, raw, stored - 1],
        [name, dtype, shape, raw, -1],
        [name, dtype, shape, raw, str(stored)],
        [7, dtype, shape, raw, stored],
        ["obs.board", dtype, shape, raw, stored],
        ["strange", dtype, shape, raw, stored],
        [name, dtype, shape[::-1], raw, stored],
        [name, dtype, shape, raw],
        {"name": name},
    ]


def test_every_lie_in_the_field_table_is_refused() -> None:
    head, body = parts(Lz4Codec().encode(unrolls_of(rows=2, steps=4), HEADER))
    lies = 0
    for place in range(len(head["fields"])):
        true = head["fields"][place]
        for lie in row_lies(true):
            if lie == true:
                continue
            head["fields"][place] = lie
            with pytest.raises(ChunkError):
                Lz4Codec().decode(sealed(head, body))
            lies += 1
        head["fields"][place] = true
    assert lies > 200
    Lz4Codec().decode(sealed(head, body))


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 60_000,
        b"\xff\xfe",
        b"[]",
        b'{"schema": 3}',
        b'{"schema": 1, "fields": [], "header": {}}',
        b'{"schema": 2}',
        b'{"schema": 2, "fields": 3, "header": {}}',
        b'{"schema": 2, "fields": [], "header": {}}',
        b'{"schema": 2, "fields": [], "header": 5}',
    ],
)
def test_a_header_of_another_form_is_refused(head: bytes) -> None:
    with pytest.raises(ChunkError):
        Lz4Codec().decode(sealed(head, b""))


@pytest.mark.parametrize(
    "change",
    [
        {"run": 3},
        {"player": None},
        {"version_min": "1"},
        {"version_max": True},
        {"stranger": 1},
    ],
)
def test_a_header_that_does_not_say_whose_chunk_it_is_is_refused(change: dict[str, Any]) -> None:
    head, body = parts(Lz4Codec().encode(unrolls_of(), HEADER))
    with pytest.raises(ChunkError, match="whose chunk"):
        Lz4Codec().decode(sealed({**head, "header": {**head["header"], **change}}, body))
    for name in change.keys() & head["header"].keys():
        short = {key: value for key, value in head["header"].items() if key != name}
        with pytest.raises(ChunkError, match="whose chunk"):
            Lz4Codec().decode(sealed({**head, "header": short}, body))


def test_a_missing_field_is_refused() -> None:
    for name in ("resets", "actions", "core"):
        unrolls = unrolls_of(rows=2, steps=1)
        head, body = parts(Lz4Codec().encode(unrolls, HEADER))
        place = [row[0] for row in head["fields"]].index(name)
        start = sum(row[4] for row in head["fields"][:place])
        stored = head["fields"].pop(place)[4]
        with pytest.raises(ChunkError, match=name):
            Lz4Codec().decode(sealed(head, body[:start] + body[start + stored :]))


def test_a_shape_that_no_array_can_have_is_refused() -> None:
    head, body = parts(Lz4Codec().encode(unrolls_of(rows=0, obs={"x": ("uint8", ())}), HEADER))
    assert head["fields"][0][:3] == ["obs.x", "uint8", [0, 5]]
    head["fields"][0][2] += [1 << 27] * 6
    with pytest.raises(ChunkError):
        Lz4Codec().decode(sealed(head, body))


def test_a_header_longer_than_its_cap_is_refused() -> None:
    head, body = parts(Lz4Codec().encode(unrolls_of(), HEADER))
    text = json.dumps(head).encode()
    Lz4Codec().decode(sealed(text.ljust(MAX_HEADER_BYTES), body))
    with pytest.raises(ChunkError):
        Lz4Codec().decode(sealed(text.ljust(MAX_HEADER_BYTES + 1), body))


def test_bombs_are_refused_before_anything_is_allocated() -> None:
    head, body = parts(Lz4Codec().encode(unrolls_of(), HEADER))
    huge = MAX_RAW_BYTES - (1 << 20)
    bombs = [
        sealed({**head, "fields": [["obs.x", "uint8", [huge], huge, 40]]}, b"\0" * 40),
        sealed({**head, "fields": [[f"obs.{n}", "uint8", [huge], huge, 1 << 21] for n in range(2)]}, b"\0" * (1 << 22)),
        sealed({**head, "fields": [["obs.x", "float64", [huge], 8 * huge, 40]]}, b"\0" * 40),
        sealed({**head, "fields": head["fields"] * (MAX_FIELDS + 1)}, body),
        signed(MAGIC + struct.pack("<I", 1 << 31) + b"{}"),
        signed(MAGIC + struct.pack("<I", MAX_HEADER_BYTES + 1) + b" " * (MAX_HEADER_BYTES + 1)),
    ]
    tracemalloc.start()
    for bomb in bombs:
        with pytest.raises(ChunkError):
            Lz4Codec().decode(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["log_probs", "rewards", "discounts", "core", "clock"])
def test_a_number_that_is_not_finite_is_refused_by_field_and_place(name: str, bad: float) -> None:
    unrolls = unrolls_of()
    array = unrolls.obs["clock"] if name == "clock" else getattr(unrolls, name)
    array[2, 1] = bad
    with pytest.raises(ChunkError, match=rf"{name} holds a number that is not finite at \[2, 1\]"):
        Lz4Codec().encode(unrolls, HEADER)


def test_what_could_not_be_decoded_is_not_encoded() -> None:
    wide = {f"f{number}": ("uint8", ()) for number in range(MAX_FIELDS)}
    deep = {"x": ("uint8", (1,) * 8)}
    for unrolls in (
        unrolls_of(obs=wide),
        unrolls_of(obs=deep),
        unrolls_of(obs={"x": ("uint16", ())}),
        unrolls_of(obs={"x": ("complex64", ())}),
        unrolls_of(obs={"n" * MAX_HEADER_BYTES: ("uint8", ())}),
    ):
        with pytest.raises(ChunkError):
            Lz4Codec().encode(unrolls, HEADER)


def test_ten_thousand_malformed_frames_raise_nothing_but_chunk_errors() -> None:
    """Half of them with a true checksum, so that the checks behind it are met; such a one may also decode."""
    rng = random.Random(0)
    good = Lz4Codec().encode(unrolls_of(rows=2, steps=3), HEADER)
    codec, refused = Lz4Codec(), 0
    for number in range(10_000):
        frame = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            where = rng.randrange(len(frame))
            kind = rng.randrange(4)
            if kind == 0:
                frame[where] = rng.randrange(256)
            elif kind == 1:
                del frame[where : where + rng.randint(1, 30)]
            elif kind == 2:
                frame[where:where] = rng.choice([b"9", b"]", b'"', b"-", b"0e9", b"\0" * 20, b"null", b"[[["])
            else:
                frame[where : where + 8] = good[: rng.randint(0, 8)]
        resealed = number % 2
        try:
            codec.decode(signed(bytes(frame[:-DIGEST_BYTES])) if resealed else bytes(frame))
        except ChunkError:
            refused += 1
        else:
            assert resealed or frame == good
    assert refused > 7_500


def test_an_open_chunk_says_whose_and_how_many_rows_and_refuses_damage() -> None:
    unrolls = unrolls_of(rows=7)
    chunk = Lz4Codec().encode(unrolls, HEADER)
    opened = Lz4Codec().open(chunk)
    assert (opened.header, opened.num_rows) == (HEADER, 7)
    assert_equal(opened.unrolls(), unrolls)
    with pytest.raises(ChunkError, match="checksum"):
        Lz4Codec().open(chunk[:-1] + bytes([chunk[-1] ^ 1]))


def test_a_checksum_is_computed_once_from_arrival_to_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    form = FORMATS[MAGIC]

    def counted(content: memoryview) -> bytes:
        computed.append(len(content))
        return form.digest(content)

    chunk = Lz4Codec().encode(unrolls_of(rows=7), HEADER)
    monkeypatch.setitem(FORMATS, MAGIC, dataclasses.replace(form, digest=counted))
    Lz4Codec().open(chunk).unrolls()
    assert computed == [len(chunk) - DIGEST_BYTES]
