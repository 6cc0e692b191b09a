"""Search: waves of walks down all trees, one forward pass a wave.

Shape letters: K trees, A actions, S seats, G walks of a wave, D moves of the longest of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.search.positions import Positions, Roots
from league.agents.acting.search.trees import Chosen, Leaves, Trees
from league.envs.protocol import EnvSpec


class Judge(Protocol):
    """Gives a search its first opinion of a position."""

    def judge(
        self, obs: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_], seat: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [G, A] and expected returns from here on [G] of the seats to move. Fields as of `Positions`."""
        ...


class Chooser(Protocol):
    """How walks choose their moves."""

    def choose(self, trees: Trees, node: NDArray[np.int64], count: int, *, depth: int) -> NDArray[np.int64]:
        """Moves [F, count] for up to `count` walks that come one after another to each of the nodes [F].

        depth: of the nodes, 0 for roots.
        """
        ...


@dataclass(frozen=True)
class Returns:
    """The scale of a game's values, and what one seat's value says of the others.

    Fields:
      middle, half: of the return range; 0 and 1 where it is not known.
      win: scaled return from which a seat needs no better move; infinite where more can be earned.
      shares: float32 [S, S], the value of seat t by that of seat s. What one team gains the others lose in equal parts.
    """

    middle: float
    half: float
    win: float
    shares: NDArray[np.float32]

    @staticmethod
    def of(spec: EnvSpec) -> Returns:
        """Those of a game."""
        low, high = spec.return_range or (-1.0, 1.0)
        teams = np.array(spec.teams)
        others = max(spec.num_teams - 1, 1)
        shares = np.where(teams[:, None] == teams[None, :], 1.0, -1.0 / others).astype(np.float32)
        half = max((high - low) / 2.0, 1e-6)
        return Returns((high + low) / 2.0, half, 1.0 if spec.win_draw_loss else np.inf, shares)

    def scaled(self, value: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns in units of the trees."""
        return ((value - np.float32(self.middle)) / np.float32(self.half)).astype(np.float32)

    def unscaled(self, value: NDArray[np.float32]) -> NDArray[np.float32]:
        """And back."""
        return (value * np.float32(self.half) + np.float32(self.middle)).astype(np.float32)


class Search:
    """Searches from the present positions of some games.

    Args:
      roots: the games.
      judge: called once a wave.
      trees: K of them; roots that are not open yet are judged first.
      leaves: walks of one wave in each tree; above 1 they keep out of one another's way by a virtual loss.
    """

    def __init__(self, roots: Roots, judge: Judge, trees: Trees, *, leaves: int = 1) -> None:
        self._roots, self._judge, self.trees, self._leaves = roots, judge, trees, leaves
        self.returns = Returns.of(roots.spec)
        self.num_walks = 0

    def open_roots(self) -> None:
        """Judge the roots that no earlier search judged."""
        closed = np.flatnonzero(~self.trees.is_open[self.trees.roots])
        if closed.size:
            self._open(self.trees.roots[closed], self._roots.now.at(closed), origin=None)

    def run(
        self,
        chooser: Chooser,
        *,
        num_simulations: int,
        until: float = np.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Walk until every root has so many visits or is proven, or until `clock` says `until`.

        Raises:
          EnvError: see `Roots.reach`.
        """
        while clock() < until:
            missing = num_simulations - self.trees.visits()
            tree = np.flatnonzero((missing > 0) & ~self.trees.proven[self.trees.roots])
            if not tree.size:
                return
            self._wave(chooser, tree, missing[tree])

    def _wave(self, chooser: Chooser, tree: NDArray[np.int64], missing: NDArray[np.float32]) -> None:
        """Walk down the trees `tree`, each at most `missing` times; judge what is reached, and back it up."""
        if self._leaves > 1:
            tree = np.repeat(tree, np.minimum(missing, self._leaves).astype(np.int64))
        path, leaf = self._descend(chooser, tree)
        self.num_walks += len(tree)
        trees = self.trees
        new = np.flatnonzero(~trees.proven[leaf])
        if new.size:
            self._reach(new, tree[new], leaf[new], path)
        proven = trees.proven[leaf]
        values = trees.value[leaf][:, None] * self.returns.shares[trees.seat[leaf]] + trees.earned[leaf]
        values[proven] = trees.result[leaf[proven]]
        trees.back_up(Leaves(leaf, values, proven), path, distinct=self._leaves == 1)

    def _descend(self, chooser: Chooser, tree: NDArray[np.int64]) -> tuple[list[Chosen], NDArray[np.int64]]:
        """Walks in the trees `tree` [G], in their order, to nodes that are new, proven or not judged yet.

        Level by level: all walks that come to a node choose there together, each after those before it.
        Returns: the path and the leaves [G].
        """
        trees = self.trees
        walk, node = np.arange(len(tree)), trees.roots[tree]
        leaf, path = np.empty(len(tree), np.int64), list[Chosen]()
        while walk.size:
            walk, node, action = self._chosen(chooser, walk, node, depth=len(path))
            path.append((walk, node, action))
            below = trees.child[node, action]
            new = below < 0
            if new.any():
                below[new] = self._added(node[new], action[new])
            go_on = trees.is_open[below] & ~trees.proven[below]
            if go_on.all():
                node = below
                continue
            stopped = ~go_on
            leaf[walk[stopped]] = below[stopped]
            walk, node = walk[go_on], below[go_on]
        return path, leaf

    def _chosen(self, chooser: Chooser, walk: NDArray[np.int64], node: NDArray[np.int64], *, depth: int) -> Chosen:
        """The walks of a level in the order of their nodes, and what they choose there."""
        if self._leaves == 1:
            return walk, node, chooser.choose(self.trees, node, 1, depth=depth)[:, 0]
        order = node.argsort(kind="stable")
        walk, node = walk[order], node[order]
        group, begins = _runs(node)
        place = np.arange(len(node)) - begins[group]
        chosen = chooser.choose(self.trees, node[begins], int(place.max()) + 1, depth=depth)
        return walk, node, chosen[group, place]

    def _added(self, node: NDArray[np.int64], action: NDArray[np.int64]) -> NDArray[np.int64]:
        """New nodes for moves [F]; one for all walks that chose the same."""
        if self._leaves == 1:
            return self.trees.add(node, action)
        order = (node * self.trees.num_actions + action).argsort()
        node, action = node[order], action[order]
        group, begins = _runs(node * self.trees.num_actions + action)
        added = np.empty(len(order), np.int64)
        added[order] = self.trees.add(node[begins], action[begins])[group]
        return added

    def _reach(
        self, walks: NDArray[np.int64], tree: NDArray[np.int64], leaf: NDArray[np.int64], path: list[Chosen]
    ) -> None:
        """Play the walks `walks` to their leaves, and enter what is found there."""
        num_walks = int(path[0][0].size)
        moves, length = np.zeros((num_walks, len(path)), np.int64), np.zeros(num_walks, np.int64)
        for depth, (walk, _, action) in enumerate(path):
            moves[walk, depth] = action
            length[walk] = depth + 1
        length = length[walks]
        found = self._roots.reach(tree, moves[walks, : length.max()], length)
        origin = self.trees.earned[self.trees.roots[tree]]
        if found.over.any():
            over = np.flatnonzero(found.over)
            self.trees.end(leaf[over], self.returns.scaled(found.earned[over]) + origin[over])
            rows = np.flatnonzero(~found.over)
            if rows.size:
                self._open(leaf[rows], found.at(rows), origin=origin[rows])
        else:
            self._open(leaf, found, origin=origin)

    def _open(self, node: NDArray[np.int64], found: Positions, *, origin: NDArray[np.float32] | None) -> None:
        """Judge positions and enter them; origin: float32 [G, S], earned at the roots, None for roots themselves."""
        logits, values = self._judge.judge(found.obs, found.legal, found.seat)
        earned = found.earned / np.float32(self.returns.half)
        self.trees.open(
            node,
            seat=found.seat,
            legal=found.legal,
            key=found.keys(),
            earned=earned if origin is None else earned + origin,
            logits=logits,
            values=self.returns.scaled(values),
        )

    def root_values(self) -> NDArray[np.float32]:
        """[K], expected return from here on of each root's seat, by all that was found."""
        trees, root = self.trees, self.trees.roots
        rows = np.arange(len(root))
        seat = trees.seat[root]
        earned = trees.earned[root, seat]
        moves = trees.moves[root]
        total = trees.value[root] + earned + moves[:, 1].sum(axis=1)
        mean = total / (1.0 + moves[:, 0].sum(axis=1))
        value = np.where(trees.proven[root], trees.result[root][rows, seat], mean) - earned
        return self.returns.unscaled(value)


def _runs(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The run of equal numbers in which each of some sorted ones lies, and where each run begins."""
    begins = np.empty(len(numbers), np.bool_)
    begins[0] = True
    np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
    return begins.cumsum() - 1, begins.nonzero()[0]
