"""Describes a game by its spec: seats, teams, networks, observations and actions."""

from __future__ import annotations

from collections.abc import Iterator

from league.envs.protocol import ActionSpec, BatchedEnv, EnvSpec
from league.envs.seat_plan import MAX_NAMES, listed, suggested_teams


def env_facts(env: BatchedEnv) -> Iterator[tuple[str, str]]:
    """Yields `spec_facts` of a game, and which parts of its observations are not seen."""
    for name, text in spec_facts(env.spec):
        yield name, text
        if name == "observations" and (left_out := getattr(env, "left_out", ())):
            yield "not seen", f"{', '.join(left_out)}, which is text"


def spec_facts(spec: EnvSpec) -> Iterator[tuple[str, str]]:
    """Yields (name, text) for every fact of a game that its spec tells."""
    yield "seats", f"{spec.num_seats}: {listed(_seat_names(spec))}{_sides(spec)}"
    suggested = suggested_teams(spec)
    if suggested:
        teams = ", ".join(f"[{', '.join(patterns)}]" for patterns in suggested)
        yield "teams", f"none are declared; the names of the seats suggest env.teams: [{teams}]"
    for group in spec.seat_groups:
        own = ", ".join(f"{name} {list(array.shape)}" for name, array in group.observations.items())
        seats = listed([_seat_names(spec)[seat] for seat in group.seats])
        yield f"networks of {group.name}", f"{seats}; {own}; {_actions_text(group.actions)}"
    fields = ", ".join(f"{name} {array.dtype} {list(array.shape)}" for name, array in spec.observations.items())
    yield "observations", fields
    yield "actions", _actions_text(spec.actions) + (", some masked" if spec.has_mask else "")


def _actions_text(code: ActionSpec) -> str:
    """Text on a kind of action."""
    return {
        "categorical": f"{code.num_actions} numbered actions",
        "multi_categorical": f"sub-actions of {', '.join(map(str, code.nvec))} choices",
        "box": f"float32 {list(code.shape)} in [{code.low:g}, {code.high:g}]",
    }[code.kind]


def _seat_names(spec: EnvSpec) -> tuple[str, ...]:
    """The names of the seats, made up where the game gives none."""
    return spec.seat_names or tuple(f"seat_{seat}" for seat in range(spec.num_seats))


def _sides(spec: EnvSpec) -> str:
    """Text on the sides that play together; empty for one seat."""
    sides = [
        [name for name, team in zip(_seat_names(spec), spec.teams, strict=True) if team == side]
        for side in dict.fromkeys(spec.teams)
    ]
    if spec.num_seats == 1:
        return ""
    if len(sides) == spec.num_seats:
        return "; every seat for itself"
    return f"; sides {', '.join('+'.join(names[:MAX_NAMES]) + '+...' * (len(names) > MAX_NAMES) for names in sides)}"
