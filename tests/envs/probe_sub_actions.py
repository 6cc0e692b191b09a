"""A toy game with sub-actions: the observation shows the right answer of each, and each right answer is rewarded.

With masks, legality depends on choices: each answer of the first sub-action makes another wrong answer of the second
illegal. In odd episodes the last sub-action is unused.

Shape letters: N games, S seats, K slots (all seats of all games), H sub-actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ArraySpec, EnvError, EnvSpec, Turn, multi_categorical
from league.envs.sampling import pack_stream, split_stream, unpack_stream
from league.envs.sub_actions import sub_actions_are_legal

WANTED = "wanted"


class SubActionsProbe:
    """N games in which all seats act at once; rules in the module's docstring."""

    def __init__(
        self,
        *,
        num_envs: int,
        num_seats: int = 1,
        nvec: Sequence[int] = (3, 4, 2),
        episode_length: int = 4,
        masked: bool = False,
    ) -> None:
        """Validate the sizes.

        Args:
          nvec: [H] choices of each sub-action, at least three sub-actions of two choices.
          episode_length: steps of an episode; the right answers are redrawn in every step.
          masked: some choices are illegal, as above; if False, every choice is legal and every sub-action is used.
        Raises:
          EnvError: a size is too small.
        """
        if num_envs < 1 or num_seats < 1 or episode_length < 1 or len(nvec) < 3 or min(nvec) < 2:
            raise EnvError(
                f"probe_sub_actions: num_envs {num_envs}, num_seats {num_seats} and episode_length "
                f"{episode_length} must be at least 1, nvec {list(nvec)} at least three sub-actions of two choices"
            )
        given = (-1, 0, *(-1 for _ in nvec[2:])) if masked else ()
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id="probe_sub_actions",
            num_seats=num_seats,
            observations={WANTED: ArraySpec((sum(nvec),), "bool")},
            actions=multi_categorical(tuple(nvec), mask_given=given),
            teams=tuple(range(num_seats)),
            has_mask=masked,
            max_turns=episode_length,
            seat_names=tuple(f"seat_{seat}" for seat in range(num_seats)),
            return_range=(0.0, 1.0),
        )
        self._length = episode_length
        self._rng = np.random.default_rng(0)
        self._episode = np.zeros(num_envs, np.int64)
        self._step = np.zeros(num_envs, np.int64)
        self._wanted = np.zeros((num_envs, num_seats, len(nvec)), np.int64)
        self._rewards = np.zeros((num_envs, num_seats), np.float32)  # of the last step
        self._earned = np.zeros((num_envs, num_seats), np.float32)  # in this episode

    def reset(self, seed: int) -> Turn:
        """Restart every game."""
        self._rng = np.random.default_rng(seed)
        for counter in (self._episode, self._step, self._rewards, self._earned):
            counter[:] = 0
        self._draw()
        return self._turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Take one step in every game; the reward is (fraction of right sub-actions) / episode_length.

        Args:
          actions: int [K, H], legal.
        Raises:
          EnvError: an action is illegal.
        """
        right = self._legal(actions).reshape(self._wanted.shape) == self._wanted
        self._rewards = (right.mean(axis=-1) / self._length).astype(np.float32)
        self._earned += self._rewards
        self._step += 1
        ended = self._step == self._length
        returns = np.where(ended[:, None], self._earned, np.float32(0))
        self._step[ended] = 0
        self._earned[ended] = 0
        self._episode += ended
        self._draw()
        return self._turn(ended=ended, returns=returns)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[SubActionsProbe, Turn]:
        """Copy the games at `env_indices`; the copies continue with their own random stream."""
        spec = self.spec
        copies = SubActionsProbe(
            num_envs=len(env_indices),
            num_seats=spec.num_seats,
            nvec=spec.actions.nvec,
            episode_length=self._length,
            masked=spec.has_mask,
        )
        saved = {name: array[env_indices] for name, array in self._counters().items()}
        return copies, copies.load({**saved, "stream": pack_stream(split_stream(self._rng))})

    def save(self) -> dict[str, NDArray[np.generic]]:
        """All counters and the random stream."""
        counters = {name: array.copy() for name, array in self._counters().items()}
        return {**counters, "stream": pack_stream(self._rng)}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: it is of another number of games.
        """
        if len(saved["step"]) != self.num_envs:
            raise EnvError(f"probe_sub_actions: saved for {len(saved['step'])} games, this env has {self.num_envs}")
        self._episode, self._step, self._wanted = (saved[name].astype(np.int64) for name in ("episode", "step", WANTED))
        self._rewards, self._earned = (saved[name].astype(np.float32) for name in ("rewards", "earned"))
        self._rng = unpack_stream(saved["stream"])
        return self._turn()

    def _counters(self) -> dict[str, NDArray[np.generic]]:
        names = ("episode", "step", WANTED, "rewards", "earned")
        return dict(zip(names, (self._episode, self._step, self._wanted, self._rewards, self._earned), strict=True))

    def _draw(self) -> None:
        """Draw the next right answer of every sub-action; 0 if it is unused."""
        sizes = np.array(self.spec.actions.nvec, np.int64)
        self._wanted = self._rng.integers(0, sizes, self._wanted.shape)
        if self.spec.has_mask:
            self._wanted[self._episode % 2 == 1, :, -1] = 0

    def _mask(self) -> NDArray[np.bool_] | None:
        """bool [K, A]: after answer c of the first sub-action, the second may not answer c + 1 beyond the right one."""
        if not self.spec.has_mask:
            return None
        nvec, wanted = self.spec.actions.nvec, self._wanted.reshape(-1, len(self.spec.actions.nvec))
        mask = np.ones((len(wanted), self.spec.actions.num_actions), np.bool_)
        place = self.spec.actions.sub_action_masks[1]
        first = np.arange(nvec[0])
        barred = (wanted[:, 1, None] + 1 + first % (nvec[1] - 1)) % nvec[1]  # never the wanted one
        table = mask[:, place.start : place.start + place.rows * place.size].reshape(-1, nvec[0], nvec[1])
        np.put_along_axis(table, barred[..., None], False, axis=-1)
        mask[:, place.start : place.start + place.rows * place.size] = table.reshape(len(mask), -1)
        silent = np.repeat(self._episode % 2 == 1, self.spec.num_seats)
        mask[silent, self.spec.actions.sub_action_masks[-1].start :] = False
        return mask

    def _legal(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        expected = (self.num_envs * self.spec.num_seats, len(self.spec.actions.nvec))
        if chosen.shape != expected or chosen.dtype.kind not in "iu":
            raise EnvError(f"probe_sub_actions: actions are {chosen.dtype} {chosen.shape}, expected int64 {expected}")
        chosen = chosen.astype(np.int64, copy=False)
        fine = sub_actions_are_legal(self.spec.actions, chosen, mask=self._mask())
        if not fine.all():
            bad = int(np.flatnonzero(~fine)[0])
            raise EnvError(f"probe_sub_actions: action {chosen[bad].tolist()} of slot {bad} is illegal")
        return chosen

    def _turn(self, *, ended: NDArray[np.bool_] | None = None, returns: NDArray[np.float32] | None = None) -> Turn:
        num_seats, nvec = self.spec.num_seats, self.spec.actions.nvec
        never = np.zeros(self.num_envs, np.bool_)
        wanted = self._wanted.reshape(-1, len(nvec))
        shown = [np.arange(size) == wanted[:, sub_action, None] for sub_action, size in enumerate(nvec)]
        return Turn(
            env_index=np.repeat(np.arange(self.num_envs), num_seats),
            seat=np.tile(np.arange(num_seats), self.num_envs),
            obs={WANTED: np.concatenate(shown, axis=1)},
            action_mask=self._mask(),
            rewards=self._rewards.copy(),
            terminated=never if ended is None else ended,
            truncated=never.copy(),
            returns=np.zeros_like(self._rewards) if returns is None else returns,
        )
