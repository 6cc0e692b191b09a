"""The record of games that were played together: the seed of their env and every action; all else follows from these.

Shape letters: G games of one batched env, S seats, K slots that act in a step, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec, EnvConfig
from league.errors import LeagueError
from league.version import __version__

ActionDtype = Literal["uint8", "uint16", "int64", "float32"]

MAX_GAMES = 1 << 12
MAX_STEPS = 1 << 20
MAX_SLOTS = 1 << 26
"""Decisions of all games together."""
MAX_SEATS = 1 << 10


class ReplayError(LeagueError):
    """A replay cannot be read or shown."""


class CorruptReplay(ReplayError):  # noqa: N818
    """A file is no replay, or not what was written."""


class ReplayMismatch(ReplayError):  # noqa: N818
    """A replay is whole, but its game takes another course here."""


class SeatHolder(msgspec.Struct, frozen=True):
    """The holder of a seat.

    Fields:
      name: of a snapshot, player or bot.
      digest: of a snapshot's weights, "" where there are none or they were still learning.
      source: the run's name or another hint for people.
    """

    name: str
    digest: str = ""
    source: str = ""


class RecordedEnv(msgspec.Struct, frozen=True):
    """The game: the fields of `EnvConfig` that make it, and the hash of its spec."""

    id: str
    spec_hash: str
    kwargs: dict[str, object] = {}
    teams: tuple[tuple[str, ...], ...] = ()
    policies: dict[str, tuple[str, ...]] = {}

    def config(self) -> EnvConfig:
        """The game in this process, whatever it was played in."""
        return EnvConfig(self.id, dict(self.kwargs), teams=self.teams, policies=dict(self.policies), workers=0)


class GameOutcome(msgspec.Struct, frozen=True):
    """The end of one game.

    Fields:
      steps: of the env until then, those of the opening included; 0 of a game that is left out.
      returns: [S] undiscounted.
      truncated: it was cut off instead of ended by the rules.
      aborted: it was given up and has no end; `steps` and `returns` say nothing.
      start: steps of the env before it began; more than 0 where a game had ended inside the opening.
    """

    steps: int
    returns: tuple[float, ...]
    truncated: bool = False
    start: int = 0
    aborted: bool = False

    @property
    def is_left_out(self) -> bool:
        """True if the env failed in the game, so that none of its slots is in the record."""
        return self.aborted and self.steps == 0


class Decision(msgspec.Struct, frozen=True):
    """Thoughts of the policy of a slot before it acted. value: NaN as None. probs: [A], empty where not numbered."""

    value: float | None
    probs: tuple[float, ...] = ()


class Replay(msgspec.Struct, frozen=True):
    """Games of one batch.

    Fields:
      env: the game.
      seed: of `BatchedEnv.reset`.
      seats: [S] who held each seat, in all of the games.
      games: [G] how each game ended. Its env has restarted since, and its later steps are not part of it.
      slots: K of each step, without those of games that are left out.
      action_dtype: numpy name. action_shape: of one action, () for a number.
      actions: of all steps, little-endian, C order.
      opening: steps at the start that were drawn at random and that no policy chose.
      decisions: what the policies thought, one for each slot of each step; empty if it was not recorded.
      tags: remarks for people and programs, such as {"match": "a-b", "round": "3"}.
      league: version that wrote it.
    """

    env: RecordedEnv
    seed: int
    seats: tuple[SeatHolder, ...]
    games: tuple[GameOutcome, ...]
    slots: tuple[int, ...]
    action_dtype: ActionDtype
    action_shape: tuple[int, ...]
    actions: bytes
    opening: int = 0
    decisions: tuple[Decision | None, ...] = ()
    tags: dict[str, str] = {}
    league: str = __version__

    def step_actions(self) -> list[NDArray[np.generic]]:
        """[K, ...] of each step, in the dtype of the env."""
        flat = np.frombuffer(self.actions, np.dtype(self.action_dtype).newbyteorder("<"))
        wide = np.float32 if self.action_dtype == "float32" else np.int64
        flat = flat.astype(wide).reshape(sum(self.slots), *self.action_shape)
        return [part.copy() for part in np.split(flat, np.cumsum(self.slots)[:-1])]


def check_replay(replay: Replay) -> None:
    """Refuse a record whose numbers do not agree, before anything is made of it.

    Raises:
      CorruptReplay: with the first disagreement.
    """
    total = sum(replay.slots)
    one = int(np.prod(replay.action_shape, dtype=np.int64))
    size = total * one * np.dtype(replay.action_dtype).itemsize
    problems = (
        (not 1 <= len(replay.games) <= MAX_GAMES, f"it has {len(replay.games)} games, not 1 to {MAX_GAMES}"),
        (not 1 <= len(replay.seats) <= MAX_SEATS, f"it has {len(replay.seats)} seats, not 1 to {MAX_SEATS}"),
        (not 1 <= len(replay.slots) <= MAX_STEPS, f"it has {len(replay.slots)} steps, not 1 to {MAX_STEPS}"),
        (any(count < 0 for count in replay.slots) or total > MAX_SLOTS, "its numbers of slots are out of range"),
        (any(length < 1 for length in replay.action_shape), "the shape of its actions is empty"),
        (len(replay.actions) != size, f"its actions have {len(replay.actions)} bytes instead of {size}"),
        (len(replay.decisions) not in (0, total), f"it has {len(replay.decisions)} decisions for {total} slots"),
        (not 0 <= replay.opening <= len(replay.slots), "its opening is longer than the games"),
        (not 0 <= replay.seed < 1 << 63, "its seed is out of range"),
        (
            any(len(game.returns) != len(replay.seats) for game in replay.games),
            "a game has not one return for each seat",
        ),
        (
            any(not (game.is_left_out or 0 <= game.start < game.steps <= len(replay.slots)) for game in replay.games),
            "a game begins or ends outside of the steps that were recorded",
        ),
    )
    for wrong, reason in problems:
        if wrong:
            raise CorruptReplay(f"the replay is damaged: {reason}.")


def packed_actions(
    steps: Sequence[NDArray[np.generic]], spec: ActionSpec
) -> tuple[ActionDtype, tuple[int, ...], bytes]:
    """Dtype, shape of one action and bytes of the actions of all steps, in the smallest type that holds them."""
    shape = tuple(spec.shape) if spec.kind != "categorical" else ()
    dtype: ActionDtype
    if spec.kind == "box":
        dtype = "float32"
    else:
        largest = max(spec.nvec, default=spec.num_actions)
        dtype = "uint8" if largest <= 256 else "uint16" if largest <= 1 << 16 else "int64"
    little = np.dtype(dtype).newbyteorder("<")
    return dtype, shape, b"".join(np.ascontiguousarray(step.astype(little)).tobytes() for step in steps)
