"""The observation and the action of each kind of seat, as the game has them: what users of a package give and get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from league.envs.adapters.seat_forms import SeatForm, SeatFormat
from league.envs.adapters.space_codec import ActionCode, ObservationField
from league.envs.protocol import ActionSpec, EnvSpec
from league.policies.observation import MASK_FIELD
from league.text_table import TextTable

MAX_NAMED = 4
"""Seats of a kind that are named."""


def seat_table(spec: EnvSpec) -> list[str]:
    """A table in Markdown, a line for each kind of seat.

    spec: with the format of the game's own, where it has one.
    """
    own = spec.user_format
    names = spec.seat_names or tuple(str(number) for number in range(spec.num_seats))
    kinds: dict[tuple[str, str], list[str]] = {}
    for seat, name in enumerate(names):
        if isinstance(own, SeatFormat):
            kind = _observation(own.forms[seat]), _action(own.forms[seat].code)
        else:
            kind = _fields(spec), _plain_action(spec.actions)
        kinds.setdefault(kind, []).append(name)
    rows = [(_listed(seats), *kind) for kind, seats in kinds.items()]
    return TextTable(("seat", "observation", "action"), rows, range(3)).markdown()


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _observation(form: SeatForm) -> str:
    if len(form.fields) == 1 and not form.fields[0].path:
        return _field(form.fields[0])
    kind = "tuple" if all(isinstance(field.path[0], int) for field in form.fields) else "dict"
    parts = [f"`{'.'.join(map(str, field.path))}` {_field(field)}" for field in form.fields]
    return f"{kind}: {', '.join(parts)}"


def _field(field: ObservationField) -> str:
    if field.one_hot_at is None:
        return f"{field.spec.dtype} {list(field.spec.shape)}"
    if len(field.counts) == 1:
        return _numbers(field.lowest[0], field.counts[0])
    return f"whole numbers [{len(field.counts)}]"


def _numbers(lowest: int, count: int) -> str:
    return f"{lowest} or {lowest + 1}" if count == 2 else f"{lowest} to {lowest + count - 1}"


def _action(code: ActionCode) -> str:
    if code.parts:
        parts = ", ".join(f"`{part.key}` {_action(part.code)}" for part in code.parts)
        return f"{'tuple' if code.is_tuple else 'dict'}: {parts}"
    if code.spec.kind == "categorical":
        return _numbers(code.start, code.spec.num_actions)
    if code.starts is not None:
        return f"whole numbers {list(code.starts.shape)}"
    low, high = code.bounds or (np.float64(code.spec.low), np.float64(code.spec.high))
    return f"{code.dtype} {list(code.spec.shape)} within {np.min(low):g} and {np.max(high):g}"


def _fields(spec: EnvSpec) -> str:
    shown = {name: array for name, array in spec.observations.items() if name not in spec.value_fields}
    parts = [f"`{name}` {array.dtype} {list(array.shape)}" for name, array in shown.items()]
    if spec.has_mask:
        parts.append(f"`{MASK_FIELD}` [{spec.actions.num_actions}]")
    return f"dict: {', '.join(parts)}"


def _plain_action(actions: ActionSpec) -> str:
    if actions.kind == "categorical":
        return _numbers(0, actions.num_actions)
    if actions.kind == "box":
        return f"float32 {list(actions.shape)} within {actions.low:g} and {actions.high:g}"
    return f"whole numbers {list(actions.shape)}"
