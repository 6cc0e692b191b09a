"""Brings seats with different spaces to one padded form, so that batches and unrolls have one shape for all.

Shape letters: S seats, G groups of seats, A entries of the action mask.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.checks.masks import legal_of
from league.envs.adapters.space_codec import ActionCode, ObservationField
from league.envs.adapters.spaces import flat_mask, from_unit
from league.envs.padding import corner
from league.envs.protocol import SEAT_GROUP, ActionSpec, ArraySpec, EnvError, multi_categorical


@dataclass(frozen=True)
class SeatForm:
    """Observations and actions of a seat, and their place in the padded form.

    Fields:
      fields: of its observations, by the names of the padded form.
      code: of its own actions.
      actions: of the padded form.
      mask_entries: int64, the entries of the padded mask that are its own.
    """

    fields: tuple[ObservationField, ...]
    code: ActionCode
    actions: ActionSpec
    mask_entries: NDArray[np.int64] = dataclasses.field(compare=False)

    @functools.cached_property
    def _fills_form(self) -> bool:
        """True if the seat's own actions are those of the padded form."""
        return self.code.spec == self.actions

    @functools.cached_property
    def _masks_plainly(self) -> bool:
        """True if an array with an entry for each of the seat's actions is a mask of the padded form as it is."""
        return self.code.spec.kind == "categorical" and not self.pads_mask

    @property
    def pads_mask(self) -> bool:
        """True if the padded mask has entries beyond those of the seat."""
        return self.mask_entries.size < self.actions.num_actions

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """The seat's own shape of a field; None if it does not have it."""
        return next((field.spec.shape for field in self.fields if field.name == name), None)

    def writes(self, padded: Mapping[str, ArraySpec]) -> list[tuple[ObservationField, tuple[slice, ...] | None]]:
        """Every field with its place in the padded one; None where it fills it."""
        return [
            (field, None if padded[field.name].shape == field.spec.shape else corner(field.spec.shape))
            for field in self.fields
        ]

    def write(self, observation: Any, rows: Mapping[str, NDArray[np.generic]]) -> None:
        """Write the fields of an observation into the leading corners of `rows`, name -> array of the padded shape."""
        for field in self.fields:
            row = rows[field.name]
            field.write(observation, row if row.shape == field.spec.shape else row[corner(field.spec.shape)])

    def mask(self, mask: Any) -> NDArray[np.bool_]:
        """Legal actions bool [A] of the padded form. mask: of the seat as its env gives it; None if all are legal.

        Raises:
          ValueError: it does not have one entry for each of the seat's actions, or one that is neither 0 nor 1.
        """
        if type(mask) is np.ndarray and mask.shape == self.mask_entries.shape and self._masks_plainly:
            return legal_of(mask)
        own: NDArray[np.bool_] | bool = True
        if mask is not None:
            given = flat_mask(mask, self.code)
            if given.shape != self.mask_entries.shape:
                raise ValueError(f"action_mask has shape {given.shape}, expected ({self.mask_entries.size},)")
            own = legal_of(given)
            if not self.pads_mask:
                return own
        padded = np.zeros(self.actions.num_actions, np.bool_)
        padded[self.mask_entries] = own
        return padded

    def decode(self, action: Any) -> Any:
        """The action as the env takes it from this seat, of one in the padded form."""
        if self._fills_form:
            return self.code.decode(action)
        own, padded = self.code.spec, self.actions
        if own.kind == "categorical":
            return self.code.decode(action if padded.kind == "categorical" else action[0])
        if own.kind == "multi_categorical":
            return self.code.decode(action[: len(own.nvec)])
        return self.code.decode(action[corner(own.shape)])


@dataclass(frozen=True)
class SeatFormat:
    """`league.envs.protocol.UserFormat` of an env with spaces.

    Fields:
      forms: [S] of its seats.
      observations: of the padded form.
      groups: [S] the name of each seat's group.
    """

    forms: tuple[SeatForm, ...]
    observations: Mapping[str, ArraySpec]
    groups: tuple[str, ...]

    def seat_of(self, observation: Any) -> int | None:
        kinds = [
            (group, [(own.name, own.spec) for own in form.fields], form.code.spec)
            for group, form in zip(self.groups, self.forms, strict=True)
        ]
        first = [seat for seat, kind in enumerate(kinds) if kinds.index(kind) == seat]
        if len(first) == 1:
            return None
        fitting = [seat for seat in first if self._fits(observation, seat)]
        if len(fitting) != 1:
            raise ValueError("no seat observes that" if not fitting else "seats of several kinds observe that")
        return fitting[0]

    def _fits(self, observation: Any, seat: int) -> bool:
        try:
            shown = self.read(observation, seat=seat)
        except ValueError:
            return False
        return all(shown[name].shape == array.shape for name, array in self.observations.items())

    def read(self, observation: Any, *, seat: int | None = None) -> dict[str, NDArray[np.generic]]:
        seat = seat or 0
        found: dict[str, NDArray[np.generic]] = {}
        for field in self.forms[seat].fields:
            try:
                value = _value(field, observation)
            except (LookupError, TypeError) as error:
                raise ValueError(f"field {field.name!r} is not where the space has it") from error
            found[field.name] = self._padded(field, value)
        for name, array in self.observations.items():
            if name == SEAT_GROUP:
                found[name] = np.array([group == self.groups[seat] for group in dict.fromkeys(self.groups)])
            elif name not in found:
                found[name] = np.zeros(array.shape, array.dtype)
        return found

    def read_mask(self, mask: Any, *, seat: int | None = None) -> NDArray[np.bool_] | None:
        form = self.forms[seat or 0]
        return None if mask is None and not form.pads_mask else form.mask(mask)

    def write(self, action: Any, *, seat: int | None = None) -> Any:
        if seat is None and len({form.code.start for form in self.forms}) > 1:
            return action
        return self.forms[seat or 0].decode(action)

    def _padded(self, field: ObservationField, value: NDArray[np.generic]) -> NDArray[np.generic]:
        shape = self.observations[field.name].shape
        if shape == field.spec.shape:
            return value
        if value.shape != field.spec.shape:
            raise ValueError(f"field {field.name!r} has shape {value.shape}, its space says {field.spec.shape}")
        padded = np.zeros(shape, value.dtype)
        padded[corner(value.shape)] = value
        return padded


def _value(field: ObservationField, observation: Any) -> NDArray[np.generic]:
    """The value of a field of its own shape; that of an array as it is, so that its reader checks it."""
    if field.one_hot_at is None:
        value = np.asarray(field.value(observation))
        return value.reshape(1) if not value.shape and field.spec.shape == (1,) else value
    row = np.zeros(field.spec.shape, field.spec.dtype)
    field.write(observation, row)
    return row


def padded_observations(kinds: Sequence[Mapping[str, ArraySpec]]) -> dict[str, ArraySpec]:
    """The union of several kinds of observations, each field as large as its largest shape."""
    shapes: dict[str, tuple[int, ...]] = {}
    dtypes: dict[str, str] = {}
    for observations in kinds:
        for name, array in observations.items():
            known = shapes.get(name, array.shape)
            shapes[name] = tuple(max(pair) for pair in zip(known, array.shape, strict=True))
            dtypes[name] = array.dtype
    return {name: ArraySpec(shape, dtypes[name]) for name, shape in shapes.items()}


def apart(fields: Sequence[Sequence[ObservationField]]) -> list[tuple[ObservationField, ...]]:
    """Fields [G] of the groups, where fields of one name with other ranks or dtypes get names of their own."""
    kinds: dict[str, tuple[int, str]] = {}
    named = []
    for group in fields:
        own = []
        for field in group:
            kind = (len(field.spec.shape), field.spec.dtype)
            name = field.name if kinds.setdefault(field.name, kind) == kind else f"{field.name}_{kind[1]}_{kind[0]}d"
            kinds.setdefault(name, kind)
            own.append(replace(field, name=name))
        named.append(tuple(own))
    return named


def padded_actions(codes: Sequence[ActionCode], *, env_id: str) -> tuple[ActionSpec, list[ActionCode]]:
    """The union of actions, and each code with actions that lie in its leading corner.

    Numbered actions beside sub-actions are the first of these; boxes with other bounds are reached from [-1, 1].

    Raises:
      EnvError: some seats act in a box and some do not, or their boxes have other ranks.
    """
    specs = [code.spec for code in codes]
    kinds = {spec.kind for spec in specs}
    if "box" not in kinds:
        if kinds == {"categorical"}:
            return ActionSpec(kind="categorical", num_actions=max(spec.num_actions for spec in specs)), [*codes]
        sizes = [spec.nvec if spec.kind == "multi_categorical" else (spec.num_actions,) for spec in specs]
        longest = max(map(len, sizes))
        nvec = tuple(max(size[at] for size in sizes if at < len(size)) for at in range(longest))
        return multi_categorical(nvec), [*codes]
    ranks = {len(spec.shape) for spec in specs}
    if len(kinds) > 1 or len(ranks) > 1:
        raise EnvError(
            f"{env_id}: some seats act in a Box, others in a space of another kind or rank; give all of them numbered"
            " actions, or all of them boxes of one rank"
        )
    shape = tuple(max(sizes) for sizes in zip(*(spec.shape for spec in specs), strict=True))
    if len({(spec.low, spec.high) for spec in specs}) == 1:
        return replace(specs[0], shape=shape), [*codes]
    return ActionSpec(kind="box", shape=shape), [from_unit(code) for code in codes]
