"""Visits every history of a small game by copies of its games, for its information states and endings.

For games that say nothing of themselves: what a seat knows is all that it saw and did. A copy keeps the draws of its
original, so that each game that begins opens a tree without chance, see `league.envs.search.deals`.

Shape letter: S seats.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.bots import Copyable, RandomBot, legal_actions
from league.envs.closing import closed_on_error
from league.envs.decision_tree import DecisionTree, InformationStates, log_endings
from league.envs.protocol import BatchedEnv, EnvError, EnvSpec, Turn
from league.envs.search.deals import DealEndings, Deals

COPIES = 256
"""Most copies that are made together."""

MAX_HISTORIES = 1_000_000
MAX_ENTRIES = 100_000_000
"""Most histories that are visited, and numbers in all observations together (400 MB)."""

PLAYOUTS, MAX_TURNS, HOPELESS = 30, 200, 5.0
"""Random games, and their turns, from which the number of histories is estimated first; and how many times too large
an estimate has to be for it to end the visit, as they are rough."""

SURE = 2.0
"""Times too long that a visit of the first deal has to take, judging by its speed so far, to be given up."""

LINES = 16
"""Random lines of play by which a deal that was visited before is known again."""

LOOK_S = 1.0
"""Seconds between two reports of progress."""

Progress = Callable[[int, int], None]
"""Takes the different draws of chance and the histories that were visited so far."""

Decision = tuple[int, int]
"""(information state, action) of the last decision of a seat."""

NEVER: Decision = (-1, -1)
"""Before its first decision."""


@dataclass(frozen=True)
class VisitedTree:
    """A game as it was visited.

    Fields:
      tree: information states and endings.
      deals: different draws of chance that were met.
      is_whole: False where there are probably more of them.
    """

    tree: DecisionTree
    deals: int
    is_whole: bool


def no_progress(deals: int, histories: int) -> None:
    """Reports nothing."""


def visit(
    env: BatchedEnv,
    *,
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
    seed: int = 0,
    progress: Progress = no_progress,
) -> VisitedTree:
    """Visit every history of a game.

    Args:
      env: one game, not begun.
      limit_s: seconds of `clock`; then the deals that were visited have to do. A visit that cannot be done in this time
        is given up early.
      seed: of the games that begin.
      progress: called every `LOOK_S`.
    Raises:
      EnvError: the game cannot be copied, takes no numbered actions, is too large, or has more chance than was seen
        until the end.
    """
    until = clock() + limit_s
    if env.spec.actions.kind != "categorical" or not isinstance(env, Copyable):
        raise EnvError("it takes no numbered actions, or its games cannot be copied")
    expected = _require_small(env, seed, limit_s=limit_s, clock=clock)
    begun = looked = clock()

    def go_on() -> bool:
        nonlocal looked
        if clock() >= looked + LOOK_S:
            looked = clock()
            progress(len(deals), walk.num_histories)
            left_s = (expected - walk.num_histories) * (looked - begun) / max(walk.num_histories, 1)
            if not len(deals) and left_s > SURE * (until - looked):
                return False
        return clock() < until

    walk, deals = _Walk(env.spec, go_on), Deals()
    while not deals.are_known:
        start = env.reset(seed + deals.num_drawn)
        lines = _lines(env, seed)
        if not deals.draw_again(lines):
            endings = walk.from_start(env, start)
            if endings is None:
                break
            deals.draw(lines, endings)
        if (clock() - begun) * deals.left > HOPELESS * max(until - clock(), 0.0):
            break
    if not deals.will_do:
        raise EnvError(f"it is too large, or has too much chance, to visit every history within {limit_s:.0f} s")
    tree = DecisionTree(walk.info_states(), deals.endings())
    return VisitedTree(tree, deals=len(deals), is_whole=deals.are_known)


def _require_small(env: BatchedEnv, seed: int, *, limit_s: float, clock: Callable[[], float]) -> float:
    """The endings of one deal, as random games estimate them.

    A game of many agents says in its first turn that it is too large: the mean of all random games is at least this
    one's part of it.

    Raises:
      EnvError: there are far too many histories, or they take far too long.
    """
    bot, logs, num_turns, begun = RandomBot(seed=seed), [], 0, clock()
    hopeless = math.log(PLAYOUTS * HOPELESS * MAX_HISTORIES)
    for playout in range(PLAYOUTS):
        turn, choices = env.reset(seed + playout), 0.0
        for _ in range(MAX_TURNS):
            choices += float(np.log(legal_actions(env, turn).sum(axis=1)).sum())
            if choices > hopeless:
                raise _too_large(MAX_HISTORIES)
            turn = env.step(bot.act(env, turn, np.arange(turn.env_index.size)))
            num_turns += 1
            if turn.ended[0]:
                break
            if clock() - begun > limit_s:
                raise EnvError(f"{num_turns} turns of random play take longer than the {limit_s:.0f} s of a visit")
        else:
            raise _too_large(MAX_HISTORIES)
        logs.append(choices)
    most = min(MAX_HISTORIES, limit_s * num_turns / max(clock() - begun, 1e-9))
    if log_endings(logs) > math.log(HOPELESS * most):
        raise _too_large(most)
    return math.exp(log_endings(logs))


def _too_large(most: float) -> EnvError:
    return EnvError(f"it is far too large to visit every history (at most {most:,.0f} here)")


def _lines(env: BatchedEnv, seed: int) -> bytes:
    """Digest of all that is seen and earned on some random lines of play, the same lines for every deal."""
    assert isinstance(env, Copyable)
    copies, turn = env.fork(np.zeros(LINES, np.int64))
    with closing(copies):
        rng, playing, seen = np.random.default_rng(seed), np.ones(LINES, np.bool_), hashlib.blake2b(digest_size=16)
        for _ in range(MAX_TURNS):
            slots = np.flatnonzero(playing[turn.env_index])
            legal = legal_actions(copies, turn)
            for name in sorted(turn.obs):
                seen.update(turn.obs[name][slots].tobytes())
            seen.update(legal[slots].tobytes())
            choices = legal.argmax(axis=1)
            draws = rng.random((LINES, copies.spec.num_seats))[turn.env_index, turn.seat]
            for slot in slots.tolist():
                actions = np.flatnonzero(legal[slot])
                choices[slot] = actions[int(draws[slot] * len(actions))]
            turn = copies.step(choices)
            seen.update((playing & turn.ended).tobytes() + turn.returns[playing].tobytes())
            playing &= ~turn.ended
            if not playing.any():
                break
    return seen.digest()


@dataclass(frozen=True)
class _Batch:
    """Histories of equal length.

    Fields:
      env: games that stand there, and games that are over. turn: theirs.
      games: those that stand there. last: [S] last decisions of each of these.
    """

    env: BatchedEnv
    turn: Turn
    games: list[int]
    last: list[tuple[Decision, ...]]


Child = tuple[int, tuple[Decision, ...], list[int]]
"""A history one step on: place of its parent in `_Batch.games`, last decisions, and actions of the acting seats."""


class _Walk:
    """The information states seen so far, in the order of their first visit.

    Attributes:
      num_histories: visited so far.
    """

    def __init__(self, spec: EnvSpec, go_on: Callable[[], bool]) -> None:
        self._spec = spec
        self._go_on = go_on
        self._index_of: dict[tuple[int, Decision, bytes], int] = {}
        self._fields: dict[str, list[NDArray[np.generic]]] = {name: [] for name in spec.observations}
        self._seats: list[int] = []
        self._legal: list[NDArray[np.bool_]] = []
        self._last: list[Decision] = []
        self.num_histories = 0
        self._num_entries = 0

    def from_start(self, env: BatchedEnv, start: Turn) -> DealEndings | None:
        """All endings of a game that begins; None if there was no time or room for all."""
        found = DealEndings()
        stack = [_Batch(env, start, [0], [(NEVER,) * self._spec.num_seats])]
        try:
            while stack:
                batch = stack.pop()
                with closing(batch.env) if batch.env is not env else nullcontext():
                    children = self._children(batch)
                    for begin in range(0, len(children), COPIES):
                        if not self._go_on() or self.num_histories > MAX_HISTORIES or self._num_entries > MAX_ENTRIES:
                            return None
                        stack.append(self._stepped(batch, children[begin : begin + COPIES], found))
        finally:
            for batch in stack:
                batch.env.close()
        return found

    def _children(self, batch: _Batch) -> list[Child]:
        """Every history one step on; records the information states of the seats that must act."""
        turn = batch.turn
        legal = legal_actions(batch.env, turn)
        starts = np.searchsorted(turn.env_index, np.arange(batch.env.num_envs + 1)).tolist()
        children = []
        for place, game in enumerate(batch.games):
            slots = range(starts[game], starts[game + 1])
            seats = [int(turn.seat[slot]) for slot in slots]
            states = [
                self._add(turn, slot, seat, legal[slot], batch.last[place][seat])
                for slot, seat in zip(slots, seats, strict=True)
            ]
            for joint in itertools.product(*(np.flatnonzero(legal[slot]).tolist() for slot in slots)):
                last = list(batch.last[place])
                for seat, state, action in zip(seats, states, joint, strict=True):
                    last[seat] = (state, action)
                children.append((place, tuple(last), list(joint)))
        return children

    def _stepped(self, batch: _Batch, children: list[Child], found: DealEndings) -> _Batch:
        """Make these children; those that are over go to `found`, the others make up the batch."""
        assert isinstance(batch.env, Copyable)
        env, _ = batch.env.fork(np.array([batch.games[place] for place, _, _ in children], np.int64))
        with closed_on_error([env]):
            turn = env.step(np.array([action for _, _, actions in children for action in actions], np.int64))
            if turn.aborted is not None:
                raise EnvError("a copy of a game failed")
        self.num_histories += len(children)
        for game in np.flatnonzero(turn.ended).tolist():
            found.add(children[game][1], turn.returns[game])
        going = np.flatnonzero(~turn.ended).tolist()
        return _Batch(env, turn, going, [children[game][1] for game in going])

    def _add(self, turn: Turn, slot: int, seat: int, legal: NDArray[np.bool_], last: Decision) -> int:
        """The number of the information state at a slot; new ones are recorded."""
        seen = b"".join(turn.obs[name][slot].tobytes() for name in self._fields) + legal.tobytes()
        index = self._index_of.setdefault((seat, last, seen), len(self._seats))
        if index == len(self._seats):
            for name, rows in self._fields.items():
                rows.append(turn.obs[name][slot].copy())
                self._num_entries += rows[-1].size
            self._seats.append(seat)
            self._legal.append(legal.copy())
            self._last.append(last)
        return index

    def info_states(self) -> InformationStates:
        """All information states as arrays."""
        last = np.array(self._last, np.int64)
        return InformationStates(
            seat=np.array(self._seats, np.int64),
            fields={name: np.stack(rows) for name, rows in self._fields.items()},
            legal=np.stack(self._legal),
            parent=last[:, 0],
            parent_action=last[:, 1],
        )
