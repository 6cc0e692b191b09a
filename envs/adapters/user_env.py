"""Guards a user's own `BatchedEnv`: its exceptions and its rewards that are not finite become an `EnvError`.

Shape letters: N games, S seats, K slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from envs.bots import Copyable
from envs.protocol import BatchedEnv, EnvError, ForkableEnv, Turn

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
        """As in the protocol."""
        self._steps, self._seed = 0, seed
        return self._finite(self._call("reset", lambda: self._env.reset(seed)))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """As in the protocol."""
        self._steps += 1
        return self._finite(self._call("step", lambda: self._env.step(actions)))

    def close(self) -> None:
        """As in the protocol."""
        self._env.close()

    def _call(self, name: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except EnvError:
            raise
        except Exception as error:  # code of others: whatever it raises is their env's error, not ours
            where = f"step {self._steps} since the reset with seed {self._seed}"
            raise EnvError(f"{self.spec.env_id}: {name} raised {type(error).__name__}: {error} ({where})") from error

    def _finite(self, turn: Turn) -> Turn:
        if not np.isfinite(turn.rewards).all():
            game, seat = (int(index) for index in np.argwhere(~np.isfinite(turn.rewards))[0])
            raise EnvError(
                f"{self.spec.env_id}: a reward of game {game}, seat {seat} is {turn.rewards[game, seat]} at step"
                f" {self._steps} since the reset with seed {self._seed}; rewards must be finite"
            )
        return turn


class CopyableOwnEnv(OwnEnv):
    """An own env whose games can be copied."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        """As in `ForkableEnv`."""
        copies, turn = self._call("fork", lambda: cast(Copyable, self._env).fork(env_indices))
        return guarded(copies), turn


class SavableOwnEnv(CopyableOwnEnv):
    """An own env whose games can be copied and saved."""

    def save(self) -> dict[str, NDArray[np.generic]]:
        """As in `ForkableEnv`."""
        return self._call("save", cast(ForkableEnv, self._env).save)

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """As in `ForkableEnv`."""
        return self._call("load", lambda: cast(ForkableEnv, self._env).load(saved))
