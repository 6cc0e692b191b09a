"""One block of shared memory that holds a turn of a share of the games, and the actions that answer it.

Shape letters: n games of the share, S seats, R = n * S rows, K slots, A actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Any

import numpy as np

from league.envs.protocol import EnvSpec, FinalObservation, Turn
from league.envs.workers.shared_arrays import arrays_over, block_bytes

NUM_SLOTS, NUM_FINAL, HAS_FINAL = range(3)


class SharedTurn:
    """Arrays over a block of memory, laid out the same way on both sides.

    Attributes:
      place: int64 [4], the call that the games' process is in: a number that grows with every call, the game's index
        in the share (-1 if the games are stepped in one call), its episode and its step; step 0 is the reset.
      episodes: int64 [n], of each game in the turn. strikes: int64 [n], failures of each game so far.
      actions: [R, ...], the answers to the turn; the first K count.
    """

    def __init__(self, spec: EnvSpec, num_games: int, block: mmap) -> None:
        self._spec = spec
        self._arrays = arrays = arrays_over(block, _layout(spec, num_games))
        self._counts = arrays["counts"]
        self.place, self.episodes, self.strikes = arrays["place"], arrays["episodes"], arrays["strikes"]
        self.actions = arrays["actions"]

    def write(self, turn: Turn, episodes: list[int]) -> None:
        """Store a turn and the episode that each of its games is in."""
        arrays, num = self._arrays, turn.env_index.size
        arrays["env_index"][:num], arrays["seat"][:num] = turn.env_index, turn.seat
        for name in self._spec.observations:
            arrays[f"obs.{name}"][:num] = turn.obs[name]
        if turn.action_mask is not None:
            arrays["action_mask"][:num] = turn.action_mask
        for name in ("rewards", "terminated", "truncated", "returns"):
            arrays[name][...] = getattr(turn, name)
        arrays["rejoined"][...] = False if turn.rejoined is None else turn.rejoined
        arrays["aborted"][...] = False if turn.aborted is None else turn.aborted
        self._counts[HAS_FINAL] = turn.final is not None
        if turn.final is not None:
            last = turn.final.env_index.size
            arrays["final_env"][:last], arrays["final_seat"][:last] = turn.final.env_index, turn.final.seat
            for name in self._spec.observations:
                arrays[f"final.{name}"][:last] = turn.final.obs[name]
            self._counts[NUM_FINAL] = last
        self.episodes[...] = episodes
        self._counts[NUM_SLOTS] = num

    def clear(self) -> None:
        """Store a turn in which no game takes part."""
        for name in ("counts", "rewards", "returns", "terminated", "truncated", "rejoined", "aborted"):
            self._arrays[name][...] = 0

    def read(self) -> Turn:
        """The stored turn, as views. Its `rejoined` and `aborted` are always given."""
        arrays = self._arrays
        num, last = min(int(self._counts[NUM_SLOTS]), len(arrays["seat"])), int(self._counts[NUM_FINAL])
        final = None
        if self._counts[HAS_FINAL]:
            obs = {name: arrays[f"final.{name}"][:last] for name in self._spec.observations}
            final = FinalObservation(arrays["final_env"][:last], arrays["final_seat"][:last], obs)
        return Turn(
            env_index=arrays["env_index"][:num],
            seat=arrays["seat"][:num],
            obs={name: arrays[f"obs.{name}"][:num] for name in self._spec.observations},
            action_mask=arrays["action_mask"][:num] if self._spec.has_mask else None,
            rewards=arrays["rewards"],
            terminated=arrays["terminated"],
            truncated=arrays["truncated"],
            returns=arrays["returns"],
            final=final,
            rejoined=arrays["rejoined"],
            aborted=arrays["aborted"],
        )


def block_size(spec: EnvSpec, num_games: int) -> int:
    """Bytes of a block."""
    return block_bytes(_layout(spec, num_games))


def action_dtype(spec: EnvSpec) -> np.dtype[Any]:
    """Dtype of the actions of a spec."""
    return np.dtype(np.float32 if spec.actions.kind == "box" else np.int64)


def _layout(spec: EnvSpec, num_games: int) -> Iterator[tuple[str, tuple[int, ...], np.dtype[Any]]]:
    """Name, shape and dtype of every array, in order."""
    rows, seats = num_games * spec.num_seats, spec.num_seats
    integer, flag, number = np.dtype(np.int64), np.dtype(np.bool_), np.dtype(np.float32)
    yield from (("counts", (4,), integer), ("place", (4,), integer))
    yield from ((name, (num_games,), integer) for name in ("episodes", "strikes"))
    yield from ((name, (rows,), integer) for name in ("env_index", "seat", "final_env", "final_seat"))
    yield from ((name, (num_games,), flag) for name in ("terminated", "truncated", "aborted"))
    yield from ((name, (num_games, seats), number) for name in ("rewards", "returns"))
    yield "rejoined", (num_games, seats), flag
    yield "actions", (rows, *spec.actions.shape), action_dtype(spec)
    if spec.has_mask:
        yield "action_mask", (rows, spec.actions.num_actions), flag
    for name, field in spec.observations.items():
        yield from ((f"{kind}.{name}", (rows, *field.shape), np.dtype(field.dtype)) for kind in ("obs", "final"))
