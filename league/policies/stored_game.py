"""The game of a package as plain values: its facts, and its own format of observations and actions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.seat_forms import SeatForm, SeatFormat
from league.envs.adapters.space_codec import ActionCode, ActionPart, ObservationField
from league.envs.padding import mask_entries
from league.envs.protocol import (
    OBSERVATION_DTYPES,
    ActionSpec,
    ArraySpec,
    EnvConfig,
    EnvSpec,
    SeatGroup,
    UserFormat,
)
from league.errors import LeagueError


class StoredArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array. values: nested lists of numbers."""

    dtype: str
    values: Any

    @classmethod
    def of(cls, array: NDArray[np.generic] | None) -> StoredArray | None:
        """The record of an array."""
        return None if array is None else cls(array.dtype.name, array.tolist())

    def array(self) -> NDArray[Any]:
        """The array.

        Raises:
          ValueError: it is none of numbers.
        """
        if self.dtype not in OBSERVATION_DTYPES:
            raise ValueError(f"an array of {self.dtype[:40]!r}")
        try:
            return np.array(self.values, self.dtype)
        except (TypeError, OverflowError) as error:
            raise ValueError(f"no array of {self.dtype}") from error


class StoredCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As `ActionCode`. low, high: its bounds."""

    spec: ActionSpec
    start: int = 0
    starts: StoredArray | None = None
    scale: StoredArray | None = None
    shift: StoredArray | None = None
    low: StoredArray | None = None
    high: StoredArray | None = None
    dtype: str = "float32"
    parts: tuple[StoredPart, ...] = ()
    is_tuple: bool = False

    @classmethod
    def of(cls, code: ActionCode) -> StoredCode:
        """The record of a code."""
        low, high = code.bounds or (None, None)
        return cls(
            code.spec,
            start=code.start,
            starts=StoredArray.of(code.starts),
            scale=StoredArray.of(code.scale),
            shift=StoredArray.of(code.shift),
            low=StoredArray.of(low),
            high=StoredArray.of(high),
            dtype=code.dtype,
            parts=tuple(StoredPart(part.key, part.size, cls.of(part.code)) for part in code.parts),
            is_tuple=code.is_tuple,
        )

    def code(self) -> ActionCode:
        """The code. Raises ValueError: an array of it is none."""
        starts, scale, shift, low, high = (
            None if stored is None else stored.array()
            for stored in (self.starts, self.scale, self.shift, self.low, self.high)
        )
        return ActionCode(
            self.spec,
            start=self.start,
            starts=starts,
            scale=scale,
            shift=shift,
            bounds=None if low is None or high is None else (low, high),
            dtype=self.dtype,
            parts=tuple(ActionPart(part.key, part.code.code(), part.size) for part in self.parts),
            is_tuple=self.is_tuple,
        )


class StoredPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As `ActionPart`."""

    key: str | int
    size: int
    code: StoredCode


class StoredForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of seats: the fields of its observations, and the code of its actions."""

    fields: tuple[ObservationField, ...]
    code: StoredCode


class StoredFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Observations and actions as the env's users know them. forms: of all kinds of seats; seats: [S] of each seat."""

    forms: tuple[StoredForm, ...]
    seats: tuple[int, ...]

    @classmethod
    def of(cls, own: UserFormat | None) -> StoredFormat | None:
        """The record of a format; None for one that is code of the user's own, or where there is none."""
        if not isinstance(own, SeatFormat):
            return None
        stored = [StoredForm(form.fields, StoredCode.of(form.code)) for form in own.forms]
        kinds: list[StoredForm] = []
        for form in stored:
            if form not in kinds:
                kinds.append(form)
        return cls(tuple(kinds), tuple(kinds.index(form) for form in stored))

    def format_for(self, spec: EnvSpec) -> SeatFormat:
        """The format. spec: of the game, without one.

        Raises:
          ValueError: it is none for this game.
        """
        if problem := self._problem(spec):
            raise ValueError(problem)
        codes = [form.code.code() for form in self.forms]
        entries = [mask_entries(code.spec, spec.actions) for code in codes]
        kinds = [
            SeatForm(form.fields, code, spec.actions, own)
            for form, code, own in zip(self.forms, codes, entries, strict=True)
        ]
        group = {seat: one.name for one in spec.seat_groups for seat in one.seats}
        shown = {name: array for name, array in spec.observations.items() if name not in spec.value_fields}
        groups = tuple(group.get(seat, "") for seat in range(spec.num_seats))
        return SeatFormat(tuple(kinds[kind] for kind in self.seats), shown, groups)

    def _problem(self, spec: EnvSpec) -> str:
        """The first part that does not fit the game, so that any memory might be asked for; empty if none."""
        if len(self.seats) != spec.num_seats or not set(self.seats) <= set(range(len(self.forms))):
            return "its format is of other seats"
        for form in self.forms:
            for field in form.fields:
                padded = spec.observations.get(field.name)
                if padded is None or not _within(field.spec, padded) or not _blocks_fit(field):
                    return f"its format has a field {field.name[:80]!r} that is none of the game's"
            own, padded_actions = form.code.spec, spec.actions
            numbers = max(own.num_actions, sum(own.nvec))
            if numbers > padded_actions.num_actions or math.prod(own.shape) > math.prod(padded_actions.shape or (1,)):
                return "its format has more actions than the game"
        return ""


class StoredSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fixed facts of the game; fields as in `EnvSpec`, but for its own format of observations."""

    env_id: str
    num_seats: int
    observations: dict[str, ArraySpec]
    actions: ActionSpec
    teams: tuple[int, ...]
    has_mask: bool
    max_turns: int | None
    seat_names: tuple[str, ...]
    value_fields: tuple[str, ...]
    hidden_information: bool
    information_known: bool
    return_range: tuple[float, float] | None
    win_draw_loss: bool
    seat_groups: tuple[SeatGroup, ...]

    def spec(self) -> EnvSpec:
        """The game as networks are built for it."""
        return EnvSpec(**{name: getattr(self, name) for name in self.__struct_fields__})


class StoredGame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The game of a policy.

    Fields:
      id, kwargs: as in `env:` of a configuration.
      facts: what its seats see and may do, as networks take it.
      format: the same as the game itself shows it; None where that is the same, or code.
    """

    id: str
    kwargs: dict[str, Any]
    facts: StoredSpec
    format: StoredFormat | None = None

    def spec(self) -> EnvSpec:
        """The spec of the game, which need not be here.

        Raises:
          ValueError: the format does not fit the facts.
        """
        plain = self.facts.spec()
        return plain if self.format is None else dataclasses.replace(plain, user_format=self.format.format_for(plain))


def game_record(env: EnvConfig, spec: EnvSpec) -> StoredGame:
    """The game of a policy as a package holds it.

    Raises:
      LeagueError: a key of its observations or actions is no text and no number.
    """
    try:
        own = msgspec.convert(
            msgspec.to_builtins(StoredFormat.of(spec.user_format), enc_hook=_plain_number), StoredFormat | None
        )
    except (NotImplementedError, msgspec.ValidationError) as error:
        raise LeagueError(
            f"{env.id} cannot be exported: its observations or actions have a key that a package cannot hold "
            f"({error}); use text or whole numbers as keys."
        ) from error
    return StoredGame(env.id, dict(env.kwargs), facts_of(spec), own)


def facts_of(spec: EnvSpec) -> StoredSpec:
    """The facts of a game without its own format of observations, all numbers plain."""
    values = {
        field.name: getattr(spec, field.name) for field in dataclasses.fields(spec) if field.name != "user_format"
    }
    plain = msgspec.to_builtins(values, enc_hook=_plain_number)
    return msgspec.convert(plain, StoredSpec)


def _plain_number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a spec holds {value!r}, which is no plain value")


def _within(own: ArraySpec, padded: ArraySpec) -> bool:
    """True if a field lies in the leading corner of another."""
    pairs = list(zip(own.shape, padded.shape, strict=False))
    return len(own.shape) == len(padded.shape) and all(0 <= one <= most for one, most in pairs)


def _blocks_fit(field: ObservationField) -> bool:
    """True if the one-hot blocks of a field, where it has any, are within it."""
    if field.one_hot_at is None:
        return True
    if not len(field.one_hot_at) == len(field.counts) == len(field.lowest):
        return False
    blocks = zip(field.one_hot_at, field.counts, strict=True)
    return all(min(at, count - 1) >= 0 and at + count <= math.prod(field.spec.shape) for at, count in blocks)
