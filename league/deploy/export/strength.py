"""The measured strength of an exported policy, and a sentence on everything that was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from league.core.metagame.ratings import league_ratings
from league.core.state.records import BOT_PREFIX
from league.core.state.state import LeagueState
from league.judge.matches.evaluation import EvalReport
from league.policies.auto_export import EXPORTS, ExactExports
from league.policies.select import Selection

ALWAYS = (
    "It was not measured against people, engines or policies of other programs.",
    "It knows the one game with the options of this manifest, and no other rules or sizes.",
)
"""Gaps of every export."""


class Rating(msgspec.Struct, frozen=True):
    """The rating of a member in Elo within its run, with a 95 % interval and the games that it rests on."""

    member: str
    elo: float
    low: float
    high: float
    games: int


class Score(msgspec.Struct, frozen=True):
    """The score of the policy against an opponent: win 1, draw 1/2, loss 0.

    Fields:
      opponent: its name. games: played. score, low, high: mean with a 95 % interval. by_team: as each team in turn.
    """

    opponent: str
    games: int
    score: float
    low: float
    high: float
    by_team: tuple[float, ...]


class CardReturn(msgspec.Struct, frozen=True):
    """The mean return of a seat in a game of one team, with a 95 % interval. name: of the policy, or of a bot."""

    name: str
    games: int
    mean: float
    low: float
    high: float


class Strength(msgspec.Struct, frozen=True):
    """The measured strength of a policy.

    Fields:
      trained_steps: env steps whose decisions its members were trained on, the largest of them.
      ratings: of its members. rated: policies in the same ratings, bots among them.
      scores: against bots, as measured at the export. returns: instead of them in a game of one team.
      greedy: whether it took the likeliest action there.
      exact: NashConv in the rewards of the game, the sum over seats of what a best response wins; None if unknown.
      gaps: a sentence on each thing that was not measured.
    """

    trained_steps: int
    ratings: tuple[Rating, ...]
    rated: int
    scores: tuple[Score, ...]
    returns: tuple[CardReturn, ...]
    greedy: bool | None
    exact: float | None
    gaps: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """For a manifest."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def strength_of(
    state: LeagueState,
    selection: Selection | None,
    *,
    members: Sequence[str],
    trained_steps: int,
    exact: ExactExports | None,
    played: EvalReport | None,
    is_competitive: bool,
) -> Strength:
    """Puts together the ratings, the exact values and the games of the export.

    Args:
      state: of the run; without players for a lone snapshot.
      selection: the export that was chosen; None for a lone snapshot.
      members: names of the snapshots. trained_steps: the largest of them.
      exact: the run's exact values. played: its games against bots, or alone in a game of one team; None for none.
      is_competitive: False for a game of one team.
    """
    rows = league_ratings(state) if state.snapshots else ()
    ratings = tuple(
        Rating(row.policy, row.elo, row.low, row.high, row.games)
        for row in rows
        if row.policy in members and row.games > 0
    )
    scores = tuple(
        Score(row.away, row.games, row.score.value, row.score.low, row.score.high, tuple(row.by_team))
        for row in (() if played is None else played.pairs)
        if row.games
    )
    returns = tuple(
        CardReturn(row.name, row.games, row.mean_return.value, row.mean_return.low, row.mean_return.high)
        for row in (() if played is None else played.returns)
        if row.games
    )
    value = None if selection is None else _exact_of(selection, exact)
    greedy = None if played is None else played.conditions.greedy
    gaps = _gaps(state, ratings, scores, value) if is_competitive else _gaps_alone(returns)
    return Strength(trained_steps, ratings, len(rows), scores, returns, greedy, value, (*gaps, *ALWAYS))


def _exact_of(selection: Selection, exact: ExactExports | None) -> float | None:
    """The exact value of an export, if it is known."""
    if exact is None:
        return None
    name = selection.name if selection.name in EXPORTS else selection.reason.partition(",")[0]
    return exact.values.get(name)


def _gaps_alone(returns: Sequence[CardReturn]) -> list[str]:
    """In a game of one team."""
    return [] if returns else ["It was not played when it was exported."]


def _gaps(state: LeagueState, ratings: Sequence[Rating], scores: Sequence[Score], exact: float | None) -> list[str]:
    gaps = []
    if not ratings:
        gaps.append("It has no rating: none of its weights has played a rated game.")
    if any(not name.startswith(BOT_PREFIX) for name in state.population.index) and ratings:
        gaps.append("Ratings compare policies of one run; they say nothing about policies of other runs.")
    if not scores:
        gaps.append("It was not played against bots when it was exported.")
    if exact is None:
        gaps.append("Its exploitability is not known exactly; an opponent trained against it may beat it.")
    return gaps
