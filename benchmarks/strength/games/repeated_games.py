"""Exact values of a matrix game that is repeated for a few rounds with the last round in view.

What a policy sees is the number of the round and what both seats did last, so that it is a small table. A single
policy's opponent needs to remember no more than that; the opponent of a mixture also learns from all rounds which
member was drawn, so best replies are worked out over whole histories.

Shape letters: R rounds, A actions, M members or policies, S = A * A last rounds (own action * A + the other's), H
histories.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.games.matrix import MatrixGame
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.policies.exact.behaviours import Array, Mixture, PolicyFunction, probs_of
from league.policies.exact.small_game import NoExactValue

MAX_HISTORIES = 1_000_000
"""Before the last round."""


def is_repeated(env: EnvConfig) -> bool:
    """True for a matrix game of several rounds."""
    game = make(env, num_envs=1)
    return isinstance(game, MatrixGame) and game.rounds > 1


def nash_conv(env: EnvConfig, policy: PolicyFunction | Mixture) -> float:
    """NashConv in the rewards of a whole game when both seats are played by `policy`.

    Args:
      policy: one, or a mixture of which each seat draws a member for a game.
    Raises:
      NoExactValue: the game is another, or its rounds are too many.
    """
    game = _game(env)
    mixture: Mixture = [(1.0, policy)] if callable(policy) else policy
    weights = np.array([weight for weight, _ in mixture], np.float64)
    tables = policy_tables(env, [member for _, member in mixture])
    # The game is zero-sum: what the two seats earn when nobody replies cancels.
    return sum(best_reply(game, tables, weights / weights.sum(), seat=seat) for seat in (0, 1))


def pairwise_values(env: EnvConfig, policies: Sequence[PolicyFunction]) -> Array:
    """[M, M], exactly what each policy earns in a game against each other one, on average over both seats.

    Raises:
      NoExactValue: as `nash_conv`.
    """
    game, tables = _game(env), policy_tables(env, policies)
    first = np.array([[_value(game, row, column) for column in tables] for row in tables])
    values: Array = 0.5 * (first - first.T)
    return values


def policy_tables(env: EnvConfig, policies: Sequence[PolicyFunction]) -> Array:
    """[M, R, S, A], what each policy does in every round after every last round (in the first, all S are alike)."""
    num_actions = len(_game(env).payoffs)
    games = _game(env, num_envs=num_actions * num_actions)
    turn = games.reset(0)
    legal = np.ones((num_actions * num_actions, num_actions), np.bool_)
    every = np.stack(np.divmod(np.arange(num_actions * num_actions), num_actions), axis=1)
    rounds = []
    for _ in range(games.rounds):
        seen = {name: field[turn.seat == 0] for name, field in turn.obs.items()}
        rounds.append(np.stack([probs_of(policy, seen, legal) for policy in policies]))
        turn = games.step(every.ravel())
    return np.stack(rounds, axis=1)


def best_reply(game: MatrixGame, tables: Array, weights: Array, *, seat: int) -> float:
    """Return of `seat` in a game with its best reply to the other seat's mixture.

    Args:
      tables: [M, R, S, A] of the other seat's members, weights: [M] how likely each is drawn.
    """
    payoffs = game.payoffs[..., seat].astype(np.float64)
    payoffs = payoffs if seat == 0 else payoffs.T  # [A, A]: own action, the other's
    num_actions, last = len(payoffs), np.zeros(1, np.int64)
    reach, levels = weights[:, None], []  # [M, H]: drawn, and has played as the history says
    for each_round in range(game.rounds):
        own, other = np.divmod(last, num_actions)
        plays = reach[:, :, None] * tables[:, each_round, other * num_actions + own]  # [M, H, A]
        levels.append(plays.sum(axis=0))
        after = np.broadcast_to(plays[:, :, None, :], (*plays.shape[:2], num_actions, num_actions))
        reach = after.reshape(len(tables), -1)
        last = np.tile(np.arange(num_actions * num_actions), len(last))
    value = np.zeros(reach.shape[1])
    for plays_of_all in reversed(levels):
        later = value.reshape(-1, num_actions, num_actions).sum(axis=2)
        value = (plays_of_all @ payoffs.T + later).max(axis=1)
    return float(value[0])


def _value(game: MatrixGame, row: Array, column: Array) -> float:
    """Return of the first seat in a game of two policies, tables [R, S, A]."""
    num_actions = len(game.payoffs)
    swapped = np.arange(num_actions * num_actions).reshape(num_actions, num_actions).T.ravel()
    last, total = np.zeros(num_actions * num_actions), 0.0
    last[0] = 1.0
    for mine, theirs in zip(row, column, strict=True):
        joint = np.einsum("s,sa,sb->ab", last, mine, theirs[swapped])
        total += float((joint * game.payoffs[..., 0]).sum())
        last = joint.ravel()
    return total


def _game(env: EnvConfig, *, num_envs: int = 1) -> MatrixGame:
    game = make(env, num_envs=num_envs)
    if not isinstance(game, MatrixGame) or game.payoffs.shape[0] != game.payoffs.shape[1]:
        raise NoExactValue(f"{env.id} is no matrix game with as many rows as columns.")
    if not np.allclose(game.payoffs.sum(axis=-1), 0.0):
        raise NoExactValue(f"{env.id}: one seat does not lose what the other wins.")
    histories = len(game.payoffs) ** (2 * (game.rounds - 1))
    if histories > MAX_HISTORIES:
        raise NoExactValue(f"{env.id} of {game.rounds} rounds has {histories:.0e} histories; use fewer rounds.")
    return game


def whole_range(env: EnvConfig) -> float:
    """Highest minus lowest payoff of a whole game."""
    payoffs: NDArray[np.float32] = _game(env).payoffs
    return float(payoffs.max() - payoffs.min()) * _game(env).rounds
