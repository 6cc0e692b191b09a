"""Plays a match: an exact number of games between policies, in groups that share an opening while the teams rotate.

Shape letters: T teams, G games in one batch, S seats, K slots that act in a turn. A slot's row is env_index * S + seat.

Every slot plays exactly one game: counting the first games to end instead would favour short games, so whoever wins
or loses fast.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Policy
from league.envs.failures import FaultTolerant, GameFailure
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec, Turn
from league.envs.registry import make, spec_of
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions, first_sub_actions
from league.judge.contenders.contender import Fallible
from league.judge.matches.game_moves import GameSink, MoveHistory, has_numbered_moves
from league.judge.matches.match_result import MatchResult, merged, score_games
from league.judge.recording.recorder import Recorder
from league.judge.recording.recording import Recording
from league.policies.observation import within_bounds

logger = logging.getLogger(__name__)

MAX_BATCH = 512
"""Games stepped together; more gain no speed and tree-searching bots hold a tree for each."""
MAX_TURNS = 100_000
"""Turns after which a game without a stated bound counts as endless."""

T = TypeVar("T")
Progress = Callable[[int], None]
"""Called with the number of games that have ended since the last call."""


class OutOfTime(Exception):  # noqa: N818 - it is an answer, not a failure
    """A match was given up before its games had ended."""


@dataclass(frozen=True)
class _Batch:
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


def play_match(
    env_config: EnvConfig,
    policies: Sequence[Policy],
    *,
    games: int,
    seed: int,
    opening_plies: int = 2,
    progress: Progress | None = None,
    still: Callable[[], bool] = lambda: True,
    on_game: GameSink | None = None,
    recording: Recording | None = None,
) -> MatchResult:
    """Play `games` games between contenders who take each team in turn.

    Games r * G + i of all rotations r form a group: the same seed of the env, the same random opening. A game that the
    env fails in costs its group, which is logged, and is left out of the recording.

    Args:
      policies: one per team; where there are fewer, the last one takes the remaining teams. So home and away are
        enough for any game of two teams or more.
      games: a multiple of the number of teams.
      seed: of the games, the openings and the sampled actions. Bots have streams of their own.
      opening_plies: uniformly random legal plies before any policy acts, in games in which one seat acts at a time
        and that mask illegal actions; no effect in others. A game that ends inside its opening starts again. What a
        seat sees in its opening moves the memory of its policy on.
      progress: see `Progress`.
      still: asked before every turn; the match is given up once it says no.
      on_game: given every finished game, where actions are numbers.
      recording: where the games are recorded for replays; None records nothing.
    Raises:
      OutOfTime: it was given up.
      ValueError: more contenders than teams, or `games` is no positive multiple of the teams.
      EnvError: from the env, its games do not end, or it failed in every group.
    """
    spec = spec_of(env_config)
    teams = spec.num_teams
    _check(env_config, len(policies), teams=teams, games=games)
    filled = [*policies, *[policies[-1]] * (teams - len(policies))]
    groups, parts = games // teams, []
    play = functools.partial(_play, opening_plies=opening_plies, still=still, keep=on_game is not None)
    for wave, start in enumerate(range(0, groups, MAX_BATCH)):
        env = _made(env_config, num_envs=min(MAX_BATCH, groups - start))
        try:
            rotations = []
            for rotation in range(teams):
                holders = seat_holders(spec, filled, rotation)
                recorder = None if recording is None else Recorder(env_config, env)
                batch = play(env, holders, seeds=(seed, wave, rotation), recorder=recorder)
                if recording is not None and recorder is not None:
                    _record(recording, recorder, rotation, batch)
                rotations.append((holders, batch))
                if progress is not None:
                    progress(env.num_envs)
            if on_game is not None:
                _show_games([batch for _, batch in rotations], start, on_game)
            _note_lost(env, [batch for _, batch in rotations])
            parts.append(_scored(spec, filled, rotations))
        finally:
            env.close()
    return merged(parts)


def _made(env_config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """The games of a wave. A game that fails is lost alone, where the env can do that."""
    env = make(env_config, num_envs=num_envs)
    if isinstance(env, FaultTolerant):
        env.tolerate_failures()
    return env


def _check(env_config: EnvConfig, contenders: int, *, teams: int, games: int) -> None:
    """Raises ValueError for numbers that make no match."""
    if not 1 <= contenders <= teams:
        raise ValueError(f"{contenders} contenders do not fit the {teams} teams of {env_config.id}")
    if games < teams or games % teams:
        raise ValueError(f"games is {games}: a match of {env_config.id} needs a positive multiple of {teams}")


def _record(recording: Recording, recorder: Recorder, rotation: int, batch: _Batch) -> None:
    """Hand over the games of one rotation, with their seats named as `seat_holders` fills them.

    A game in which the env fails after its end counts, but it is left out too: what it fails in would be played again.
    """
    failed = {*np.flatnonzero(batch.lost).tolist(), *(failure.game for failure in batch.failures)}
    if len(failed) == recorder.num_envs:
        return
    teams = recorder.spec.num_teams
    named = [*recording.contenders, *[recording.contenders[-1]] * (teams - len(recording.contenders))]
    holders = seat_holders(recorder.spec, named, rotation)
    recording.take(recorder.replay(holders, tags=recording.tags, failed=failed))


def _scored(spec: EnvSpec, policies: Sequence[Policy], rotations: Sequence[tuple[list[Policy], _Batch]]) -> MatchResult:
    """The result of a wave: groups in which every game ended by its rules, and who failed in the others."""
    whole = np.all([(batch.failed < 0) & ~batch.lost for _, batch in rotations], axis=0)
    returns = [_by_contender(spec, batch.returns[whole], rotation) for rotation, (_, batch) in enumerate(rotations)]
    aborted = [0] * len(policies)
    for holders, batch in rotations:
        distinct = _distinct(holders)
        for place in batch.failed[batch.failed >= 0].tolist():
            aborted[next(i for i, policy in enumerate(policies) if policy is distinct[place])] += 1
    result = score_games(np.stack(returns), sum(int(batch.steps[whole].sum()) for _, batch in rotations))
    return replace(result, aborted=tuple(aborted))


def _note_lost(env: BatchedEnv, rotations: Sequence[_Batch]) -> None:
    """Log how many groups the env failed in.

    Raises:
      EnvError: in all of them.
    """
    groups = int(np.any([batch.lost for batch in rotations], axis=0).sum())
    if groups:
        told = (failure.text() for batch in rotations for failure in batch.failures)
        reason = next(told, "it did not say why")
        if groups == env.num_envs:
            raise EnvError(f"every game of a match failed: {reason}")
        of = f"{groups} of {env.num_envs} " + ("groups of games" if len(rotations) > 1 else "games")
        logger.warning("%s failed and count for nobody: %s", of, reason)


def _show_games(rotations: Sequence[_Batch], first_group: int, on_game: GameSink) -> None:
    for game in range(len(rotations[0].failed)):
        for rotation, batch in enumerate(rotations):
            if batch.history is not None and batch.failed[game] < 0 and not batch.lost[game]:
                returns = batch.returns[game].tolist()
                on_game(batch.history.played(game, group=first_group + game, rotation=rotation, returns=returns))


def seat_holders(spec: EnvSpec, contenders: Sequence[T], rotation: int) -> list[T]:
    """[S], the contender on each seat: contender e holds the seats of team (e + rotation) % T."""
    places = team_places(spec)
    return [contenders[(place - rotation) % len(contenders)] for place in places.tolist()]


def team_places(spec: EnvSpec) -> NDArray[np.int64]:
    """int64 [S], the team of each seat, numbered from 0 without gaps."""
    places: NDArray[np.int64] = np.unique(np.asarray(spec.teams), return_inverse=True)[1].astype(np.int64)
    return places


def team_sizes(spec: EnvSpec) -> tuple[int, ...]:
    """[T] number of seats of each team."""
    return tuple(np.bincount(team_places(spec)).tolist())


def _by_contender(spec: EnvSpec, returns: NDArray[np.float32], rotation: int) -> NDArray[np.float64]:
    """float64 [G, T], the summed return of each contender's team; of a lone team the mean return of its seats."""
    places = team_places(spec)
    if not places.any():
        return np.asarray(returns.mean(axis=1, keepdims=True), np.float64)
    teams = int(places.max()) + 1
    member = (places[:, None] == np.arange(teams)).astype(np.float64)
    return np.roll(returns.astype(np.float64) @ member, -rotation, axis=1)


def _distinct(holders: Sequence[Policy]) -> list[Policy]:
    """The policies on some seats, each once."""
    return list({id(policy): policy for policy in holders}.values())


class _Holders:
    """The policies on the seats of a batch of games, with the core states of their slots."""

    def __init__(self, env: BatchedEnv, holders: Sequence[Policy]) -> None:
        self._env = env
        self._seats = env.spec.num_seats
        self._policies = _distinct(holders)
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


def _play(
    env: BatchedEnv,
    holders: Sequence[Policy],
    *,
    seeds: tuple[int, int, int],
    opening_plies: int,
    still: Callable[[], bool],
    keep: bool,
    recorder: Recorder | None,
) -> _Batch:
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
            return _Batch(returns, steps, seats.failed, lost, history, failures)
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
