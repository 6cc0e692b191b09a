"""The placements of an outcome, and checks of them.

Shape letters: S seats, K sides, M placements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from league.core.state.records import AssignmentOutcome
from league.envs.placements import Placements, first_seats, has_placements, ranks_of, sides_of


def placements_of(outcome: AssignmentOutcome, teams: Sequence[int]) -> Placements:
    """The placements of an outcome, from wins and draws where it holds none and has two teams; else empty."""
    seats = first_seats(teams)
    if outcome.placements or len(seats) != 2:
        return outcome.placements
    i, j = seats
    found = (((0, 0), outcome.draws[i][j]), ((0, 1), outcome.wins[i][j]), ((1, 0), outcome.wins[j][i]))
    return tuple((ranks, times) for ranks, times in found if times)


def placement_problem(outcome: AssignmentOutcome, teams: Sequence[int]) -> str | None:
    """Describes a fault in the placements of an outcome whose other counts hold; None if there is none."""
    if not has_placements(teams):
        return "a game of two seats or of one team has no placements" if outcome.placements else None
    sides = sides_of(teams)
    listed = [ranks for ranks, _ in outcome.placements]
    if listed != sorted(set(listed)) or any(times < 1 for _, times in outcome.placements):
        return "its placements are not sorted, one is there twice, or one has no game"
    if sum(times for _, times in outcome.placements) != outcome.games:
        return f"its placements are of {sum(times for _, times in outcome.placements)} games, not of {outcome.games}"
    if any(len(ranks) != len(sides) for ranks in listed):
        return f"every placement needs {len(sides)} ranks, one per team"
    if not all(0 <= rank < len(sides) for ranks in listed for rank in ranks):
        return f"a rank does not lie between 0 and {len(sides) - 1}"
    ranks = np.array(listed, dtype=np.int64).reshape(-1, len(sides))
    if not np.array_equal(ranks_of(-ranks), ranks):
        return "a rank is not the number of teams that finished before"
    ahead = ranks[:, :, None] < ranks[:, None, :]  # [M, K, K]
    side_of = [sides.index(team) for team in teams]
    won = np.tensordot(np.array([times for _, times in outcome.placements], dtype=np.int64), ahead, axes=1)
    opponents = np.not_equal.outer(side_of, side_of)
    # Games and losses add up to the wins of the other and the draws, so that equal wins make the draws equal too.
    if np.any((won[np.ix_(side_of, side_of)] != np.array(outcome.wins))[opponents]):
        return "its placements show other wins than its pairs of seats"
    return None
