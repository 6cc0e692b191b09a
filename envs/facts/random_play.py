"""Measures the facts of a game by a few seconds of random play, with few copies until their cost is known.

Shape letters: N games, S seats, K slots.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs import calls
from league.envs.bots import Copyable, RandomBot
from league.envs.decision_tree import has_tree
from league.envs.facts.clocks import CLOCKS, Clocks
from league.envs.facts.core_speed import CallCosts
from league.envs.facts.game_facts import GameCosts, GameFacts
from league.envs.facts.game_statistics import GameStatistics
from league.envs.guard.foreign_code import liberties_of
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, Turn
from league.envs.registry import make

MAX_GAMES = 64
"""Most games that are made at once."""

EXACT_GAMES, EXACT_TURNS = 4, 500
"""Games and turns of play that must not depend on a clock."""

MAX_TURNS, MAX_EPISODES = 20_000, 1_000
"""Turns of single games, and episodes, after which play ends before its time."""

ALONE_TURNS, ALONE_EPISODES = 300, 10
"""Turns and episodes after which the first game ends before its time."""

ALONE_FRACTION, MAKING_FRACTION = 0.4, 0.2
"""Of all the time: play of the first game. Of the time left: making of the many."""

AGAIN_S = 4.0
"""Cost of the first game up to which another one is made, to tell imports from the cost of a game."""

MAKES = 5
"""Most games that are made for that. One wait for a disk once made tic-tac-toe a game of 0.24 s, of which four fit."""

MIN_MANY_TURNS = 20
"""Turns of many games together that are timed at least, unless they take long."""

BUSY_FACTOR, BUSY_S = 10.0, 30.0
"""Wall time of play where other programs take the processor: at most the first as a multiple of its seconds, or the
second, whichever is longer. Settings of a game that was hardly seen do more harm than waiting."""


@dataclass(frozen=True)
class _Timing:
    """Usual seconds of one call of `step`, and seconds of the reset of all games."""

    step_s: float
    reset_s: float


class RandomPlay:
    """Plays a game at random; what was seen so far can be had at any time.

    Args:
      config: of the game.
      seconds: cost after which no further step is begun, as `Clocks` counts it, the first game not included; None for
        a fixed number of steps and no measured cost, so that equal seeds give equal facts.
      seed: of the games and the actions.
      clocks: for the deadline and the costs.
    """

    def __init__(self, config: EnvConfig, *, seconds: float | None, seed: int = 0, clocks: Clocks = CLOCKS) -> None:
        self._config = config
        self._seconds = seconds
        self._seed = seed
        self._clocks = clocks
        self._seen: GameStatistics | None = None
        self._views = SharedViews()
        self._copyable = self._has_tree = False
        self._costs: GameCosts | None = None

    def run(self) -> None:
        """Play.

        Raises:
          EnvError: the env cannot be made, or raised.
        """
        if self._seconds is not None:
            self._play_in_time(self._seconds)
            return
        with contextlib.closing(self._timed_make(EXACT_GAMES)[1]) as env:
            self._seen = GameStatistics(env.spec, num_envs=EXACT_GAMES)
            self._play(env, self._seen, seed=self._seed, may_go_on=lambda turns: turns < EXACT_TURNS)
            self._copyable, self._has_tree = _is_copyable(env), has_tree(env)

    def facts(self) -> GameFacts | None:
        """Everything seen so far; None before the first step."""
        if self._seen is None or not self._seen.num_turns:
            return None
        facts = self._seen.facts(
            copyable=self._copyable, has_tree=self._has_tree, shared_views=self._views.are_shared, costs=self._costs
        )
        return replace(facts, liberties=liberties_of(self._config.id))

    def _play_in_time(self, seconds: float) -> None:
        """One game first, and then as many as their cost allows."""
        make_s, env = self._timed_make(1)
        seen = self._seen = GameStatistics(env.spec, num_envs=1)
        began = self._clocks.now()  # imports and the first game are needed in any case

        def left() -> float:
            wall_s = self._clocks.wall() - began[0]
            spent = self._clocks.cost_since(began, calls=max(seen.num_turns, 1))  # one wait is no sleeping game
            return -1.0 if wall_s > max(BUSY_FACTOR * seconds, BUSY_S) else seconds - spent

        with contextlib.closing(env):
            alone = self._play(
                env,
                seen,
                seed=self._seed,
                may_go_on=lambda turns: (
                    left() > (1.0 - ALONE_FRACTION) * seconds
                    and (turns < ALONE_TURNS or seen.num_episodes < ALONE_EPISODES)
                ),
            )
            self._copyable, self._has_tree = _is_copyable(env), has_tree(env)
        self._costs = GameCosts(make_s, 0.0, alone.reset_s, call_s=0.0, game_s=alone.step_s)
        games = 1
        if make_s < AGAIN_S:
            make_s, reset_s = self._begun_again(MAKING_FRACTION * seconds)
            self._costs = replace(self._costs, make_s=make_s, reset_s=reset_s)
            games = int(min(MAX_GAMES, MAKING_FRACTION * seconds / max(make_s + reset_s, 1e-6)))
        if games > 1:
            self._costs = self._play_many(games, seen, alone, left)

    def _begun_again(self, seconds: float) -> tuple[float, float]:
        """Seconds of making one more game, and of its first reset: the least of a few.

        The first game's include imports, and any one may have waited.

        Args:
          seconds: after which it is not done once more.
        """
        makes: list[float] = []
        resets: list[float] = []
        while not makes or (len(makes) < MAKES and sum(makes) + sum(resets) < seconds):
            make_s, env = self._timed_make(1)
            makes.append(make_s)
            with contextlib.closing(env):
                began = self._clocks.now()
                calls.reset(env, self._seed)
                resets.append(self._clocks.cost_since(began))
        return min(makes), min(resets)

    def _play_many(self, games: int, seen: GameStatistics, alone: _Timing, left: Callable[[], float]) -> GameCosts:
        """Play several games together; returns the costs, those of a call told apart from those of a game."""
        assert self._seconds is not None and self._costs is not None
        least = min(MIN_MANY_TURNS, MAKING_FRACTION * self._seconds / max(games * alone.step_s, 1e-9))
        held = _resident_mib()
        make_s, env = self._timed_make(games)
        with contextlib.closing(env):
            seen.restart(num_envs=games)
            self._views.restart()
            many = self._play(
                env,
                seen,
                seed=self._seed + 1,
                may_go_on=lambda turns: (
                    turns < least or (left() > 0.0 and turns * games < MAX_TURNS and seen.num_episodes < MAX_EPISODES)
                ),
            )
            make_mib = max(_resident_mib() - held, 0.0) / games
        game_s = min(max(many.step_s - alone.step_s, 0.0) / (games - 1), alone.step_s)
        call_s = max(alone.step_s - game_s, 0.0)
        make_s = min(make_s / games, self._costs.make_s)
        reset_s = min(many.reset_s / games, self._costs.reset_s)
        return GameCosts(make_s, make_mib, reset_s, call_s=call_s, game_s=game_s)

    def _timed_make(self, num_envs: int) -> tuple[float, BatchedEnv]:
        began = self._clocks.now()
        with calls.going_on(self._config.id, "the making of it"):
            env = make(self._config, num_envs=num_envs)
        return self._clocks.cost_since(began), env

    def _play(self, env: BatchedEnv, seen: GameStatistics, *, seed: int, may_go_on: Callable[[int], bool]) -> _Timing:
        """Play at random while `may_go_on` of the turns so far, at least one turn."""
        bot, turns = RandomBot(seed=seed), 0
        began = self._clocks.now()
        turn = calls.reset(env, seed)
        reset_s = self._clocks.cost_since(began)
        began, costs = self._clocks.now(), CallCosts(self._clocks.pace)
        while turns == 0 or may_go_on(turns):
            actions = bot.act(env, turn, np.arange(turn.env_index.size))
            seen.decided(turn, actions)
            self._views.looked(env, turn)
            self._views.decided(turn, actions)
            called = self._clocks.processor()
            turn = calls.step(env, actions)
            costs.add(self._clocks.processor() - called)
            turns += 1
            seen.stepped(turn)
        if not self._clocks.waited_since(began, calls=turns):
            return _Timing(costs.usual(), reset_s)
        wall_s, processor_s, _ = self._clocks.now()
        beside_s = processor_s - began[1] - costs.total_s
        return _Timing(max(wall_s - began[0] - beside_s, 0.0) / turns, reset_s)


def _is_copyable(env: BatchedEnv) -> bool:
    """True if a copy of a game can be made."""
    if not isinstance(env, Copyable):
        return False
    try:
        copy, _ = env.fork(np.zeros(1, np.int64))
    except EnvError:
        return False
    copy.close()
    return True


def _resident_mib() -> float:
    """Memory of this process in MiB; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


MAX_POSITIONS = 3_000
"""Positions of single games that are looked at."""

ENOUGH_POSITIONS = 50
"""Positions after a surprise in which every seat saw what it had seen before, from which they all see the same."""


@runtime_checkable
class ShowsEverySeat(Protocol):
    """An env that can say what the seats see that are not to move."""

    def views(self, game: int) -> tuple[bytes, ...] | None:
        """Return each seat's view of a game now, empty for one that has left; None if the game does not say."""
        ...


class SharedViews:
    """Collects positions of games in turns: call `looked` and `decided` for every turn."""

    def __init__(self) -> None:
        self._whole: dict[tuple[int, int], int] = {}
        self._next: dict[tuple[int, int, bytes], int] = {}
        self._surprising: set[tuple[int, int, bytes]] = set()
        self._before: dict[int, tuple[int, int, bytes]] = {}
        self._now: dict[int, tuple[int, int]] = {}
        self._evidence, self._positions, self._differ = 0, 0, False

    @property
    def are_shared(self) -> bool:
        """True if every seat saw what all others saw, wherever something surprising had happened."""
        return not self._differ and self._evidence >= ENOUGH_POSITIONS

    def restart(self) -> None:
        """Begin with other games; what was seen stays."""
        self._before.clear()

    def looked(self, env: object, turn: Turn) -> None:
        """A turn, before it is answered."""
        self._now.clear()
        if self._differ or self._positions >= MAX_POSITIONS or not isinstance(env, ShowsEverySeat):
            return
        for game, seat in zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True):
            if turn.ended[game]:
                self._before.pop(game, None)
            views = env.views(game)
            if views is None or game in self._now:  # several seats act at once
                self._differ = True
                return
            self._now[game] = seat, self._note(self._before.pop(game, None), views)

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """The answers to the turn."""
        for slot, game in enumerate(turn.env_index.tolist()):
            if game in self._now:
                self._before[game] = (*self._now[game], np.asarray(actions[slot]).tobytes())

    def _note(self, before: tuple[int, int, bytes] | None, views: tuple[bytes, ...]) -> int:
        """Take in a position and the decision before it; returns the position's number."""
        self._positions += 1
        whole = hash(views)
        seen = [(seat, hash(view)) for seat, view in enumerate(views) if view]
        all_seen_before = all(one in self._whole for one in seen)
        self._differ = self._differ or any(self._whole.setdefault(one, whole) != whole for one in seen)
        if before is not None:
            if self._next.setdefault(before, whole) != whole:
                self._surprising.add(before)
            self._evidence += all_seen_before and before in self._surprising
        return whole
