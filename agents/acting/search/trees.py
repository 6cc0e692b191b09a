"""The trees of a search as flat arrays: statistics of moves, proven results, and the step to another root.

Shape letters: K trees, M nodes a tree, A actions, S seats, G walks of a wave, F nodes of a level. Node j of tree k is
k * M + j, and the root is j = 0. All values are in units of half the game's return range, so that they lie in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VISITS, TOTAL, PRIOR, KNOWN = range(4)
"""Lines of `Trees.moves`. One row holds all that a choice reads: it is one copy of memory instead of four."""

Chosen = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""One level of a wave: [F] walks, the nodes where they chose, and what they chose."""


@dataclass(frozen=True)
class Leaves:
    """The ends of the walks of a wave.

    Fields:
      node: int64 [G].
      values: float32 [G, S], of each seat, from the tree's origin on.
      proven: bool [G], True where `values` is a result.
    """

    node: NDArray[np.int64]
    values: NDArray[np.float32]
    proven: NDArray[np.bool_]


class Trees:
    """K search trees.

    Attributes:
      moves: float32 [K * M, 4, A]: visits, total value for the seat that moves, prior probability, proven result.
        The result is for that seat: NaN where it is not proven, -inf where the move is illegal.
      child: int64 [K * M, A], node after each move, -1 for none.
      seat: int64 [K * M], to move.
      value: float32 [K * M], judged by the network for that seat, from here on.
      logits: float32 [K * M, A], masked ones.
      earned: float32 [K * M, S], rewards since the origin of the tree, which is the root before any `moved_to`.
      is_open: bool [K * M], judged and not over.
      proven: bool [K * M]; result: float32 [K * M, S], since the origin.
      key: uint64 [K * M], digest of what the seat to move sees.
      win: value at which a seat needs no better move.
    """

    def __init__(self, num_trees: int, num_nodes: int, *, num_actions: int, num_seats: int, win: float) -> None:
        """Create trees whose roots have still to be opened."""
        size = num_trees * num_nodes
        self.num_trees, self.num_nodes, self.num_actions, self.num_seats = num_trees, num_nodes, num_actions, num_seats
        self.win = win
        self.roots = np.arange(num_trees) * num_nodes
        self.num_used = np.ones(num_trees, np.int64)
        self.moves = np.zeros((size, 4, num_actions), np.float32)
        self.child = np.full((size, num_actions), -1, np.int64)
        self.seat = np.zeros(size, np.int64)
        self.value = np.zeros(size, np.float32)
        self.logits = np.zeros((size, num_actions), np.float32)
        self.earned = np.zeros((size, num_seats), np.float32)
        self.is_open = np.zeros(size, np.bool_)
        self.proven = np.zeros(size, np.bool_)
        self.result = np.zeros((size, num_seats), np.float32)
        self.key = np.zeros(size, np.uint64)

    def visits(self) -> NDArray[np.float32]:
        """[K], of all moves at the roots."""
        total: NDArray[np.float32] = self.moves[self.roots, VISITS].sum(axis=1)
        return total

    def add(self, parent: NDArray[np.int64], action: NDArray[np.int64]) -> NDArray[np.int64]:
        """New nodes [F] after `action` at `parent`, which lie in the order of their trees."""
        tree = parent // self.num_nodes
        first = tree.searchsorted(tree)
        node: NDArray[np.int64] = tree * self.num_nodes + self.num_used[tree] + np.arange(len(tree)) - first
        np.add.at(self.num_used, tree, 1)
        self.child[parent, action] = node
        return node

    def open(
        self,
        node: NDArray[np.int64],
        *,
        seat: NDArray[np.int64],
        legal: NDArray[np.bool_],
        key: NDArray[np.uint64],
        earned: NDArray[np.float32],
        logits: NDArray[np.float32],
        values: NDArray[np.float32],
    ) -> None:
        """Enter positions that were judged.

        Args:
          node, seat: int64 [F]. legal: bool [F, A]. key: uint64 [F]. earned: float32 [F, S].
          logits: float32 [F, A]; values: float32 [F], for the seat to move.
        """
        masked = np.where(legal, logits, np.float32(-np.inf))
        masked -= masked.max(axis=1, keepdims=True)
        prior = np.exp(masked)
        prior /= prior.sum(axis=1, keepdims=True)
        moves = np.zeros((len(node), 4, self.num_actions), np.float32)
        moves[:, PRIOR] = prior
        moves[:, KNOWN] = np.where(legal, np.float32(np.nan), np.float32(-np.inf))
        self.moves[node] = moves
        self.logits[node] = masked
        self.seat[node], self.value[node], self.key[node], self.earned[node] = seat, values, key, earned
        self.is_open[node] = True

    def end(self, node: NDArray[np.int64], result: NDArray[np.float32]) -> None:
        """Enter positions [F] in which the game is over with `result` [F, S] since the origin."""
        self.proven[node], self.result[node] = True, result

    def back_up(self, leaves: Leaves, path: list[Chosen], *, distinct: bool) -> None:
        """Add what the walks of a wave found to the moves on their way, and prove what follows from it.

        distinct: True if no two walks are in one tree, which is the quicker case.
        """
        stride, width = 4 * self.num_actions, self.num_actions
        walk = np.concatenate([level[0] for level in path])
        node = np.concatenate([level[1] for level in path])
        place = node * stride + np.concatenate([level[2] for level in path])
        gained = leaves.values[walk, self.seat[node]]
        flat = self.moves.reshape(-1)
        if distinct:
            flat[place] += 1.0
            flat[place + width] += gained
        else:
            np.add.at(flat, place, np.float32(1.0))
            np.add.at(flat, place + width, gained)
        if leaves.proven.any():
            self._prove(leaves, path)

    def _prove(self, leaves: Leaves, path: list[Chosen]) -> None:
        """Carry proven results upwards: a seat takes a proven win, and a node of which all moves are proven is proven.

        Source: Winands, Bjornsson & Saito 2008, Monte-Carlo tree search solver.
        """
        proving = leaves.proven.copy()
        below = leaves.node.copy()
        for walk, node, action in reversed(path):
            rows = np.flatnonzero(proving[walk])
            if rows.size:
                walks, parent = walk[rows], node[rows]
                self.moves[parent, KNOWN, action[rows]] = self.result[below[walks], self.seat[parent]]
                proving[walks] = self._prove_nodes(parent)
            below[walk] = node

    def _prove_nodes(self, node: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Prove nodes [F] where possible; returns True for those."""
        known = self.moves[node, KNOWN]
        is_unknown = np.isnan(known)
        worth = np.where(is_unknown, np.float32(-np.inf), known)
        best = worth.argmax(axis=1)
        done: NDArray[np.bool_] = (worth[np.arange(len(node)), best] >= self.win) | ~is_unknown.any(axis=1)
        self.proven[node[done]] = True
        self.result[node[done]] = self.result[self.child[node[done], best[done]]]
        return done

    def moved_to(self, root: NDArray[np.int64], *, num_nodes: int) -> Trees:
        """Trees [len(root)] that keep what lies below these nodes; -1 for a tree that starts empty.

        num_nodes: M of the new trees; no more than that lie below a node.
        """
        trees = Trees(len(root), num_nodes, num_actions=self.num_actions, num_seats=self.num_seats, win=self.win)
        tree = np.flatnonzero(root >= 0)
        old, new = root[tree], trees.roots[tree]
        olds, news = [old], [new]
        while old.size:
            row, action = np.nonzero(self.child[old] >= 0)
            tree, parent = tree[row], new[row]
            old = self.child[old[row], action]
            first = np.searchsorted(tree, tree, side="left")  # a level lies in the order of its trees
            new = trees.roots[tree] + trees.num_used[tree] + np.arange(len(tree)) - first
            trees.num_used += np.bincount(tree, minlength=len(root))
            trees.child[parent, action] = new
            olds.append(old)
            news.append(new)
        trees._copy(self, np.concatenate(olds), np.concatenate(news))
        return trees

    def _copy(self, other: Trees, old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
        """Take over nodes `old` of another's as `new`, without their children."""
        for mine, its in (
            (self.moves, other.moves),
            (self.seat, other.seat),
            (self.value, other.value),
            (self.logits, other.logits),
            (self.earned, other.earned),
            (self.is_open, other.is_open),
            (self.proven, other.proven),
            (self.result, other.result),
            (self.key, other.key),
        ):
            mine[new] = its[old]
