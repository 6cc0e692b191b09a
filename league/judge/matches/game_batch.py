"""Plays one game in every slot of a batch of games, after random openings.

Shape letters: G games in one batch, S seats, K slots that act in a turn. A slot's row is env_index * S + seat.

Every slot plays exactly one game: counting the first games to end instead would favour short games, so whoever wins
or loses fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Policy
from league.envs.failures import FaultTolerant, GameFailure
from league.envs.protocol import BatchedEnv, EnvError, EnvSpec, Turn
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions, first_sub_actions
from league.judge.contenders.contender import Fallible
from league.judge.matches.game_moves import MoveHistory, has_numbered_moves
from league.judge.recording.recorder import ReplayRecorder
from league.policies.observation import within_bounds

MAX_TURNS = 100_000
"""Turns after which a game without a stated bound counts as endless."""


class OutOfTime(Exception):  # noqa: N818 - it is an answer, not a failure
    """Games were given up before they had ended."""


@dataclass(frozen=True)
class PlayedBatch:
    """Results of one batch of games.

    Fields:
      returns: float32 [G, S].
      steps: int64 [G], calls of `step` in each game.
      failed: [G] position among the seats' distinct policies of who failed in the game, -1 for nobody.
      lost: bool [G], games that the env failed in.
      history: of the games; None where none is kept.
      failures: of the games, also of those that had ended before.
    """

    returns: NDArray[np.float32]
    steps: NDArray[np.int64]
    failed: NDArray[np.int64]
    lost: NDArray[np.bool_]
    history: MoveHistory | None
    failures: tuple[GameFailure, ...]


def distinct(holders: Sequence[Policy]) -> list[Policy]:
    """The policies on some seats, each once."""
    return list({id(policy): policy for policy in holders}.values())


class _Holders:
    """The policies on the seats of a batch of games, with the core states of their slots."""

    def __init__(self, env: BatchedEnv, holders: Sequence[Policy]) -> None:
        self._env = env
        self._seats = env.spec.num_seats
        self._policies = distinct(holders)
        self._holds = np.array([[holder is policy for holder in holders] for policy in self._policies])
        self._core_sizes = [int(getattr(policy, "core_size", 0)) for policy in self._policies]
        self._core = np.zeros((env.num_envs * self._seats, max(self._core_sizes)), np.float32)
        self.failed = np.full(env.num_envs, -1, np.int64)
        self.need_history = any(isinstance(policy, Fallible) for policy in self._policies)

    def act(
        self, turn: Turn, alive: NDArray[np.bool_], rng: np.random.Generator, history: MoveHistory | None
    ) -> NDArray[np.generic]:
        """[K] the actions of a turn; games bool [N] that are not alive step on with idle ones."""
        actions = idle_actions(self._env.spec, turn)
        rows = turn.env_index * self._seats + turn.seat
        moves = None if history is None else history.moves
        if turn.rejoined is not None:
            self._core[turn.rejoined.reshape(-1)] = 0.0
        for place, (policy, held, size) in enumerate(zip(self._policies, self._holds, self._core_sizes, strict=True)):
            slots = np.flatnonzero(alive[turn.env_index] & held[turn.seat])
            if len(slots):
                choice = policy.act(ActInputs(self._env, turn, slots, self._core[rows[slots], :size], moves), rng)
                actions[slots] = within_bounds(self._env.spec, choice.actions)
                self._core[rows[slots], :size] = choice.core
            if isinstance(policy, Fallible):
                self.failed[policy.failed_games()] = place
        return actions

    def watch(self, turn: Turn, rng: np.random.Generator) -> None:
        """Moves the memories on over a turn in which the actions are not the policies' own."""
        self.forget(turn.ended)
        rows = turn.env_index * self._seats + turn.seat
        for policy, held, size in zip(self._policies, self._holds, self._core_sizes, strict=True):
            slots = np.flatnonzero(held[turn.seat])
            if size and len(slots):
                seen = policy.act(ActInputs(self._env, turn, slots, self._core[rows[slots], :size]), rng)
                self._core[rows[slots], :size] = seen.core

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Clears the memories of games bool [N] that have begun again."""
        self._core[np.repeat(games, self._seats)] = 0.0


def play_once(
    env: BatchedEnv,
    holders: Sequence[Policy],
    *,
    seeds: tuple[int, int, int],
    opening_plies: int,
    still: Callable[[], bool],
    keep: bool,
    recorder: ReplayRecorder | None,
) -> PlayedBatch:
    """One game in every slot of the env.

    seeds: of the match, number of the wave, number of the rotation. keep: note the moves, where they are numbers.
    """
    seed, wave, rotation = seeds
    seats = _Holders(env, holders)
    keep = (keep or seats.need_history) and has_numbered_moves(env.spec)
    history = MoveHistory(env.num_envs) if keep else None
    # The seed of a group leaves the rotation out; the seeds of its games include it.
    stepped = env if recorder is None else recorder
    turn = stepped.reset(int(np.random.default_rng([seed, wave, 0]).integers(2**31)))
    rng = np.random.default_rng([seed, wave, 2, rotation])
    drawn, watch = np.random.default_rng([seed, wave, 1]), functools.partial(seats.watch, rng=rng)
    lost = np.bincount(turn.env_index, minlength=env.num_envs) == 0  # those that failed too often before
    turn = _open(stepped, turn, plies=opening_plies, rng=drawn, history=history, watch=watch, lost=lost)
    seats.forget(turn.ended)
    if recorder is not None:
        recorder.opened()
    alive = ~lost
    returns = np.zeros((env.num_envs, env.spec.num_seats), np.float32)
    steps = np.full(env.num_envs, opening_plies if _has_openings(env.spec, turn) else 0, np.int64)
    for _ in range(env.spec.max_turns or MAX_TURNS):
        if not still():
            raise OutOfTime
        actions = seats.act(turn, alive, rng, history)
        alive &= seats.failed < 0
        if history is not None:
            history.add(turn, actions, alive)
        turn = stepped.step(actions)
        steps += alive
        lost |= alive & _aborted(turn)
        over = alive & turn.ended
        returns[over] = turn.returns[over]
        alive &= ~over & ~lost
        if not alive.any():
            failures = env.take_failures() if isinstance(env, FaultTolerant) else ()
            return PlayedBatch(returns, steps, seats.failed, lost, history, failures)
    raise EnvError(
        f"{env.spec.env_id}: {int(alive.sum())} of {env.num_envs} games have not ended after"
        f" {env.spec.max_turns or MAX_TURNS} turns; give the game a limit of turns"
    )


def _has_openings(spec: EnvSpec, turn: Turn) -> bool:
    """True if random openings make sense: several seats, one acting at a time among masked actions."""
    one_acts = np.array_equal(turn.env_index, np.arange(len(turn.terminated)))
    return spec.num_seats > 1 and turn.action_mask is not None and one_acts and spec.actions.kind != "box"


def _open(
    env: BatchedEnv,
    turn: Turn,
    *,
    plies: int,
    rng: np.random.Generator,
    history: MoveHistory | None,
    watch: Callable[[Turn], None],
    lost: NDArray[np.bool_],
) -> Turn:
    """Play the openings; equal streams make equal openings.

    watch: is shown every turn of them. lost: bool [G], where games that the env fails in are marked.
    """
    for _ in range(plies):
        mask, actions = turn.action_mask, env.spec.actions
        if mask is None or not _has_openings(env.spec, turn):
            break
        watch(turn)
        several = actions.kind == "multi_categorical"
        chosen = draw_sub_actions(actions, len(mask), mask=mask, rng=rng) if several else uniform_legal(mask, rng)
        if history is not None:
            history.add(turn, chosen, np.ones(env.num_envs, np.bool_))
        turn = env.step(chosen)
        lost |= _aborted(turn)
        if history is not None:
            history.restart(turn.ended)
    if history is not None:
        history.end_opening()
    return turn


def _aborted(turn: Turn) -> NDArray[np.bool_]:
    """bool [N], the games whose episode the env has thrown away."""
    return np.zeros(len(turn.terminated), np.bool_) if turn.aborted is None else turn.aborted.copy()


def idle_actions(spec: EnvSpec, turn: Turn) -> NDArray[np.generic]:
    """[K] a legal action for every slot, at no cost: for games that are over and step on with the others."""
    if spec.actions.kind == "box":
        shape = (len(turn.env_index), *spec.actions.shape)
        return np.full(shape, np.clip(0.0, spec.actions.low, spec.actions.high), np.float32)
    if spec.actions.kind == "multi_categorical":
        return first_sub_actions(spec.actions, len(turn.env_index), mask=turn.action_mask)
    if turn.action_mask is None:
        return np.zeros(len(turn.env_index), np.int64)
    first: NDArray[np.int64] = turn.action_mask.argmax(axis=1)
    return first
