"""Reads the teams and policy groups that a configuration gives by names and patterns of seats.

Shape letter: S seats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise

from league.envs.protocol import EnvConfig, EnvError, EnvSpec

GROUP_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_NAMES = 8
"""Names of seats that a message lists at most."""


@dataclass(frozen=True)
class SeatPlan:
    """The keys of `EnvConfig` that say who plays with whom, and which seats share networks."""

    teams: tuple[tuple[str, ...], ...] = ()
    policies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    team_observations: bool = False

    @classmethod
    def of(cls, config: EnvConfig) -> SeatPlan:
        """That of a configuration."""
        return cls(config.teams, config.policies, config.team_observations)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are set."""
        return tuple(f"env.{name}" for name in self.plain())

    def plain(self) -> dict[str, object]:
        """The keys that are set with their values, as in a configuration."""
        given = {"teams": self.teams, "policies": self.policies, "team_observations": self.team_observations}
        return {name: value for name, value in given.items() if value}

    def refuse(self, env_id: str, what: str) -> None:
        """Refuse the keys for a game that says itself who plays with whom.

        Raises:
          EnvError: one is set.
        """
        if self.keys:
            raise EnvError(
                f"{env_id}: {' and '.join(self.keys)} cannot be set for {what}, which says it itself; only games of"
                " several seats that are made one by one take it, as PettingZoo's"
            )

    def put_into(self, config: EnvConfig) -> EnvConfig:
        """The configuration with these seats, unless it says itself who they are."""
        if SeatPlan.of(config) != ALONE:
            return config
        return replace(config, teams=self.teams, policies=dict(self.policies), team_observations=self.team_observations)


ALONE = SeatPlan()
"""No key set."""


def teams_of(seats: Sequence[str], teams: Sequence[Sequence[str]], *, env_id: str) -> tuple[int, ...]:
    """[S] the team of each seat.

    Args:
      seats: [S] names.
      teams: names or patterns of the seats of each team.
    Raises:
      EnvError: a pattern matches no seat, or a seat is on two teams or on none.
    """
    named = {str(number): patterns for number, patterns in enumerate(teams)}
    return tuple(int(name) for name in _sides(seats, named, key="env.teams", side="team", env_id=env_id))


def groups_of(seats: Sequence[str], policies: Mapping[str, Sequence[str]], *, env_id: str) -> tuple[str, ...]:
    """[S] the name of each seat's group.

    Raises:
      EnvError: as of `teams_of`, or a name is not made of letters, digits, "_" and "-".
    """
    bad = [name for name in policies if not GROUP_NAME.fullmatch(name)]
    if bad:
        raise EnvError(f"{env_id}: env.policies: {bad[0]!r} is no name of a group; use letters, digits, _ and -")
    return _sides(seats, policies, key="env.policies", side="group", env_id=env_id)


def own_teams(teams: object, seats: Sequence[str]) -> tuple[int, ...] | None:
    """[S] the teams that an env's attribute `teams` gives: lists of seats, or a mapping from seat to team.

    None if it gives no team to each seat.
    """
    if isinstance(teams, Mapping):
        by_name = {str(seat): team for seat, team in teams.items()}
        if set(by_name) != set(seats):
            return None
        numbers = {team: number for number, team in enumerate(dict.fromkeys(by_name.values()))}
        return tuple(numbers[by_name[seat]] for seat in seats)
    if not isinstance(teams, list | tuple) or not all(isinstance(team, list | tuple) for team in teams):
        return None
    number_of = {str(seat): number for number, team in enumerate(teams) for seat in team}
    if set(number_of) != set(seats) or sum(map(len, teams)) != len(seats):
        return None
    return tuple(number_of[seat] for seat in seats)


def suggested_teams(spec: EnvSpec) -> tuple[tuple[str, ...], ...]:
    """Teams for `env.teams` by the prefixes of seat names, by a pattern or by names; empty if they suggest none.

    Only where no team is declared: two prefixes or more, one of them of several seats.
    """
    if spec.num_teams < spec.num_seats:
        return ()
    prefixes = [re.sub(r"[_-]?\d+$", "", name) for name in spec.seat_names]
    kinds = dict.fromkeys(prefixes)
    if not 1 < len(kinds) < spec.num_seats or any(one.startswith(two) for two, one in pairwise(sorted(kinds))):
        return ()
    members = {
        kind: tuple(name for name, own in zip(spec.seat_names, prefixes, strict=True) if own == kind) for kind in kinds
    }
    return tuple(_pattern_of(prefix, own, spec.seat_names) for prefix, own in members.items())


def _pattern_of(prefix: str, members: tuple[str, ...], seats: Sequence[str]) -> tuple[str, ...]:
    """One pattern that only these seats match, else their names."""
    patterns = (f"{prefix}_*", f"{prefix}-*", f"{prefix}*") if len(members) > 1 else ()
    for pattern in patterns:
        if tuple(seat for seat in seats if fnmatchcase(seat, pattern)) == members:
            return (pattern,)
    return members


def listed(names: Sequence[str]) -> str:
    """The names as text, the first few of many."""
    rest = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _sides(
    seats: Sequence[str], patterns: Mapping[str, Sequence[str]], *, key: str, side: str, env_id: str
) -> tuple[str, ...]:
    """[S] the name of each seat's side."""
    found: dict[str, str] = {}
    for name, wanted in patterns.items():
        for pattern in wanted:
            # a name itself may hold what a pattern reads as its own signs
            matches = [seat for seat in seats if seat == pattern] or [
                seat for seat in seats if fnmatchcase(seat, pattern)
            ]
            if not matches:
                raise EnvError(f"{env_id}: {key}: {pattern!r} matches no seat; the seats are {listed(seats)}")
            for seat in matches:
                if found.setdefault(seat, name) != name:
                    raise EnvError(
                        f"{env_id}: {key}: seat {seat} is in two {side}s, the second by {pattern!r}; name it once"
                    )
    missing = [seat for seat in seats if seat not in found]
    if missing:
        raise EnvError(f"{env_id}: {key}: {listed(missing)} in no {side}; every seat needs one")
    return tuple(found[seat] for seat in seats)
