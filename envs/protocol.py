"""The contract of a game: `EnvSpec` is its shape, `Turn` the slots that must act now, `BatchedEnv` steps it.

Shape letters: N envs in one batch, S seats of a game, K slots that must act now, A actions. A slot is one seat of one
env, written (env_index, seat). Turn-based and simultaneous games, teams and N players differ only in the list of slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

MAX_REWARD = 1e15
"""Largest magnitude of a reward: the sum of a million squares still fits float32."""
OBSERVATION_DTYPES = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"})
"""Those that an observation field may have: torch computes with them, and they travel."""
MAX_OBSERVATION_FIELDS = 1_000
MAX_DEADLINE_S = 1e6
"""Longest deadline in a configuration, eleven days: a wait of the system holds 24 at most."""


class EnvError(Exception):
    """An environment broke its contract or raised; the message names the env, the call and the remedy."""


@dataclass(frozen=True)
class ArraySpec:
    """Shape (without batch axes) and numpy dtype name of one observation field; "bool" fields travel as bits."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class SubActionMask:
    """The place of one sub-action's legal choices in the action mask.

    Fields:
      start: first entry in the mask [A].
      given: the earlier sub-action on whose choice they depend, -1 for none.
      rows: choices of that earlier sub-action, 1 if there is none.
      size: choices of the sub-action itself; `mask[start : start + rows * size]` is [rows, size].
    """

    start: int
    given: int
    rows: int
    size: int


@dataclass(frozen=True)
class ActionSpec:
    """The actions that one slot may take. H = sub-actions of a multi_categorical action.

    Fields:
      kind: "categorical" (an int64 in [0, num_actions)); "box" (float32 of `shape`, each element in [low, high]); or
        "multi_categorical" (int64 of `shape` (H,), sub-action h in [0, nvec[h]); made by `multi_categorical`).
      num_actions: A, entries of the action mask.
      nvec: [H] choices of each sub-action.
      mask_given: [H] the earlier sub-action on whose choice the legal choices of this one depend, -1 for none.
      points_at: [H] name of the observation field [nvec[h], ...] from which the sub-action chooses a row, "" for none.

    A sub-action without a legal choice is unused: its answer is 0.
    """

    kind: str
    num_actions: int = 0
    shape: tuple[int, ...] = ()
    low: float = -1.0
    high: float = 1.0
    nvec: tuple[int, ...] = ()
    mask_given: tuple[int, ...] = ()
    points_at: tuple[str, ...] = ()

    @property
    def sub_action_masks(self) -> tuple[SubActionMask, ...]:
        """[H] the place of each sub-action's legal choices in the action mask: in order, without gaps."""
        masks, start = [], 0
        for size, given in zip(self.nvec, self.mask_given, strict=True):
            rows = 1 if given < 0 else self.nvec[given]
            masks.append(SubActionMask(start, given, rows, size))
            start += rows * size
        return tuple(masks)


def multi_categorical(
    nvec: tuple[int, ...], *, mask_given: tuple[int, ...] = (), points_at: tuple[str, ...] = ()
) -> ActionSpec:
    """The spec of actions made of sub-actions; arguments as the fields of `ActionSpec`, empty if none has any.

    Raises:
      ValueError: a sub-action has no choices, depends on a later one, or the lengths differ.
    """
    mask_given = mask_given or (-1,) * len(nvec)
    points_at = points_at or ("",) * len(nvec)
    if not nvec or not len(nvec) == len(mask_given) == len(points_at):
        raise ValueError(
            f"nvec has {len(nvec)} sub-actions, mask_given {len(mask_given)}, points_at {len(points_at)}: "
            "they must be equally many and at least 1"
        )
    if min(nvec) < 1:
        raise ValueError(f"every sub-action needs at least one choice, got nvec {nvec}")
    if any(given < -1 or given >= sub_action for sub_action, given in enumerate(mask_given)):
        raise ValueError(f"the mask of a sub-action depends on an earlier one (or -1 for none), got {mask_given=}")
    targets = {(name, size) for name, size in zip(points_at, nvec, strict=True) if name}
    if len(targets) != len({name for name, _ in targets}):
        raise ValueError(f"sub-actions that point at one field need equal nvec, got {points_at} with nvec {nvec}")
    num_actions = sum(size if given < 0 else size * nvec[given] for size, given in zip(nvec, mask_given, strict=True))
    return ActionSpec(
        kind="multi_categorical",
        num_actions=num_actions,
        shape=(len(nvec),),
        nvec=nvec,
        mask_given=mask_given,
        points_at=points_at,
    )


class UserFormat(Protocol):
    """Translates observations and actions from and to the format of an env not made for this protocol."""

    def seat_of(self, observation: Any) -> int | None:
        """The first seat of the only kind of seats whose observations have this form; None if all seats are alike.

        Raises:
          ValueError: seats of no kind or of several have it.
        """
        ...

    def read(self, observation: Any, *, seat: int | None = None) -> dict[str, NDArray[np.generic]]:
        """Name -> array for every field of an observation in the env's own format.

        seat: that observes it; None is the first, for games whose seats observe alike.
        Raises:
          ValueError: it is not of that form.
        """
        ...

    def read_mask(self, mask: Any, *, seat: int | None = None) -> NDArray[np.bool_] | None:
        """Legal actions bool [A] of a seat, from the env's own mask or None for no mask; None where all are legal.

        Raises:
          ValueError: it does not have one entry for each of the seat's actions.
        """
        ...

    def write(self, action: Any, *, seat: int | None = None) -> Any:
        """The action as the env takes it from a seat.

        Without a seat, where seats number their actions from different starts, it is a number from 0.

        action: an int, or an array of the shape in the spec.
        """
        ...


SEAT_GROUP = "seat_group"
"""Observation field, bool [G], that marks the group of a slot's seat in games with `EnvSpec.seat_groups`."""


MASK_ENDING = "_mask"
"""Of the name of a bool field that marks the present members of a set, whose field has the name before it."""


def field_label(name: str, *, group: str) -> str:
    """Names an observation field for a setting; one and the same field differs between seat groups ("" for none)."""
    return f"{group}/{name}" if group else name


@dataclass(frozen=True)
class SeatGroup:
    """Seats that share networks of their own, with what they observe and how they act.

    A field of the group lies in the leading corner of the field of that name in `EnvSpec.observations`; the rest is 0.
    The same holds for a box action, for the choices of a numbered action, and for sub-actions.

    Fields:
      name: of the group; letters, digits, "_" and "-".
      seats: positions of its seats.
      observations: the fields that its seats have, in their own shapes.
      actions: the actions of its seats.
    """

    name: str
    seats: tuple[int, ...]
    observations: Mapping[str, ArraySpec]
    actions: ActionSpec


@dataclass(frozen=True)
class EnvSpec:
    """The fixed facts of a game.

    Fields:
      env_id: the id that made it.
      num_seats: S.
      observations: field name -> spec, for one slot, without the action mask.
      actions: the actions of one slot; equal for all seats.
      teams: [S] team number of each seat; all different in a free-for-all.
      has_mask: whether `Turn.action_mask` is given.
      max_turns: upper bound of turns (calls of `step`) in one episode, None if unknown.
      seat_names: [S] the names of the seats in the environment's own terms.
      value_fields: names of observation fields for a centralised value in training only, such as the opponents'
        observations; a policy never reads them.
      hidden_information: True if a copy of a game holds more than its seats may see, such as the others' cards. Bots
        that try moves out on copies refuse such games.
      information_known: whether `hidden_information` is a fact of the game and not only taken for granted.
      return_range: least and largest undiscounted return of a seat in one episode, None if unknown.
      win_draw_loss: True if a return only says won (the largest), drawn (the middle of the range) or lost (the least):
        counting games won loses nothing.
      user_format: the env's own format of observations and actions; None if it is that of the spec.
      seat_groups: groups with networks of their own, which hold every seat once; empty if all seats share one. The
        observations then have the field `SEAT_GROUP`, and no group's padding is ever legal.
    """

    env_id: str
    num_seats: int
    observations: Mapping[str, ArraySpec]
    actions: ActionSpec
    teams: tuple[int, ...]
    has_mask: bool
    max_turns: int | None = None
    seat_names: tuple[str, ...] = ()
    value_fields: tuple[str, ...] = ()
    hidden_information: bool = False
    information_known: bool = False
    return_range: tuple[float, float] | None = None
    win_draw_loss: bool = False
    user_format: UserFormat | None = field(default=None, compare=False, repr=False)
    seat_groups: tuple[SeatGroup, ...] = ()

    @property
    def num_teams(self) -> int:
        """Teams of the game; 1 where nobody is an opponent."""
        return len(set(self.teams))


@dataclass(frozen=True)
class FinalObservation:
    """Last observations of seats that were cut off, to bootstrap from. F = number of such slots.

    A seat of a truncated episode that is missing here terminated before it: for it nothing follows.

    env_index, seat: int64 [F]; obs: name -> [F, ...].
    """

    env_index: NDArray[np.int64]
    seat: NDArray[np.int64]
    obs: Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Turn:
    """The slots that must act now, and the results of the last step.

    Fields:
      env_index, seat: int64 [K], sorted by (env_index, seat). Envs may have different numbers of slots; only a
        quarantined one has zero, see `league.envs.failures`.
      obs: name -> [K, ...] of the dtype in the spec; only valid until the next `step` (buffers may be reused).
      action_mask: bool [K, A], True where legal, at least one True per row; None if `spec.has_mask` is False.
      rewards: float32 [N, S], earned by each seat since its own last turn. A waiting seat's reward accumulates
        until it acts again or its episode ends; the acting slots of the *next* turn then start from zero. In an env
        that ended, these are the last rewards of the finished episode (the new one has earned nothing yet).
      terminated: bool [N], the episode ended by the rules in this step: nothing follows, bootstrap with 0.
      truncated: bool [N], the episode was cut off in this step: bootstrap from `final`.
      final: the last observations of the seats that were cut off, in the truncated episodes and before they rejoined;
        None if there are none.
      returns: float32 [N, S], the undiscounted return of each seat in the episode that ended in this step, else 0.
      rejoined: bool [N, S], seats whose part of the episode had ended, by a death or a cut, and that act again in this
        turn: another part begins. The rewards of this turn belong to the last one. Its last decision leads to the
        observation in `final` if the seat was cut off, and to nothing if it died. None if there are none.
      aborted: bool [N], the env failed and its unfinished episode is thrown away: it has not ended, its last actions
        have no result, and its rewards are 0; None if there are none.

    An env whose episode ended has already been restarted: its slots above are the first of its next episode.
    """

    env_index: NDArray[np.int64]
    seat: NDArray[np.int64]
    obs: Mapping[str, NDArray[np.generic]]
    action_mask: NDArray[np.bool_] | None
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    returns: NDArray[np.float32]
    final: FinalObservation | None = None
    rejoined: NDArray[np.bool_] | None = None
    aborted: NDArray[np.bool_] | None = None

    @property
    def ended(self) -> NDArray[np.bool_]:
        """bool [N], terminated or truncated in this step."""
        return self.terminated | self.truncated


class BatchedEnv(Protocol):
    """N games stepped together; an ended game restarts in the same step."""

    spec: EnvSpec
    num_envs: int

    def reset(self, seed: int) -> Turn:
        """Restart every game; the same seed and the same actions give the same games."""
        ...

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Apply one action to each slot of the last turn.

        Args:
          actions: [K] int64 (categorical), [K, H] int64 (multi_categorical) or [K, ...] float32 (box), in the order of
            the last turn's slots.
        Raises:
          EnvError: an action is illegal or the game itself raised.
        """
        ...

    def close(self) -> None:
        """Release all resources; may be called twice."""
        ...


@runtime_checkable
class ForkableEnv(Protocol):
    """An env whose games can be copied, for tree search, exact resume and paired evaluation."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        """An independent env with copies of the games at `env_indices` in their present positions, and its turn.

        An index may be repeated. The turn keeps the `rewards` of waiting seats; `terminated` and `truncated` are
        False.
        """
        ...

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The full state, including random state, as plain arrays (bytes as uint8)."""
        ...

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from the arrays of `save`; returns the turn that was current."""
        ...


@dataclass(frozen=True)
class EnvConfig:
    """The id and the options of an env.

    Fields:
      id: a registered id, `pettingzoo:...`, `gymnasium:...`, `openspiel:...`, `module:function` or
        `path/file.py:function`.
      kwargs: its options.
      teams: names or patterns ("red_*") of the seats on each team of a PettingZoo game, every seat on one; empty for
        what the game itself says in its attribute `teams`, else every seat for itself.
      policies: group -> names or patterns of the seats of a PettingZoo game that share networks; empty for a group
        for each observation and action space.
      team_observations: show the value, in training only, what the other seats of a seat's team observed last; for
        `network.value: centralised`.
      workers: child processes that step the games, for slow or unsafe ones; 0 for none, "auto" for as many as pay.
        Games in child processes cannot be copied, so bots that try moves out on copies do not play them.
      reset_deadline_s: seconds that making or resetting a game may take in a child process; a game that takes longer
        loses its episode.
      step_deadline_s: the same for a step of a game.
      worker_memory_mib: resident memory of one child process; null for half of the machine's, shared equally. A
        process that takes more is replaced.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  read by pydantic where this record is part of a config

    id: str
    kwargs: dict[str, object] = field(default_factory=dict)
    teams: tuple[tuple[str, ...], ...] = ()
    policies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    team_observations: bool = False
    workers: int | Literal["auto"] = "auto"
    reset_deadline_s: float = 60.0
    step_deadline_s: float = 30.0
    worker_memory_mib: int | None = None


def reward_problem(rewards: NDArray[np.floating[Any]]) -> tuple[int, int, str] | None:
    """Game, seat and a clause of the first reward [N, S] that is not finite or too large; None where all will do."""
    fits = np.abs(rewards) <= MAX_REWARD  # false of NaN as well
    if fits.all():
        return None
    game, seat = (int(index) for index in np.argwhere(~fits)[0])
    return game, seat, f"a reward is {rewards[game, seat]}; rewards must be finite, and {MAX_REWARD:,.0f} at most"
