"""Tournament formats: who meets in the next round, given the results of the rounds before.

Every format is a pure function of its inputs, so that a tournament that was cut off continues as if it had not been.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from league.envs.plugins import PluginError, resolve
from league.errors import LeagueError
from league.judge.tournaments.records import Lineup
from league.wording import counted

MAX_LINEUPS = 5_000


@dataclass(frozen=True)
class PairScore:
    """The result of a pairing. lineup: who met; scores: of each of them in [0, 1], 0 in a game of one team."""

    lineup: Lineup
    scores: tuple[float, ...]


Round = tuple[PairScore, ...]


class Format(Protocol):
    """Decides who meets.

    Args of a call:
      contenders: their number; they are known by their positions from 0.
      teams: of the game.
      rounds: the results of the rounds before; without a pairing of which no game counted.
      limit: rounds that the user asked for, 0 for as many as the format needs.
    Returns: the pairings of the next round, empty when the tournament is over.
    Raises LeagueError where it cannot be played with these numbers.
    """

    def __call__(self, contenders: int, teams: int, rounds: Sequence[Round], limit: int) -> tuple[Lineup, ...]: ...


FORMATS: Mapping[str, str] = {
    "round-robin": "league.judge.tournaments.formats:round_robin",
    "gauntlet": "league.judge.tournaments.formats:gauntlet",
    "ladder": "league.judge.tournaments.formats:ladder",
    "swiss": "league.judge.tournaments.formats:swiss",
}
"""Name -> "module:attribute" of a `Format`; also a module:attribute of the user's own."""


def format_named(name: str) -> Format:
    """The format of a name.

    Raises:
      LeagueError: there is none; the message names the nearest.
    """
    try:
        return cast(Format, resolve(name, FORMATS, what="format"))
    except PluginError as error:
        raise LeagueError(f"--format: {error}.") from error


def round_robin(contenders: int, teams: int, rounds: Sequence[Round], limit: int) -> tuple[Lineup, ...]:
    """Everyone meets everyone, in one round.

    With more than two teams every choice of contenders that fills them meets once. Where there are too few, each meets
    each of the others, who take the teams that remain.
    """
    if rounds:
        return ()
    if teams == 1:
        return tuple((one,) for one in range(contenders))
    if teams > 2 and contenders < teams:
        return tuple(itertools.permutations(range(contenders), 2))
    if math.comb(contenders, teams) > MAX_LINEUPS:
        raise LeagueError(
            f"a round robin of {counted(contenders, 'contender')} in a game of {counted(teams, 'team')} has"
            f" {math.comb(contenders, teams):,} pairings, at most {MAX_LINEUPS:,} are played: take --format gauntlet."
        )
    return tuple(itertools.combinations(range(contenders), teams))


def gauntlet(contenders: int, teams: int, rounds: Sequence[Round], limit: int) -> tuple[Lineup, ...]:
    """The first meets each of the others, in one round."""
    if rounds:
        return ()
    _require_pairs("gauntlet", teams, least=2)
    return tuple((0, other) for other in range(1, contenders))


def ladder(contenders: int, teams: int, rounds: Sequence[Round], limit: int) -> tuple[Lineup, ...]:
    """Neighbours on the ladder meet, and a winner from below takes the place above.

    The contenders stand as given, the first on top. Rounds take the pairs from the top and those from the second in
    turn. As many rounds as contenders sort them if the stronger always wins (odd-even transposition sort).
    """
    _require_pairs("ladder", teams)
    if len(rounds) >= (limit or contenders):
        return ()
    order = ladder_order(contenders, rounds)
    first = len(rounds) % 2 if contenders > 2 else 0
    return tuple((order[i], order[i + 1]) for i in range(first, contenders - 1, 2))


def ladder_order(contenders: int, rounds: Sequence[Round]) -> tuple[int, ...]:
    """The contenders from the top of the ladder down, after some rounds."""
    order = list(range(contenders))
    for played in rounds:
        for pairing in played:
            above, below = (order.index(one) for one in pairing.lineup)
            if pairing.scores[1] > pairing.scores[0]:
                order[above], order[below] = order[below], order[above]
    return tuple(order)


def swiss(contenders: int, teams: int, rounds: Sequence[Round], limit: int) -> tuple[Lineup, ...]:
    """Contenders of about equal points meet, nobody twice; log2 of their number rounds, rounded up.

    A pairing gives 1 point to its winner, or 1/2 to each. With an odd number the lowest that has not been left out
    yet sits out and gets the point.
    """
    _require_pairs("swiss", teams)
    if limit >= contenders:
        raise LeagueError(f"--rounds {limit}: {contenders} contenders can meet in at most {contenders - 1} rounds.")
    if len(rounds) >= (limit or math.ceil(math.log2(max(contenders, 2)))):
        return ()
    points = swiss_points(contenders, rounds)
    order = sorted(range(contenders), key=lambda one: (-points[one], one))
    met = {frozenset(pairing.lineup) for played in rounds for pairing in played}
    if contenders % 2:
        rested = _rests(contenders, rounds)
        order.remove(min(reversed(order), key=lambda one: rested[one]))
    pairs = _paired(order, met)
    if pairs is None:  # everyone near has been met: meeting again is better than stopping
        pairs = list(zip(order[::2], order[1::2], strict=True))
    return tuple(pairs)


def swiss_points(contenders: int, rounds: Sequence[Round]) -> list[float]:
    """Points of every contender after some rounds."""
    points = [0.0] * contenders
    for played in rounds:
        present: set[int] = set()
        for pairing in played:
            present.update(pairing.lineup)
            first, second = pairing.scores
            for one, gained in zip(pairing.lineup, (first > second, second > first), strict=True):
                points[one] += 1.0 if gained else 0.5 if first == second else 0.0
        for one in set(range(contenders)) - present:
            points[one] += 1.0
    return points


def _rests(contenders: int, rounds: Sequence[Round]) -> list[int]:
    """Rounds that each contender sat out."""
    return [sum(all(one not in pairing.lineup for pairing in played) for played in rounds) for one in range(contenders)]


def _paired(order: Sequence[int], met: set[frozenset[int]]) -> list[tuple[int, int]] | None:
    """Pairs from the top down, each with the nearest below that it has not met; None where there are none."""
    if not order:
        return []
    for place in range(1, len(order)):
        if frozenset((order[0], order[place])) not in met:
            rest = _paired([*order[1:place], *order[place + 1 :]], met)
            if rest is not None:
                return [(order[0], order[place]), *rest]
    return None


def _require_pairs(name: str, teams: int, *, least: int = 0) -> None:
    if teams < 2 or (not least and teams != 2):
        needs = "two teams" if not least else "two teams or more"
        raise LeagueError(f"--format {name} needs a game of {needs}, this one has {teams}: take round-robin.")
