"""Guards a user's own `BatchedEnv`: its exceptions, and what cannot be learnt from, become an `EnvError`.

Shape letters: N games, S seats, K slots, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.checks.masks import legal_of
from league.envs.bots import Copyable
from league.envs.guard.foreign_code import foreign_code
from league.envs.protocol import BatchedEnv, EnvError, ForkableEnv, Turn, reward_problem

T = TypeVar("T")


def guarded(env: BatchedEnv) -> BatchedEnv:
    """Wrap an env in its guard, which can be copied and saved if the env can."""
    if isinstance(env, ForkableEnv):
        return SavableOwnEnv(env)
    return CopyableOwnEnv(env) if isinstance(env, Copyable) else OwnEnv(env)


class OwnEnv:
    """Steps the env and counts its steps, for the message when it raises."""

    def __init__(self, env: BatchedEnv) -> None:
        self.spec = env.spec
        self.num_envs = env.num_envs
        self._env = env
        self._steps = 0
        self._seed = 0

    def reset(self, seed: int) -> Turn:
        self._steps, self._seed = 0, seed
        return self._checked(self._call("reset", lambda: self._env.reset(seed)))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        self._steps += 1
        return self._checked(self._call("step", lambda: self._env.step(actions)))

    def close(self) -> None:
        self._call("close", self._env.close)

    def _call(self, name: str, call: Callable[[], T]) -> T:
        try:
            with foreign_code(self.spec.env_id, name):
                return call()
        except EnvError:
            raise
        except Exception as error:  # code of others: whatever it raises is their env's error, not ours
            text = f"{self.spec.env_id}: {name} raised {type(error).__name__}: {error} ({self._where()})"
            raise EnvError(text) from error

    def _checked(self, turn: Turn) -> Turn:
        if (problem := reward_problem(turn.rewards)) is not None:
            game, seat, text = problem
            raise EnvError(f"{self.spec.env_id}, game {game}, seat {seat}: {text} ({self._where()})")
        if mask_problem := self._mask_problem(turn):
            raise EnvError(f"{self.spec.env_id}{mask_problem} ({self._where()})")
        return turn

    def _mask_problem(self, turn: Turn) -> str:
        """The first thing wrong with the masks of a turn; empty if there is none."""
        mask, expected = turn.action_mask, (turn.env_index.size, self.spec.actions.num_actions)
        if (mask is not None) != self.spec.has_mask:
            has, other = ("masks", "none") if self.spec.has_mask else ("no masks", "some")
            return f": its spec has {has}, and a turn has {other}"
        if mask is None:
            return ""
        if mask.shape != expected:
            return f": action_mask is {mask.shape}, expected {expected}"
        if mask.dtype == np.bool_ and mask.any(axis=1).all():
            return ""
        for slot, row in enumerate(mask):
            where = f", game {turn.env_index[slot]}, seat {turn.seat[slot]}"
            try:
                if not legal_of(row).any():
                    return f"{where}: action_mask allows no action; a seat that must act needs a legal one"
            except ValueError as error:
                return f"{where}: {error}"
        return ""

    def _where(self) -> str:
        return f"step {self._steps} since the reset with seed {self._seed}"


class CopyableOwnEnv(OwnEnv):
    """An own env whose games can be copied."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        copies, turn = self._call("fork", lambda: cast(Copyable, self._env).fork(env_indices))
        return guarded(copies), turn


class SavableOwnEnv(CopyableOwnEnv):
    """An own env whose games can be copied and saved."""

    def save(self) -> dict[str, NDArray[np.generic]]:
        return self._call("save", cast(ForkableEnv, self._env).save)

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        return self._call("load", lambda: cast(ForkableEnv, self._env).load(saved))
