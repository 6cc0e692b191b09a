"""Makes the spec of an external game from the spaces of its seats: one padded form, groups of seats, teams.

Shape letter: S seats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from league.envs.adapters.checks.declared_ranges import Bounds
from league.envs.adapters.checks.masks import MASK, MaskMethod, Path, late_mask, mask_path
from league.envs.adapters.seat_forms import (
    SeatForm,
    SeatFormat,
    apart,
    padded_actions,
    padded_observations,
)
from league.envs.adapters.space_codec import ActionCode, ObservationField
from league.envs.adapters.spaces import action_code, declared_bounds, observation_fields, text_in
from league.envs.adapters.team_observations import with_team_observations
from league.envs.padding import mask_entries
from league.envs.protocol import SEAT_GROUP, ActionSpec, ArraySpec, EnvError, EnvSpec, SeatGroup
from league.envs.seat_plan import ALONE, SeatPlan, groups_of, teams_of


@dataclass(frozen=True)
class Outline:
    """The facts common to all games of an external env.

    Fields:
      forms: [S] each seat's own spaces in the spec's form.
      bounds: [S] name -> least and greatest numbers that each seat's bounded fields are declared to have.
      mask_paths: [S] where a seat's observation has its mask; None where it has none.
      mask_method: says what is legal where neither observations nor infos do.
      left_out: parts of observations that are text, which no network here reads.
      make_one: makes one more game, in place of one that failed; None if the failed one is used again.
      make_bare: makes one more game as its users know it, with all its wrappers.
    """

    spec: EnvSpec
    forms: tuple[SeatForm, ...]
    bounds: tuple[Mapping[str, Bounds], ...]
    mask_paths: tuple[Path | None, ...]
    mask_method: MaskMethod | None = None
    left_out: tuple[str, ...] = ()
    make_one: Callable[[], Any] | None = None
    make_bare: Callable[[], Any] | None = None

    @property
    def fields(self) -> tuple[ObservationField, ...]:
        """The observation fields of the first seat."""
        return self.forms[0].fields

    @property
    def codes(self) -> tuple[ActionCode, ...]:
        """[S] translation of each seat's actions for the env."""
        return tuple(form.code for form in self.forms)


def outline_of(
    env_id: str,
    seat_names: Sequence[str],
    observation_spaces: Sequence[Any],
    action_spaces: Sequence[Any],
    *,
    shows_mask: Callable[[], str],
    mask_method: MaskMethod | None = None,
    seat_plan: SeatPlan = ALONE,
    teams: tuple[int, ...] | None = None,
) -> Outline:
    """Make the outline of a game from the spaces of its seats, [S] each.

    Args:
      shows_mask: the name of a mask that the env gives outside of its observations, empty for none; it is asked only
        where no space has one. mask_method: a method that gives it.
      seat_plan: of the configuration. teams: [S] as the env says itself, if it does.
    Raises:
      EnvError: a space is not supported, spaces cannot be brought to one form, or the plan does not fit the seats.
    """
    _refuse_older_gym((*observation_spaces, *action_spaces), env_id=env_id)
    given = [action_code(acted, env_id=env_id) for acted in action_spaces]
    paths = _mask_paths(observation_spaces, given, env_id=env_id)
    pairs = zip(observation_spaces, paths, strict=True)
    fields = apart([observation_fields(observed, env_id=env_id, mask=path) for observed, path in pairs])
    actions, codes = padded_actions(given, env_id=env_id)
    in_spaces = any(path is not None for path in paths)
    mask = f"observation[{MASK!r}]" if in_spaces else shows_mask()
    if mask and actions.kind == "box":
        raise late_mask(env_id, "", mask, acts_in_box=True)
    kinds = [({field.name: field.spec for field in own}, code.spec) for own, code in zip(fields, codes, strict=True)]
    names = _group_names(env_id, seat_names, kinds, seat_plan)
    groups = _groups(names, kinds, codes, env_id=env_id)
    forms = tuple(
        SeatForm(own, code, actions, mask_entries(code.spec, actions)) for own, code in zip(fields, codes, strict=True)
    )
    observations = padded_observations([group.observations for group in groups])
    if len(groups) > 1:
        observations[SEAT_GROUP] = ArraySpec((len(groups),), "bool")
    if seat_plan.teams:
        teams = teams_of(seat_names, seat_plan.teams, env_id=env_id)
    spec = EnvSpec(
        env_id=env_id,
        num_seats=len(seat_names),
        observations=observations,
        actions=actions,
        teams=tuple(range(len(seat_names))) if teams is None else teams,
        has_mask=actions.kind != "box" and (bool(mask) or any(form.pads_mask for form in forms)),
        seat_names=tuple(seat_names),
        user_format=SeatFormat(forms, observations, names),
        seat_groups=groups if len(groups) > 1 else (),
    )
    bounds = tuple(declared_bounds(space, own) for space, own in zip(observation_spaces, fields, strict=True))
    spec = with_team_observations(spec) if seat_plan.team_observations else spec
    text = tuple(dict.fromkeys(name for space in observation_spaces for name in text_in(space)))
    return Outline(spec, forms, bounds, paths, None if in_spaces else mask_method, left_out=text)


def _refuse_older_gym(given: Sequence[Any], *, env_id: str) -> None:
    """Refuse spaces that look like Gymnasium's and are those of what it took the place of. Raises EnvError."""
    if any(type(space).__module__.partition(".")[0] == "gym" for space in given):
        raise EnvError(
            f"{env_id}: its spaces are those of the older Gym, which Gymnasium took the place of; wrap it, as"
            " shimmy.GymV21CompatibilityV0(env=...) does, or have its code import gymnasium"
        )


def _mask_paths(
    observation_spaces: Sequence[Any], codes: Sequence[ActionCode], *, env_id: str
) -> tuple[Path | None, ...]:
    """[S] where each seat's observation has its mask.

    Raises:
      EnvError: a space has two that fit.
    """
    try:
        pairs = zip(observation_spaces, codes, strict=True)
        return tuple(mask_path(space, code.spec.num_actions) for space, code in pairs)
    except ValueError as error:
        raise EnvError(f"{env_id}: {error}") from error


def _group_names(
    env_id: str, seat_names: Sequence[str], kinds: Sequence[object], seat_plan: SeatPlan
) -> tuple[str, ...]:
    """[S] the group of each seat: as configured, else one for each kind, named after its first seat."""
    if seat_plan.policies:
        return groups_of(seat_names, seat_plan.policies, env_id=env_id)
    first = [kinds.index(kind) for kind in kinds]
    names = {seat: re.sub(r"[^A-Za-z0-9_-]", "_", seat_names[seat]) for seat in first}
    if len(set(names.values())) < len(names):  # in letters of another script
        names = {seat: f"seat-{seat}" for seat in names}
    short = {seat: re.sub(r"[_-]?[0-9]+$", "", name) for seat, name in names.items()}
    names = short if len(set(short.values())) == len(names) and all(short.values()) else names
    return tuple(names[seat] for seat in first)


def _groups(
    names: Sequence[str],
    kinds: Sequence[tuple[Mapping[str, ArraySpec], ActionSpec]],
    codes: Sequence[ActionCode],
    *,
    env_id: str,
) -> tuple[SeatGroup, ...]:
    """The groups in the order of their first seats, each with the padded form of its own seats."""
    groups = []
    for name in dict.fromkeys(names):
        seats = tuple(seat for seat, other in enumerate(names) if other == name)
        actions, _ = padded_actions([codes[seat] for seat in seats], env_id=env_id)
        groups.append(SeatGroup(name, seats, padded_observations([kinds[seat][0] for seat in seats]), actions))
    return tuple(groups)
