"""Kernels of a GPU in Triton, and the calls that launch them: attention within sets, and a product behind a ReLU.

Only `kernels.sets` and `kernels.feed_forward` import this file, where a tensor is on a GPU; Triton comes with torch's
builds for one. Each kernel has a plain counterpart beside the operator that calls it.

Shape letters: N rows, S places, H heads, D width of a head, M rows of a matrix, I inputs, O outputs.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = math.log2(math.e)
TILE, INNER, GROUP = 128, 64, 8
"""Of `_relu_product`: rows and hidden features of a program, inputs at a time, and tiles of rows that are neighbours.

On an H200 these and four warps took 2.2 ms where eight warps took 3.3, and programs that keep their weights 2.8.
"""


@triton.jit  # type: ignore[untyped-decorator]
def _attend(qkv, present, out, log_sums, scale, S: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program for each row and head."""
    row = (tl.program_id(0) // H).to(tl.int64)
    head = tl.program_id(0) % H
    place = tl.arange(0, BLOCK)
    width = tl.arange(0, D)
    inside = place < S
    at = qkv + row * (S * 3 * H * D) + head * D + place[:, None] * (3 * H * D) + width[None, :]
    query = tl.load(at, mask=inside[:, None], other=0.0)
    key = tl.load(at + H * D, mask=inside[:, None], other=0.0)
    value = tl.load(at + 2 * H * D, mask=inside[:, None], other=0.0)
    here = tl.load(present + row * S + place, mask=inside, other=0) != 0
    scores = tl.where(here[None, :], tl.dot(query, tl.trans(key)) * scale, float("-inf"))
    largest = tl.maximum(tl.max(scores, 1), -1e30)  # a row of which nothing is present has no largest score
    weights = tl.exp2(scores - largest[:, None])
    total = tl.sum(weights, 1)
    total = tl.where(total > 0.0, total, 1.0)
    gathered = tl.dot(weights.to(value.dtype), value) / total[:, None]
    to = out + row * (S * H * D) + head * D + place[:, None] * (H * D) + width[None, :]
    tl.store(to, gathered.to(out.dtype.element_ty), mask=inside[:, None])
    tl.store(log_sums + (row * H + head) * S + place, largest + tl.log2(total), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_backward(  # type: ignore[no-untyped-def]
    of_out, qkv, present, log_sums, of_qkv, scale, raw_scale, num_sets,
    S: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each program takes one row and head after the other, and fetches the next as it computes.

    It computes the weights again and writes each gradient once.
    """
    place = tl.arange(0, BLOCK)
    width = tl.arange(0, D)
    inside = place < S
    for one in tl.range(tl.program_id(0), num_sets, tl.num_programs(0), num_stages=2):
        row = tl.cast(one // H, tl.int64)
        head = one % H
        base = row * (S * 3 * H * D) + head * D + place[:, None] * (3 * H * D) + width[None, :]
        query = tl.load(qkv + base, mask=inside[:, None], other=0.0)
        key = tl.load(qkv + base + H * D, mask=inside[:, None], other=0.0)
        value = tl.load(qkv + base + 2 * H * D, mask=inside[:, None], other=0.0)
        out_at = of_out + row * (S * H * D) + head * D + place[:, None] * (H * D) + width[None, :]
        gradient = tl.load(out_at, mask=inside[:, None], other=0.0)
        here = tl.load(present + row * S + place, mask=inside, other=0) != 0
        log_sum = tl.load(log_sums + (row * H + head) * S + place, mask=inside, other=0.0)
        scores = tl.where(here[None, :], tl.dot(query, tl.trans(key)) * scale, float("-inf"))
        weights = tl.exp2(scores - log_sum[:, None])
        of_value = tl.dot(tl.trans(weights.to(key.dtype)), gradient)
        tl.store(of_qkv + base + 2 * H * D, of_value.to(of_qkv.dtype.element_ty), mask=inside[:, None])
        of_weights = tl.dot(gradient, tl.trans(value))
        mean = tl.sum(weights * of_weights, 1)
        of_scores = (weights * (of_weights - mean[:, None]) * raw_scale).to(key.dtype)
        of_key = tl.dot(tl.trans(of_scores), query)
        tl.store(of_qkv + base + H * D, of_key.to(of_qkv.dtype.element_ty), mask=inside[:, None])
        of_query = tl.dot(of_scores, key)
        tl.store(of_qkv + base, of_query.to(of_qkv.dtype.element_ty), mask=inside[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _relu_product(  # type: ignore[no-untyped-def]
    gradient, weight, hidden, out, sums, M,
    I: tl.constexpr, O: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr, GROUP: tl.constexpr,  # noqa: E741
):  # fmt: skip
    """One program for each tile of `out`; neighbours share rows of `gradient`, which then come from the cache."""
    tiles_o: tl.constexpr = O // TILE
    group = tl.program_id(0) // (GROUP * tiles_o)
    within = tl.program_id(0) % (GROUP * tiles_o)
    height = tl.minimum(tl.cdiv(M, TILE) - group * GROUP, GROUP)
    tile = (group * GROUP + within % height).to(tl.int64)
    rows = tile * TILE + tl.arange(0, TILE)
    outputs = (within // height) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, INNER)
    inside = rows < M
    left = gradient + rows[:, None] * I + inner[None, :]
    right = weight + inner[:, None] * O + outputs[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, I, INNER):
        total = tl.dot(tl.load(left + start, mask=inside[:, None], other=0.0), tl.load(right + start * O), total)
    at = rows[:, None] * O + outputs[None, :]
    passed = tl.load(hidden + at, mask=inside[:, None], other=0.0) > 0.0
    total = tl.where(passed, total, 0.0)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=inside[:, None])
    tl.store(sums + tile * O + outputs, tl.sum(total, 0))


def attend(qkv: Tensor, present: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    """As the operator of this name in `kernels.sets`, all tensors contiguous."""
    num_rows, places, wide = qkv.shape
    width = wide // 3
    out = qkv.new_empty(num_rows, places, width)
    log_sums = qkv.new_empty(num_rows, num_heads, places, dtype=torch.float32)
    scale = (width // num_heads) ** -0.5 * LOG2_E
    _attend[(num_rows * num_heads,)](
        qkv, present.view(torch.uint8), out, log_sums, scale,
        S=places, H=num_heads, D=width // num_heads, BLOCK=block_of(places), num_warps=8, num_stages=1,
    )  # fmt: skip
    return out, log_sums


def attend_backward(of_out: Tensor, qkv: Tensor, present: Tensor, log_sums: Tensor, num_heads: int) -> Tensor:
    """As the operator of this name in `kernels.sets`, all tensors contiguous."""
    num_rows, places, wide = qkv.shape
    head_width = wide // 3 // num_heads
    num_sets = num_rows * num_heads
    of_qkv = torch.empty_like(qkv)
    _attend_backward[(min(num_sets, num_multiprocessors(qkv.device)),)](
        of_out, qkv, present.view(torch.uint8), log_sums, of_qkv, head_width**-0.5 * LOG2_E, head_width**-0.5, num_sets,
        S=places, H=num_heads, D=head_width, BLOCK=block_of(places), num_warps=8,
    )  # fmt: skip
    return of_qkv


def relu_product(gradient: Tensor, weight: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """As the operator of this name in `kernels.feed_forward`, all tensors contiguous."""
    rows, inputs = gradient.shape
    outputs = weight.shape[1]
    out = torch.empty_like(hidden)
    tiles = triton.cdiv(rows, TILE)
    sums = gradient.new_empty(tiles, outputs, dtype=torch.float32)
    _relu_product[(tiles * (outputs // TILE),)](
        gradient, weight, hidden, out, sums, rows,
        I=inputs, O=outputs, TILE=TILE, INNER=INNER, GROUP=GROUP, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out, sums.sum(0)


def num_multiprocessors(device: torch.device) -> int:
    """Of a GPU: as many programs as run at the same time, if each takes a whole one."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def block_of(places: int) -> int:
    """The power of two that holds all places, at least the 16 rows that the matrix units take."""
    return max(16, int(triton.next_power_of_2(places)))
