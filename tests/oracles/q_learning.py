"""Slow oracles of Q-learning: n-step targets step by step, values of a chain, and tic-tac-toe against random play."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def n_step_target(
    step: int,
    *,
    rewards: Sequence[float],
    discounts: Sequence[float],
    valid: Sequence[bool],
    values: Sequence[float],
    steps: int,
) -> float:
    """The target of one decision of one row. values: of all T+1 observations. discounts: gamma applied."""
    total, scale, at = 0.0, 1.0, step
    while at < len(rewards) and at < step + steps and valid[at]:
        total += scale * rewards[at]
        scale *= discounts[at]
        at += 1
        if scale == 0.0:
            return total  # the episode ended: nothing follows
    return total + scale * values[at]


def chain_values(length: int, gamma: float) -> np.ndarray:
    """Q* float64 [length, 2] of a chain: left, right; a step off the right end pays 1 and ends, the left end holds."""
    values = np.zeros((length, 2))
    for _ in range(1000):
        best = values.max(1)
        for state in range(length):
            values[state, 0] = gamma * best[max(state - 1, 0)]
            values[state, 1] = 1.0 if state == length - 1 else gamma * best[state + 1]
    return values


@functools.cache
def first_player(board: tuple[int, ...]) -> tuple[float, ...]:
    """Value of each square for the player of 1, who is to move and plays best against random moves; -2 if taken."""
    return tuple(-2.0 if mark else _after(board, square) for square, mark in enumerate(board))


def _after(board: tuple[int, ...], square: int) -> float:
    placed = (*board[:square], 1, *board[square + 1 :])
    if _won(placed, 1):
        return 1.0
    empty = [place for place, mark in enumerate(placed) if not mark]
    if not empty:
        return 0.0
    return float(np.mean([_answered((*placed[:place], 2, *placed[place + 1 :])) for place in empty]))


def _answered(board: tuple[int, ...]) -> float:
    return -1.0 if _won(board, 2) else max(first_player(board))


def _won(board: tuple[int, ...], mark: int) -> bool:
    return any(all(board[place] == mark for place in line) for line in LINES)
