"""Shows the value, in training only, what the other seats of a seat's team observed last.

Shape letters: N games, S seats, K slots, M other seats of the largest team.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ArraySpec, EnvError, EnvSpec

PREFIX = "team."


def with_team_observations(spec: EnvSpec) -> EnvSpec:
    """The spec with a value field [M, ...] for every observation field.

    Raises:
      EnvError: no seat has another one on its team.
    """
    others = mates_of(spec.teams).shape[1]
    if not others:
        raise EnvError(
            f"{spec.env_id}: env.team_observations: no team has two seats; say who plays together, env.teams"
        )
    shown = {
        f"{PREFIX}{name}": ArraySpec((others, *array.shape), array.dtype) for name, array in spec.observations.items()
    }
    groups = tuple(replace(group, observations={**group.observations, **shown}) for group in spec.seat_groups)
    return replace(spec, observations={**spec.observations, **shown}, value_fields=tuple(shown), seat_groups=groups)


def mates_of(teams: tuple[int, ...]) -> NDArray[np.int64]:
    """int64 [S, M], the other seats of each seat's team in order, -1 where the team is smaller."""
    rows = [
        [mate for mate, other in enumerate(teams) if other == team and mate != seat] for seat, team in enumerate(teams)
    ]
    widest = max(map(len, rows))
    return np.array([[*row, *[-1] * (widest - len(row))] for row in rows], np.int64).reshape(len(teams), widest)


class TeamObservations:
    """Keeps the last observation of every seat, zeros before its first turn, and shows them to its team."""

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._spec = spec
        self._mates = mates_of(spec.teams)
        self._seen = {
            name: np.zeros((num_envs, spec.num_seats, *array.shape), array.dtype)
            for name, array in spec.observations.items()
            if name not in spec.value_fields
        }

    def note(
        self, env_index: NDArray[np.int64], seat: NDArray[np.int64], obs: Mapping[str, NDArray[np.generic]]
    ) -> None:
        """Keep the observations name -> [K, ...] of the slots."""
        for name, seen in self._seen.items():
            seen[env_index, seat] = obs[name]

    def forget(self, games: list[int]) -> None:
        """Forget the observations of games that start again."""
        for seen in self._seen.values():
            seen[games] = 0

    def adopt(self, other: TeamObservations, game: int) -> None:
        """Take over a game from another record of the same games."""
        for name, seen in self._seen.items():
            seen[game] = other._seen[name][game]

    def shown(self, env_index: NDArray[np.int64], seat: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
        """Name -> [K, M, ...], what the others of each slot's team observed last; zeros for places without a seat."""
        mates = self._mates[seat]
        fields: dict[str, NDArray[np.generic]] = {}
        for name, seen in self._seen.items():
            rows = seen[env_index[:, None], mates]
            rows[mates < 0] = 0
            fields[f"{PREFIX}{name}"] = rows
        return fields

    def copy_games(self, games: NDArray[np.int64]) -> TeamObservations:
        """The same of copies of these games."""
        copied = TeamObservations(self._spec, num_envs=games.size)
        for name, seen in self._seen.items():
            copied._seen[name][:] = seen[games]
        return copied
