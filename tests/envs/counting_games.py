"""Toy games that prove alignment by equality: observations are counters, rewards encode the step and the seat.

A step t of an episode is one call of `step`, from 0. Observations of a slot:
  "counter" float32 [3]: episode since `reset`, steps taken in it, seat.
  "echo" float32 [1]: the seat's last action in this episode, -1 before its first.
Step t earns every seat s, acting or not, `reward_of(t, s)`; whole numbers, so that sums are exact.

Shape letters: N games, S seats, K slots, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, FinalObservation, Turn

NUM_ACTIONS = 4


def reward_of(step: int, seat: int) -> int:
    """Reward of `seat` for step `step` in the counting probes: 16 (step + 1) + seat."""
    return 16 * (step + 1) + seat


def is_legal(action: int, *, episode: int, step: int, seat: int) -> bool:
    """True if `MaskProbe` allows an action: one or two of the four are illegal, different ones in each step."""
    return (action + episode + step + seat) % 3 != 0


def lengths_of(episode_length: int | Sequence[int]) -> tuple[int, ...]:
    """The episode lengths through which a probe cycles.

    Raises:
      EnvError: there is none, or one is not a whole number above 0.
    """
    lengths = (episode_length,) if isinstance(episode_length, int) else tuple(episode_length)
    if not lengths or not all(isinstance(length, int) and length > 0 for length in lengths):
        raise EnvError(f"episode_length is {episode_length!r}; give a whole number above 0, or a list of such")
    return lengths


class CountingGames:
    """N counting games; the registered probes below are configurations of it."""

    def __init__(
        self,
        *,
        env_id: str,
        num_envs: int,
        num_seats: int,
        episode_length: int | Sequence[int],
        truncate: bool,
        simultaneous: bool,
        masked: bool = False,
        last_move: bool = False,
    ) -> None:
        """Validate the sizes.

        Args:
          episode_length: steps of an episode; of a list, episode e of game n takes entry (e + n) modulo its length.
          truncate: episodes are cut off instead of ended by the rules.
          simultaneous: all seats act in every step, else seat t modulo S does.
          masked: only the actions of `is_legal` are legal.
          last_move: rewards come at the end only: +1 for the seat that moved last, -1 for every other.
        Raises:
          EnvError: a size is below 1.
        """
        self._lengths = np.array(lengths_of(episode_length), np.int64)
        if num_envs < 1 or num_seats < 1:
            raise EnvError(f"{env_id}: num_envs is {num_envs} and num_seats {num_seats}; both must be at least 1")
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id=env_id,
            num_seats=num_seats,
            observations={"counter": ArraySpec((3,), "float32"), "echo": ArraySpec((1,), "float32")},
            actions=ActionSpec(kind="categorical", num_actions=NUM_ACTIONS),
            teams=tuple(range(num_seats)),
            has_mask=masked,
            max_turns=int(self._lengths.max()),
            seat_names=tuple(f"seat_{seat}" for seat in range(num_seats)),
        )
        self._truncate, self._simultaneous, self._last_move = truncate, simultaneous, last_move
        self._index = np.arange(num_envs)  # first entry of the lengths for a game; copies keep their original's
        self._episode = np.zeros(num_envs, np.int64)
        self._step = np.zeros(num_envs, np.int64)
        self._echo = np.full((num_envs, num_seats), -1, np.int64)
        self._waiting = np.zeros((num_envs, num_seats), np.float32)  # earned since the seat's last turn
        self._earned = np.zeros((num_envs, num_seats), np.float32)  # earned in this episode

    def reset(self, seed: int) -> Turn:
        """Restart every game at episode 0; nothing is random, so the seed changes nothing."""
        for counter in (self._episode, self._step, self._waiting, self._earned):
            counter[:] = 0
        self._echo[:] = -1
        return self._turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Take one step in every game.

        Args:
          actions: int [K], each in [0, 4) and legal.
        Raises:
          EnvError: an action is illegal.
        """
        env, seat = self._slots()
        self._echo[env, seat] = self._legal(actions, env, seat)
        self._waiting[env, seat] = 0
        ends = self._step + 1 == self._lengths[(self._episode + self._index) % self._lengths.size]
        seats = np.arange(self.spec.num_seats)
        if self._last_move:
            moved = np.zeros(self._waiting.shape, np.bool_)
            moved[env, seat] = True
            gain = np.where(ends[:, None], np.where(moved, 1, -1), 0)
        else:
            gain = 16 * (self._step[:, None] + 1) + seats
        self._waiting += gain
        self._earned += gain
        self._step += 1
        rewards = self._waiting.copy()
        returns = np.where(ends[:, None], self._earned, np.float32(0))
        final = self._final(np.flatnonzero(ends)) if self._truncate and ends.any() else None
        for counter in (self._step, self._waiting, self._earned):
            counter[ends] = 0
        self._echo[ends] = -1
        self._episode += ends
        return self._turn(rewards=rewards, ends=ends, returns=returns, final=final)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[CountingGames, Turn]:
        """Copy the games at `env_indices`."""
        spec = self.spec
        copies = CountingGames(
            env_id=spec.env_id,
            num_envs=len(env_indices),
            num_seats=spec.num_seats,
            episode_length=self._lengths.tolist(),
            truncate=self._truncate,
            simultaneous=self._simultaneous,
            masked=spec.has_mask,
            last_move=self._last_move,
        )
        return copies, copies.load({name: array[env_indices] for name, array in self.save().items()})

    def save(self) -> dict[str, NDArray[np.generic]]:
        """All counters."""
        return {
            "index": self._index.copy(),
            "episode": self._episode.copy(),
            "step": self._step.copy(),
            "echo": self._echo.copy(),
            "waiting": self._waiting.copy(),
            "earned": self._earned.copy(),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the counters are of another number of games.
        """
        if saved["step"].shape != (self.num_envs,):
            raise EnvError(f"{self.spec.env_id}: saved for {len(saved['step'])} games, this env has {self.num_envs}")
        self._index, self._episode, self._step, self._echo = (
            saved[name].astype(np.int64) for name in ("index", "episode", "step", "echo")
        )
        self._waiting, self._earned = (saved[name].astype(np.float32) for name in ("waiting", "earned"))
        return self._turn(rewards=self._waiting.copy())

    def _slots(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        env, num_seats = np.arange(self.num_envs), self.spec.num_seats
        if self._simultaneous:
            return np.repeat(env, num_seats), np.tile(np.arange(num_seats), self.num_envs)
        return env, self._step % num_seats

    def _mask(self, env: NDArray[np.int64], seat: NDArray[np.int64]) -> NDArray[np.bool_]:
        start = self._episode[env] + self._step[env] + seat
        allowed: NDArray[np.bool_] = (np.arange(NUM_ACTIONS) + start[:, None]) % 3 != 0
        return allowed

    def _legal(
        self, actions: NDArray[np.generic], env: NDArray[np.int64], seat: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != env.shape or chosen.dtype.kind not in "iu":
            raise EnvError(f"{self.spec.env_id}: actions are {chosen.dtype} {chosen.shape}, expected int64 {env.shape}")
        legal = (chosen >= 0) & (chosen < NUM_ACTIONS)
        if self.spec.has_mask:
            legal &= self._mask(env, seat)[np.arange(env.size), np.clip(chosen, 0, NUM_ACTIONS - 1)]
        if not legal.all():
            bad = int(np.flatnonzero(~legal)[0])
            raise EnvError(
                f"{self.spec.env_id}: action {int(chosen[bad])} of seat {int(seat[bad])} is illegal in game"
                f" {int(env[bad])}"
            )
        return chosen.astype(np.int64, copy=False)

    def _observe(self, env: NDArray[np.int64], seat: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
        counter = np.stack([self._episode[env], self._step[env], seat], axis=1)
        return {"counter": counter.astype(np.float32), "echo": self._echo[env, seat, None].astype(np.float32)}

    def _final(self, ended: NDArray[np.int64]) -> FinalObservation:
        num_seats = self.spec.num_seats
        env, seat = np.repeat(ended, num_seats), np.tile(np.arange(num_seats), ended.size)
        return FinalObservation(env_index=env, seat=seat, obs=self._observe(env, seat))

    def _turn(
        self,
        *,
        rewards: NDArray[np.float32] | None = None,
        ends: NDArray[np.bool_] | None = None,
        returns: NDArray[np.float32] | None = None,
        final: FinalObservation | None = None,
    ) -> Turn:
        env, seat = self._slots()
        nothing = np.zeros((self.num_envs, self.spec.num_seats), np.float32)
        never = np.zeros(self.num_envs, np.bool_)
        return Turn(
            env_index=env,
            seat=seat,
            obs=self._observe(env, seat),
            action_mask=self._mask(env, seat) if self.spec.has_mask else None,
            rewards=nothing if rewards is None else rewards,
            terminated=never if ends is None or self._truncate else ends,
            truncated=ends if ends is not None and self._truncate else never.copy(),
            returns=nothing.copy() if returns is None else returns,
            final=final,
        )


class TurnProbe(CountingGames):
    """A probe in which seats act in turn."""

    def __init__(
        self, *, num_envs: int, num_seats: int = 2, episode_length: int | Sequence[int] = 5, truncate: bool = False
    ) -> None:
        """Arguments as in `CountingGames`."""
        super().__init__(
            env_id="probe_turns",
            num_envs=num_envs,
            num_seats=num_seats,
            episode_length=episode_length,
            truncate=truncate,
            simultaneous=False,
        )


class SimultaneousProbe(CountingGames):
    """A probe in which all seats act at once."""

    def __init__(
        self, *, num_envs: int, num_seats: int = 2, episode_length: int | Sequence[int] = 5, truncate: bool = False
    ) -> None:
        """Arguments as in `CountingGames`."""
        super().__init__(
            env_id="probe_simultaneous",
            num_envs=num_envs,
            num_seats=num_seats,
            episode_length=episode_length,
            truncate=truncate,
            simultaneous=True,
        )


class MaskProbe(CountingGames):
    """A probe in which seats act in turn and the legal actions change with every step."""

    def __init__(
        self, *, num_envs: int, num_seats: int = 2, episode_length: int | Sequence[int] = 5, truncate: bool = False
    ) -> None:
        """Arguments as in `CountingGames`."""
        super().__init__(
            env_id="probe_mask",
            num_envs=num_envs,
            num_seats=num_seats,
            episode_length=episode_length,
            truncate=truncate,
            simultaneous=False,
            masked=True,
        )


class LastMoveProbe(CountingGames):
    """A probe in which seats act in turn; the seat that moves last wins and the waiting seats lose."""

    def __init__(
        self, *, num_envs: int, num_seats: int = 2, episode_length: int | Sequence[int] = 5, truncate: bool = False
    ) -> None:
        """Arguments as in `CountingGames`."""
        super().__init__(
            env_id="probe_last_move",
            num_envs=num_envs,
            num_seats=num_seats,
            episode_length=episode_length,
            truncate=truncate,
            simultaneous=False,
            last_move=True,
        )
