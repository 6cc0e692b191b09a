"""Upper-confidence tree search with random rollouts, all games of a batch in lockstep.

Each simulation copies the games, walks down the trees, adds one node a tree, and plays on at random to the end. Proven
results are backed up (a seat takes a proven win; a node with all moves proven is proven), as in OpenSpiel's solver.
For perfect information only: the copies hold what a seat may not see.

Shape letters: K games, M nodes a tree, A actions, S seats. A node is written k * M + j, the root is j = 0.
Source: Kocsis & Szepesvari 2006; Winands, Bjornsson & Saito 2008 (the solver).
"""

from __future__ import annotations

from contextlib import ExitStack, closing

import numpy as np
from numpy.typing import NDArray

from league.envs.bots import Copyable, copies, legal_actions
from league.envs.protocol import BatchedEnv, EnvError, Turn
from league.envs.sampling import uniform_legal

WIN = 1.0  # the most a seat can get out of a game of two: a proven win needs no further search
MAX_TURNS = 1000  # of one simulation; a game that is not over by then counts 0 for all


class MctsBot:
    """Plays the most visited move, or a proven win."""

    def __init__(self, *, seed: int, num_simulations: int, exploration: float = 2.0) -> None:
        """exploration: weight of sqrt(ln n / n_a) beside values in [-1, 1]."""
        if num_simulations < 1:
            raise EnvError(f"mcts needs at least 1 simulation, got {num_simulations}")
        self._rng = np.random.default_rng(seed)
        self._num_simulations = num_simulations
        self._exploration = exploration

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """See `Bot.act`; for games in which one seat acts at a time."""
        if not slots.size:
            return np.zeros(0, np.int64)
        games, now = copies(env, turn, slots, bot="mcts")
        trees = PlayoutTrees(
            legal_actions(games, now), now.seat, num_seats=env.spec.num_seats, num_nodes=self._num_simulations + 1
        )
        with closing(games):
            for _ in range(self._num_simulations):
                searched = trees.unproven()
                if not searched.size:
                    break
                with ExitStack() as opened:
                    self._simulate(games, trees, searched, opened)
        return trees.best(self._rng)

    def _simulate(self, games: BatchedEnv, trees: PlayoutTrees, tree: NDArray[np.int64], opened: ExitStack) -> None:
        """Run one simulation in each of the trees `tree` [G]; `opened` closes the copies that it makes."""
        assert isinstance(games, Copyable)
        copy, turn = games.fork(tree)
        opened.enter_context(closing(copy))
        game = np.arange(tree.size)  # which simulation each game of `copy` plays
        results = np.zeros((tree.size, trees.num_seats), np.float32)
        over = np.zeros(tree.size, np.bool_)
        walk = Walk(trees, tree)
        for _ in range(MAX_TURNS):
            actions = uniform_legal(legal_actions(copy, turn), self._rng)
            inside = walk.inside[game]
            if inside.any():
                rows = np.flatnonzero(inside)
                actions[rows] = trees.select(walk.node[game[rows]], self._exploration, self._rng)
            turn = copy.step(actions)
            ended = turn.ended & ~over[game]
            results[game[ended]] = turn.returns[ended]
            over[game[ended]] = True
            if inside.any():
                legal = legal_actions(copy, turn)[rows]
                walk.advance(game[rows], actions[rows], turn.seat[rows], legal, ended[rows])
            num_left = int((~over[game]).sum())
            if not num_left:
                break
            if num_left <= game.size // 2:  # drop ended games: they only cost time
                assert isinstance(copy, Copyable)
                left = np.flatnonzero(~over[game])
                copy, turn = copy.fork(left)
                opened.enter_context(closing(copy))
                game = game[left]
        walk.back_up(results)


class PlayoutTrees:
    """K search trees as flat arrays; node 0 of each is the present position."""

    def __init__(self, legal: NDArray[np.bool_], seat: NDArray[np.int64], *, num_seats: int, num_nodes: int) -> None:
        """Create trees with one root each. legal: bool [K, A] and seat: int64 [K], of the present positions."""
        num_trees, num_actions = legal.shape
        size = num_trees * num_nodes
        self.num_seats = num_seats
        self.roots = np.arange(num_trees) * num_nodes
        self._next = self.roots + 1
        self.child = np.full((size, num_actions), -1, np.int64)
        self.legal = np.zeros((size, num_actions), np.bool_)
        self.seat = np.zeros(size, np.int64)
        # For the edge into each node: visit count, and total return of the seat that moved along it.
        self.visits = np.zeros(size, np.float32)
        self.earned = np.zeros(size, np.float32)
        self.proven = np.zeros(size, np.bool_)
        self.result = np.zeros((size, num_seats), np.float32)
        self.legal[self.roots], self.seat[self.roots] = legal, seat

    def unproven(self) -> NDArray[np.int64]:
        """The trees whose root is not proven yet."""
        return np.flatnonzero(~self.proven[self.roots])

    def select(self, node: NDArray[np.int64], exploration: float, rng: np.random.Generator) -> NDArray[np.int64]:
        """The move to try at each node [G]: an untried one at random, else the highest upper confidence bound."""
        child = self.child[node]
        visits = self.visits[child]
        tried = child >= 0
        spread = np.sqrt(np.log(np.maximum(self.visits[node], 1.0))[:, None] / np.maximum(visits, 1.0))
        score = self.earned[child] / np.maximum(visits, 1.0) + exploration * spread
        proven = self.proven[child]
        if proven.any():
            score = np.where(proven, self.result[child, self.seat[node][:, None]], score)
        score = np.where(tried, score, 1e6 + rng.random(score.shape, np.float32) * 1e6)
        score[~self.legal[node]] = -np.inf
        chosen: NDArray[np.int64] = score.argmax(axis=1)
        return chosen

    def add(self, tree: NDArray[np.int64], parent: NDArray[np.int64], action: NDArray[np.int64]) -> NDArray[np.int64]:
        """New nodes [G] for `action` at `parent`, in different trees."""
        node = self._next[tree]
        self._next[tree] += 1
        self.child[parent, action] = node
        return node

    def prove(self, node: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Prove the nodes [G] where possible; returns bool [G], True for proven nodes."""
        child, seat = self.child[node], self.seat[node]
        known = self.legal[node] & (child >= 0) & self.proven[child]
        worth = np.where(known, self.result[child, seat[:, None]], -np.inf)
        best = worth.argmax(axis=1)
        rows = np.arange(node.size)
        complete = (known == self.legal[node]).all(axis=1)
        done: NDArray[np.bool_] = known.any(axis=1) & ((worth[rows, best] >= WIN) | complete)
        self.proven[node[done]] = True
        self.result[node[done]] = self.result[child[rows, best][done]]
        return done

    def best(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """The best move [K] of each tree: by proven result, then by visits, then by mean return."""
        child, seat = self.child[self.roots], self.seat[self.roots]
        tried = (child >= 0) & self.legal[self.roots]
        proven = np.where(self.proven[child], self.result[child, seat[:, None]], 0.0)
        mean = self.earned[child] / np.maximum(self.visits[child], 1.0)
        score = proven * 1e6 + self.visits[child] + 0.25 * mean + 0.01 * rng.random(child.shape)
        chosen: NDArray[np.int64] = np.where(tried, score, -np.inf).argmax(axis=1)
        return chosen


class Walk:
    """The path of one simulation down each of G trees, with the nodes that it adds."""

    def __init__(self, trees: PlayoutTrees, tree: NDArray[np.int64]) -> None:
        self._trees = trees
        self._tree = tree
        self.node = trees.roots[tree]
        self.inside = np.ones(tree.size, np.bool_)  # still at a node of the tree
        self._steps: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        self._ended = np.zeros(tree.size, np.bool_)  # the game ended at a node of the tree

    def advance(
        self,
        which: NDArray[np.int64],
        action: NDArray[np.int64],
        seat: NDArray[np.int64],
        legal: NDArray[np.bool_],
        ended: NDArray[np.bool_],
    ) -> None:
        """Record that walks `which` [G'] took `action`; then `seat` moves with `legal` moves, or the game `ended`."""
        trees = self._trees
        parent = self.node[which]
        node = trees.child[parent, action]
        new = node < 0
        if new.any():
            node[new] = trees.add(self._tree[which[new]], parent[new], action[new])
            trees.seat[node[new]] = seat[new]
            trees.legal[node[new]] = legal[new] & ~ended[new, None]
        self._steps.append((which, parent, node))
        self.node[which] = node
        self._ended[which] |= ended
        self.inside[which] = ~new & ~ended

    def back_up(self, results: NDArray[np.float32]) -> None:
        """Add the visits and results [G, S] of the walks to the trees, and prove nodes where possible."""
        trees = self._trees
        leaves = np.flatnonzero(self._ended)
        trees.proven[self.node[leaves]] = True
        trees.result[self.node[leaves]] = results[leaves]
        trees.visits[trees.roots[self._tree]] += 1
        proving = self._ended.copy()
        for which, parent, node in reversed(self._steps):
            trees.visits[node] += 1
            trees.earned[node] += results[which, trees.seat[parent]]
            rows = np.flatnonzero(proving[which])
            if rows.size:
                proving[which[rows]] = trees.prove(parent[rows])
