"""What is kept ready of the population equals what its columns say, also after it was stored and read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from league.core.state.population import FIXED_OPPONENT, PLAYER, SNAPSHOT, Population
from league.core.state.state_codec import decode, encode

ROLES = ("main_agent", "main_exploiter")


def grown(seed: int, *, size: int = 60) -> Population:
    """Players, their snapshots and bots in any order."""
    rng, population = np.random.default_rng(seed), Population()
    for number in range(size):
        players = population.players()
        kind = int(rng.integers(3))
        if kind == SNAPSHOT and len(players):
            owner = int(rng.choice(players))
            role = list(population.roles)[int(population.role.values[owner])]
            population.add(f"snapshot{number}", kind=SNAPSHOT, owner=owner, role=role)
        elif kind == FIXED_OPPONENT:
            population.add(f"bot:{number}", kind=FIXED_OPPONENT)
        else:
            role = ROLES[len(players) % 2]
            population.add(f"player{number}", kind=PLAYER, role=role)
    return population


@pytest.mark.parametrize("stored", [False, True], ids=["grown", "stored and read"])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_by_kind_role_and_owner_are_those_of_the_columns(seed: int, stored: bool) -> None:
    population = grown(seed)
    if stored:
        population = decode(Population, json.loads(json.dumps(encode(population))))
    kind, role, owner = population.kind.values, population.role.values, population.owner.values
    assert population.frozen().tolist() == np.flatnonzero(kind != PLAYER).tolist()
    for ask, wanted in ((population.players, PLAYER), (population.snapshots, SNAPSHOT)):
        assert ask().tolist() == np.flatnonzero(kind == wanted).tolist()
        for name, number in population.roles.items():
            assert ask(name).tolist() == np.flatnonzero((kind == wanted) & (role == number)).tolist()
        assert ask("no such role").tolist() == []
    for player in range(len(population)):
        expected = np.flatnonzero((kind == SNAPSHOT) & (owner == player)).tolist()
        assert population.snapshots_of(player).tolist() == expected


def test_what_is_kept_ready_cannot_be_written_to() -> None:
    population = grown(0)
    for numbers in (population.players(), population.snapshots(), population.frozen(), population.players("nobody")):
        with pytest.raises(ValueError, match="read-only"):
            numbers[:] = 0
