"""Steps the small games of `role_games` as a `BatchedEnv`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.games.role_games import ROLES, SYMMETRIC
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, Turn


class RoleGame:
    """N small games of one family and number as a `BatchedEnv`."""

    def __init__(self, family: str, number: int, *, num_envs: int) -> None:
        kind = {**SYMMETRIC, **ROLES}[family]
        self._games = [kind(np.random.default_rng(number)) for _ in range(num_envs)]
        game = self._games[0]
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id=family,
            num_seats=game.seats,
            observations={"observation": ArraySpec((game.numbers,), "float32")},
            actions=ActionSpec(kind="categorical", num_actions=game.actions),
            teams=tuple(range(game.seats)),
            has_mask=False,
            seat_names=tuple(f"seat_{seat}" for seat in range(game.seats)),
        )
        self._rng = np.random.default_rng(0)
        self._slots: list[tuple[int, int]] = []
        self._waiting = np.zeros((num_envs, game.seats))
        self._earned = np.zeros((num_envs, game.seats))

    def reset(self, seed: int) -> Turn:
        """As in the protocol."""
        self._rng = np.random.default_rng(seed)
        self._waiting[:] = self._earned[:] = 0.0
        for game in self._games:
            game.begin(self._rng)
        return self._turn(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """As in the protocol."""
        chosen: list[dict[int, int]] = [{} for _ in self._games]
        for (place, seat), action in zip(self._slots, actions.tolist(), strict=True):
            chosen[place][seat] = action
            self._waiting[place, seat] = 0.0
        ended = np.zeros(self.num_envs, np.bool_)
        for place, game in enumerate(self._games):
            paid = game.play(chosen[place])
            self._waiting[place] += paid
            self._earned[place] += paid
            ended[place] = game.over
            if game.over:
                game.begin(self._rng)
        return self._turn(ended)

    def close(self) -> None:
        """As in the protocol."""

    def _turn(self, ended: NDArray[np.bool_]) -> Turn:
        self._slots = [(place, seat) for place, game in enumerate(self._games) for seat in sorted(game.acting)]
        returns = np.where(ended[:, None], self._earned, 0.0).astype(np.float32)
        rewards = self._waiting.astype(np.float32)
        self._waiting[ended] = self._earned[ended] = 0.0
        obs: Any = [self._games[place].view(seat) for place, seat in self._slots]
        return Turn(
            env_index=np.array([place for place, _ in self._slots], np.int64),
            seat=np.array([seat for _, seat in self._slots], np.int64),
            obs={"observation": np.array(obs, np.float32)},
            action_mask=None,
            rewards=rewards,
            terminated=ended,
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=returns,
        )
