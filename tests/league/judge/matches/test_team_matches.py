"""Matches of real games of teams: seats, rotations, scores, margins and the standings of the league."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.acting.policy import ActInputs, ActOutputs
from league.envs.protocol import EnvConfig
from league.judge.matches.match import Match


class Fixed:
    """Plays one number always."""

    version = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """The same action in every slot."""
        size = len(inputs.slots)
        return ActOutputs(np.full(size, self.number), np.zeros(size, np.float32), inputs.core)


GAME = EnvConfig("tests/league/judge/matches/team_game.py:make")


@pytest.mark.parametrize("teams", [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1)])
def test_a_team_wins_by_what_all_its_seats_did_and_margins_count_a_seat(teams: tuple[int, ...]) -> None:
    """A seat is paid the sum of its team's numbers less that of the other team's."""
    seats = [tuple(f"seat_{seat}" for seat, own in enumerate(teams) if own == team) for team in (0, 1)]
    config = EnvConfig(GAME.id, {"teams": list(teams)}, teams=tuple(seats))
    result = Match(config, [Fixed(2), Fixed(1)], seed=0).play(20)
    sizes = [teams.count(0), teams.count(1)]
    expected = [2 * sizes[own] - sizes[1 - own] for own in (0, 1)]
    assert result.games == 20
    wins = [value > 0 for value in expected]
    assert result.score().value == pytest.approx(np.mean([1.0 if won else 0.5 for won in wins]))
    assert result.returns_by_team(0) == pytest.approx(
        tuple(size * value for size, value in zip(sizes, expected, strict=True))
    )
    assert result.margin(sizes).value == pytest.approx(np.mean([2 * value for value in expected]))
