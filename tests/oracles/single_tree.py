"""A literal search of one tree, one simulation at a time, with a Python object a node: AlphaZero's pseudocode.

Proven results are kept as by Winands et al. 2008. Returns lie in [-1, 1]; two seats, one of which wins what the other
loses, in any order of turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import BatchedEnv, ForkableEnv, Turn

Judge = Callable[[Turn], tuple[NDArray[np.float32], float]]
"""Logits [A] and the value of the seat to move, of a turn of one game."""


@dataclass
class Node:
    """A position. result: of seat 0 once proven. total: of `children` edges, for the seat that moves here."""

    seat: int = -1
    prior: dict[int, float] = field(default_factory=dict)
    visits: dict[int, int] = field(default_factory=dict)
    total: dict[int, float] = field(default_factory=dict)
    children: dict[int, Node] = field(default_factory=dict)
    result: float | None = None
    value: float = 0.0


def for_seat(value: float, seat: int) -> float:
    """What seat 0's value is worth to a seat."""
    return value if seat == 0 else -value


def search(env: BatchedEnv, turn: Turn, judge: Judge, num_simulations: int) -> Node:
    """The tree over the only game of `env`."""
    root = Node()
    expand(root, turn, judge)
    for _ in range(num_simulations):
        if root.result is not None:
            break
        simulate(env, root, judge)
    return root


def expand(node: Node, turn: Turn, judge: Judge) -> None:
    logits, value = judge(turn)
    assert turn.action_mask is not None
    legal = np.flatnonzero(turn.action_mask[0]).tolist()
    most = max(float(logits[action]) for action in legal)
    weights = {action: math.exp(float(logits[action]) - most) for action in legal}
    node.seat, node.value = int(turn.seat[0]), value
    node.prior = {action: weight / sum(weights.values()) for action, weight in weights.items()}
    node.visits, node.total = dict.fromkeys(legal, 0), dict.fromkeys(legal, 0.0)


def choose(node: Node) -> int:
    number = 1 + sum(node.visits.values())
    c = math.log((1 + number + 19_652) / 19_652) + 1.25

    def score(action: int) -> float:
        child = node.children.get(action)
        if child is not None and child.result is not None:
            return for_seat(child.result, node.seat)
        visits = node.visits[action]
        mean = node.total[action] / visits if visits else 0.0
        return mean + c * node.prior[action] * math.sqrt(number) / (1 + visits)

    return max(node.prior, key=score)


def simulate(env: BatchedEnv, root: Node, judge: Judge) -> None:
    assert isinstance(env, ForkableEnv)
    copy, turn = env.fork(np.zeros(1, np.int64))
    path, node = [], root
    while True:
        action = choose(node)
        path.append((node, action))
        turn = copy.step(np.array([action]))
        if action not in node.children:
            node.children[action] = leaf = Node()
            if turn.ended[0]:
                leaf.result = value = float(turn.returns[0, 0])
            else:
                expand(leaf, turn, judge)
                value = for_seat(leaf.value, leaf.seat)
            break
        node = node.children[action]
        if node.result is not None:
            value = node.result
            break
    copy.close()
    for parent, action in reversed(path):
        parent.visits[action] += 1
        parent.total[action] += for_seat(value, parent.seat)
        prove(parent)


def prove(node: Node) -> None:
    if node.result is not None:
        return
    known = {
        action: for_seat(child.result, node.seat) for action, child in node.children.items() if child.result is not None
    }
    if known and (max(known.values()) >= 1 or len(known) == len(node.prior)):
        node.result = for_seat(max(known.values()), node.seat)
