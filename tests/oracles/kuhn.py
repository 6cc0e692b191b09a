"""Kuhn poker as exact sums over its 30 endings: expected values, gradients and NashConv without sampling.

A policy is a table [12, 2] of probabilities (pass, bet), one row per information state: 6 of the first player (3 cards
x histories "", "pb"), then 6 of the second (3 cards x histories "p", "b").
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

HISTORIES = (("", "pb"), ("p", "b"))
DEALS = tuple(itertools.permutations(range(3), 2))
ENDINGS = ("pp", "pbp", "pbb", "bp", "bb")


def row_of(card: int, history: str) -> int:
    """The information state of whoever must act after `history`."""
    player = len(history) % 2
    return 6 * player + 2 * card + HISTORIES[player].index(history)


def payoff(cards: tuple[int, int], ending: str) -> float:
    """Chips that the first player wins."""
    if ending == "pbp":
        return -1.0
    if ending == "bp":
        return 1.0
    stake = 1.0 if ending == "pp" else 2.0
    return stake if cards[0] > cards[1] else -stake


def _path(cards: tuple[int, int], history: str) -> list[int]:
    """Where the probabilities of a history's three moves stand in the flat table; 24 (certain) behind its end."""
    moves = [2 * row_of(cards[n % 2], history[:n]) + "pb".index(move) for n, move in enumerate(history)]
    return moves + [24] * (3 - len(moves))


ENDING_PATHS = torch.tensor([_path(cards, ending) for cards in DEALS for ending in ENDINGS])
ENDING_PAYOFFS = torch.tensor([payoff(cards, ending) for cards in DEALS for ending in ENDINGS])
VISITS = [(cards, player, history) for cards in DEALS for player in range(2) for history in HISTORIES[player]]
VISIT_PATHS = torch.tensor([_path(cards, history) for cards, _, history in VISITS])
VISIT_ROWS = torch.tensor([row_of(cards[player], history) for cards, player, history in VISITS])


def reaches(policy: Tensor, paths: Tensor) -> Tensor:
    """Probability [P] that deal and moves lead to each of P paths [P, 3]."""
    return torch.cat([policy.flatten(), policy.new_ones(1)])[paths].prod(1) / len(DEALS)


def value(policy: Tensor) -> Tensor:
    """Expected chips of the first player, differentiable in the table."""
    return (reaches(policy, ENDING_PATHS) * ENDING_PAYOFFS).sum()


def row_reaches(policy: Tensor) -> Tensor:
    """[12], how often a game visits each information state."""
    return policy.new_zeros(12).index_add(0, VISIT_ROWS, reaches(policy, VISIT_PATHS))


def nash_conv(policy: Tensor) -> float:
    """What both players could gain by the best of their 64 pure strategies, in chips."""
    with torch.no_grad():
        gains = []
        for player, sign in ((0, 1.0), (1, -1.0)):
            best = -float("inf")
            for choices in itertools.product(range(2), repeat=6):
                deviation = policy.clone()
                rows = slice(6 * player, 6 * player + 6)
                deviation[rows] = torch.eye(2, dtype=policy.dtype)[list(choices)]
                best = max(best, sign * float(value(deviation)))
            gains.append(best - sign * float(value(policy)))
        return sum(gains)


def information_tensors() -> Tensor:
    """float32 [12, 11]: acting player (2), own card (3), the three betting rounds (pass, bet each), all 0 or 1."""
    tensors = torch.zeros(12, 11)
    for card in range(3):
        for player in range(2):
            for history in HISTORIES[player]:
                row = tensors[row_of(card, history)]
                row[player] = 1.0
                row[2 + card] = 1.0
                for length, move in enumerate(history):
                    row[5 + 2 * length + "pb".index(move)] = 1.0
    return tensors
