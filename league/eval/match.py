"""Plays a match: an exact number of games between policies, in groups that share an opening while the teams rotate.

Shape letters: T teams, G games in one batch, S seats, K slots that act in a turn. A slot's row is env_index * S + seat.

Every slot plays exactly one game: counting the first games to end instead would favour short games, so whoever wins
or loses fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.acting.policy import ActInputs, Policy
from envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec, Turn
from envs.registry import make, spec_of
from envs.sampling import uniform_legal
from envs.sub_actions import draw_sub_actions, first_sub_actions
from league.eval.match_result import MatchResult, score_games
from league.policies.observation import within_bounds

MAX_BATCH = 512
"""Games stepped together; more gain no speed and tree-searching bots hold a tree for each."""
MAX_TURNS = 100_000
"""Turns after which a game without a stated bound counts as endless."""

Progress = Callable[[int], None]
"""Called with the number of games that have ended since the last call."""


class OutOfTime(Exception):  # noqa: N818 - it is an answer, not a failure
    """A match was given up before its games had ended."""


@dataclass(frozen=True)
class _Batch:
    """Results of one batch of games. returns: float32 [G, S]; turns: calls of `step`, summed over the games."""

    returns: NDArray[np.float32]
    steps: int


def play_match(
    env_config: EnvConfig,
    entrants: Sequence[Policy],
    *,
    games: int,
    seed: int,
    opening_plies: int = 2,
    progress: Progress | None = None,
    still: Callable[[], bool] = lambda: True,
) -> MatchResult:
    """Play `games` games between entrants who take each team in turn.

    Games r * G + i of all rotations r form a group: the same seed of the env, the same random opening.

    Args:
      env_config: the game.
      entrants: one policy per team; where there are fewer, the last one takes the remaining teams. So home and away are
        enough for any game of two teams or more.
      games: a multiple of the number of teams.
      seed: of the games, the openings and the sampled actions. Bots have streams of their own.
      opening_plies: uniformly random legal plies before any policy acts, in games in which one seat acts at a time
        and that mask illegal actions; no effect in others. A game that ends inside its opening starts again.
      progress: see `Progress`.
      still: asked before every turn; the match is given up once it says no.
    Raises:
      OutOfTime: it was given up.
      ValueError: more entrants than teams, or `games` is no positive multiple of the teams.
      EnvError: from the env, or its games do not end.
    """
    spec = spec_of(env_config)
    teams = len(set(spec.teams))
    if not 1 <= len(entrants) <= teams:
        raise ValueError(f"{len(entrants)} entrants do not fit the {teams} teams of {env_config.id}")
    if games < teams or games % teams:
        raise ValueError(f"games is {games}: a match of {env_config.id} needs a positive multiple of {teams}")
    filled = [*entrants, *[entrants[-1]] * (teams - len(entrants))]
    groups, returns, steps = games // teams, [], 0
    for wave, start in enumerate(range(0, groups, MAX_BATCH)):
        env = make(env_config, num_envs=min(MAX_BATCH, groups - start))
        try:
            rotations = []
            for rotation in range(teams):
                holders = seat_holders(spec, filled, rotation)
                batch = _play(env, holders, seeds=(seed, wave, rotation), opening_plies=opening_plies, still=still)
                rotations.append(_by_entrant(spec, batch.returns, rotation))
                steps += batch.steps
                if progress is not None:
                    progress(env.num_envs)
            returns.append(np.stack(rotations))
        finally:
            env.close()
    return score_games(np.concatenate(returns, axis=1), steps)


def seat_holders(spec: EnvSpec, entrants: Sequence[Policy], rotation: int) -> list[Policy]:
    """[S], the entrant on each seat: entrant e holds the seats of team (e + rotation) % T."""
    places = team_places(spec)
    return [entrants[(place - rotation) % len(entrants)] for place in places.tolist()]


def team_places(spec: EnvSpec) -> NDArray[np.int64]:
    """int64 [S], the team of each seat, numbered from 0 without gaps."""
    places: NDArray[np.int64] = np.unique(np.asarray(spec.teams), return_inverse=True)[1].astype(np.int64)
    return places


def _by_entrant(spec: EnvSpec, returns: NDArray[np.float32], rotation: int) -> NDArray[np.float64]:
    """float64 [G, T], the summed return of each entrant's team."""
    places = team_places(spec)
    teams = int(places.max()) + 1
    member = (places[:, None] == np.arange(teams)).astype(np.float64)
    return np.roll(returns.astype(np.float64) @ member, -rotation, axis=1)


def _play(
    env: BatchedEnv,
    holders: Sequence[Policy],
    *,
    seeds: tuple[int, int, int],
    opening_plies: int,
    still: Callable[[], bool],
) -> _Batch:
    """One game in every slot of the env. seeds: of the match, number of the wave, number of the rotation."""
    seed, wave, rotation = seeds
    # The seed of a group leaves the rotation out; the seeds of its games include it.
    turn = env.reset(int(np.random.default_rng([seed, wave, 0]).integers(2**31)))
    turn = _open(env, turn, plies=opening_plies, rng=np.random.default_rng([seed, wave, 1]))
    rng = np.random.default_rng([seed, wave, 2, rotation])
    seats, num_games = env.spec.num_seats, env.num_envs
    distinct = list({id(policy): policy for policy in holders}.values())
    holds = np.array([[holder is policy for holder in holders] for policy in distinct])
    core_sizes = [int(getattr(policy, "core_size", 0)) for policy in distinct]
    core = np.zeros((num_games * seats, max(core_sizes)), np.float32)
    alive = np.ones(num_games, np.bool_)
    returns = np.zeros((num_games, seats), np.float32)
    steps = opening_plies * num_games if _has_openings(env.spec, turn) else 0
    for _ in range(env.spec.max_turns or MAX_TURNS):
        if not still():
            raise OutOfTime
        actions = idle_actions(env.spec, turn)
        rows = turn.env_index * seats + turn.seat
        for policy, held, core_size in zip(distinct, holds, core_sizes, strict=True):
            slots = np.flatnonzero(alive[turn.env_index] & held[turn.seat])
            if len(slots):
                choice = policy.act(ActInputs(env, turn, slots, core[rows[slots], :core_size]), rng)
                actions[slots] = within_bounds(env.spec, choice.actions)
                core[rows[slots], :core_size] = choice.core
        turn = env.step(actions)
        steps += int(alive.sum())
        over = alive & turn.ended
        returns[over] = turn.returns[over]
        alive &= ~over
        if not alive.any():
            return _Batch(returns, steps)
    raise EnvError(
        f"{env.spec.env_id}: {int(alive.sum())} of {num_games} games have not ended after"
        f" {env.spec.max_turns or MAX_TURNS} turns; give the game a limit of turns"
    )


def _has_openings(spec: EnvSpec, turn: Turn) -> bool:
    """True if random openings make sense: several seats, one acting at a time among masked actions."""
    one_acts = np.array_equal(turn.env_index, np.arange(len(turn.terminated)))
    return spec.num_seats > 1 and turn.action_mask is not None and one_acts and spec.actions.kind != "box"


def _open(env: BatchedEnv, turn: Turn, *, plies: int, rng: np.random.Generator) -> Turn:
    """Play the openings; equal streams make equal openings."""
    for _ in range(plies):
        mask, actions = turn.action_mask, env.spec.actions
        if mask is None or not _has_openings(env.spec, turn):
            break
        several = actions.kind == "multi_categorical"
        turn = env.step(
            draw_sub_actions(actions, len(mask), mask=mask, rng=rng) if several else uniform_legal(mask, rng)
        )
    return turn


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
