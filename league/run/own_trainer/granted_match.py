"""A match that a trainer of the user's own is to play, and its games as the league counts them.

Shape letters: G games, S seats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from league.agents.acting.outcome_counter import OutcomeCounter
from league.core.state.records import AssignmentOutcome, Lease
from league.errors import LeagueError
from league.hosts.actors.outcomes import outcome_of


@dataclass(frozen=True)
class GrantedMatch:
    """The seats of the next games, of which there may be any number.

    Fields:
      match_id, token: of its lease; a report counts once, and only for the start of the league that granted it.
      player: that learns from it; None for a rating match, in which nobody does.
      policies: [S] who sits on each seat: `player` itself, another player, a snapshot, or "bot:NAME".
      files: snapshot -> its file, byte for byte as it was given to `League.add_snapshot`.
    """

    match_id: int
    token: int
    player: str | None
    policies: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def seats(self) -> tuple[int, ...]:
        """Numbers of the seats of `player`; of all seats in self-play."""
        return tuple(seat for seat, policy in enumerate(self.policies) if policy == self.player)

    @property
    def seat(self) -> int:
        """The first of them."""
        return self.seats[0]

    @property
    def opponent(self) -> str:
        """The first policy that is not `player`; `player` itself in self-play."""
        return next((policy for policy in self.policies if policy != self.player), self.policies[0])

    @property
    def file(self) -> Path | None:
        """The opponent's file; None where it is a bot or has live weights, as in self-play."""
        return self.files.get(self.opponent)


def seated(lease: Lease, *, seed: int) -> tuple[str, ...]:
    """[S] policies of one match of a lease, drawn by the probabilities of its assignments. seed: of the league."""
    rng = np.random.default_rng([seed, lease.lease_id])
    chances = [assignment.probability for assignment in lease.assignments]
    return lease.assignments[int(rng.choice(len(chances), p=np.array(chances) / sum(chances)))].policies


def returns_of(match: GrantedMatch, outcome: ArrayLike, *, teams: Sequence[int]) -> NDArray[np.float64]:
    """float64 [G, S], the returns of a match's games.

    Args:
      outcome: [G, S] or, of one game, [S] returns by seat; or one number, the return of the match's player in a game of
        two teams, of which the other team has the negative.
      teams: [S] team of each seat.
    Raises:
      LeagueError: it has another form, or a number is not finite.
    """
    try:
        given = np.asarray(outcome, np.float64)
    except (TypeError, ValueError) as error:
        raise LeagueError(f"match {match.match_id}: the outcome is no array of numbers: {error}.") from error
    if given.ndim == 0:
        if match.player is None or len(set(teams)) != 2:
            raise LeagueError(
                f"match {match.match_id}: one number is the outcome of a player's game of two teams; give the returns "
                f"of all {len(teams)} seats."
            )
        own = teams[match.seat]
        given = np.array([given if team == own else -given for team in teams])
    games = given[None] if given.ndim == 1 else given
    if games.ndim != 2 or games.shape[1] != len(teams) or not len(games):
        raise LeagueError(
            f"match {match.match_id}: the outcome has the form {list(given.shape)}, not [games, {len(teams)}] with the "
            f"returns of {len(teams)} seats."
        )
    if not np.isfinite(games).all():
        raise LeagueError(f"match {match.match_id}: a return is not finite.")
    return games


def counted(
    match: GrantedMatch, returns: NDArray[np.float64], *, teams: Sequence[int], decisions: int
) -> tuple[AssignmentOutcome, ...]:
    """The games of a match as an answer to its lease has them. returns: [G, S]. decisions: in all of them."""
    counter, games = OutcomeCounter(teams), len(returns)
    counter.add(
        np.full(games, counter.index_of(match.policies), np.int64),
        returns=returns.astype(np.float32),
        decisions=np.full(games, decisions // games) + (np.arange(games) < decisions % games),
        truncated=np.zeros(games, np.bool_),
    )
    return tuple(map(outcome_of, counter.take()))
