"""The frame of games for two seats of which one acts in each turn: checks of actions and copies, and the turn itself.

Shape letters: N games, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvError, EnvSpec, Turn


class AlternatingGame:
    """Base of N games. A subclass says what the seats that must act see (`_shown`), and holds all state of its own."""

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        """Raises EnvError: num_envs < 1."""
        if num_envs < 1:
            raise EnvError(f"{spec.env_id}: num_envs is {num_envs}; it must be at least 1")
        self.spec, self.num_envs = spec, num_envs
        self._env_index = np.arange(num_envs, dtype=np.int64)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def _shown(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        """The seat to act [N], its observation, and its legal actions [N, A]."""
        raise NotImplementedError

    def _integers(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        """The actions as int64 [N]. Raises EnvError: they are of another shape or type."""
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise EnvError(
                f"{self.spec.env_id}: actions are {chosen.dtype} {list(chosen.shape)}, expected int64 [{self.num_envs}]"
            )
        return chosen.astype(np.int64, copy=False)

    def _require_legal(self, actions: NDArray[np.int64], legal: NDArray[np.bool_]) -> None:
        """Refuse actions [N] of which some are not `legal` [N]. Raises EnvError with what is legal instead."""
        if not legal.all():
            bad = int(np.flatnonzero(~legal)[0])
            allowed = np.flatnonzero(self._shown()[2][bad]).tolist()
            raise EnvError(
                f"{self.spec.env_id}: action {int(actions[bad])} is illegal in game {bad}; legal are {allowed}"
            )

    def _require_same_number(self, saved: Mapping[str, NDArray[np.generic]], name: str) -> None:
        """Refuse saved arrays, of which `name` is one, of another number of games. Raises EnvError."""
        if saved[name].shape != (self.num_envs,):
            raise EnvError(f"{self.spec.env_id}: saved for {len(saved[name])} games, this env has {self.num_envs}")

    def _quiet_turn(self) -> Turn:
        """The present turn, before which nothing was earned and nothing ended."""
        return self._turn(np.zeros((self.num_envs, 2), np.float32), np.zeros(self.num_envs, np.bool_))

    def _turn(self, rewards: NDArray[np.float32], terminated: NDArray[np.bool_]) -> Turn:
        """The present turn. All rewards come with the last step, so that they are the returns too."""
        seat, obs, mask = self._shown()
        return Turn(
            env_index=self._env_index,
            seat=seat,
            obs=obs,
            action_mask=mask,
            rewards=rewards,
            terminated=terminated,
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=rewards.copy(),
        )
