"""Checks returns against the range that a spec declares, and describes that range in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec
from league.envs.text.number_text import number_text


def check_returns(spec: EnvSpec, returns: NDArray[np.float32]) -> Iterator[tuple[str, str]]:
    """Yields (rule, sentence) for every fault of one episode's returns, float32 [S], against the spec's range."""
    if spec.return_range is None:
        if spec.win_draw_loss:
            yield "a range where returns say who won", "win_draw_loss is set, return_range is None; give the range"
        return
    low, high = spec.return_range
    ends = f"{number_text(low, 6)}, {number_text(high, 6)}"
    slack = 1e-4 * max(1.0, abs(low), abs(high))
    outside = (returns < low - slack) | (returns > high + slack)
    if outside.any():
        seat = int(outside.argmax())
        yield (
            "return_range holds",
            f"seat {seat} returned {number_text(float(returns[seat]), 6)}, return_range is [{ends}]; give the widest",
        )
    between = np.abs(returns[:, None] - np.array([low, 0.5 * (low + high), high])).min(axis=1) > slack
    if spec.win_draw_loss and between.any():
        seat = int(between.argmax())
        yield (
            "win_draw_loss holds",
            f"seat {seat} returned {number_text(float(returns[seat]), 6)}, which is neither end nor the middle of "
            f"[{ends}]; do not set win_draw_loss where games are won by more or less",
        )


def returns_text(spec: EnvSpec) -> str:
    """Describes the range of the returns of a game in words."""
    if spec.return_range is None:
        return "of unknown range; random play decides whether a league counts them or games won"
    low, high = spec.return_range
    kind = "won, drawn or lost" if spec.win_draw_loss else "more or less may be won"
    return f"from {number_text(low, 6)} to {number_text(high, 6)}, {kind}"
