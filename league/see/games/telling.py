"""Finds the most telling games of a run: upsets, first wins over an opponent, and the longest game.

An upset's score is the surprise of the weaker policy's win in bits, -log2(p), where p = 1 / (1 + 10^(gap / 400)) is its
chance by the ratings. A first win is scored by the games that the player's earlier snapshots had played against the
same opponent without a point. The longest game is scored by its steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from league.core.metagame.ratings import RatingInputs, RatingRow
from league.see.games.replay_list import ReplayRow
from league.wording import counted

UPSET, FIRST_WIN, LONGEST = "upset", "first win", "longest"
KINDS = (UPSET, FIRST_WIN, LONGEST)
MIN_SURPRISE = 1.2
"""Bits; a win of one that is just as strong has one."""


@dataclass(frozen=True)
class TellingResult:
    """A game worth seeing, known from results alone. why: one of `KINDS`. text: one sentence; score: see above."""

    why: str
    winner: str
    loser: str
    score: float
    text: str


@dataclass(frozen=True)
class TellingGame:
    """A recorded game worth seeing. file, game: where it is. Others as of `TellingResult`."""

    why: str
    score: float
    text: str
    file: str
    game: int


def surprise(winner: float, loser: float) -> float:
    """Bits of surprise of a win, by the ratings in Elo of both."""
    return math.log2(1.0 + 10.0 ** ((loser - winner) / 400.0))


def telling_results(
    inputs: RatingInputs, rows: Iterable[RatingRow], player_of: Mapping[str, str]
) -> tuple[TellingResult, ...]:
    """Upsets and first wins in the results of a league, each kind by score.

    Args:
      inputs: games between frozen policies. rows: their ratings.
      player_of: snapshot -> its player.
    """
    elo = {row.policy: row.elo for row in rows if row.games > 0}
    met = _results(inputs)
    upsets = []
    for (winner, loser), (score, _) in met.items():
        bits = surprise(elo[winner], elo[loser]) if winner in elo and loser in elo else 0.0
        if score > 0 and bits > MIN_SURPRISE:
            chance = 2.0**-bits
            text = f"{winner} beats {loser}, which is rated {elo[loser] - elo[winner]:.0f} Elo higher ({chance:.0%})."
            upsets.append(TellingResult(UPSET, winner, loser, bits, text))
    found = [*upsets, *_first_wins(inputs.names, met, player_of)]
    return tuple(
        sorted(found, key=lambda result: (KINDS.index(result.why), -result.score, result.winner, result.loser))
    )


def _results(inputs: RatingInputs) -> dict[tuple[str, str], tuple[float, float]]:
    """(policy, opponent) -> score and games, in both directions."""
    pairs, met = inputs.pairs, dict[tuple[str, str], tuple[float, float]]()
    for first, second, score, games in zip(
        pairs.first.tolist(), pairs.second.tolist(), pairs.score.tolist(), pairs.games.tolist(), strict=True
    ):
        one, other = inputs.names[first], inputs.names[second]
        met[one, other], met[other, one] = (score, games), (games - score, games)
    return met


def _first_wins(
    names: Sequence[str], met: Mapping[tuple[str, str], tuple[float, float]], player_of: Mapping[str, str]
) -> list[TellingResult]:
    """For each player and opponent: the first snapshot with a point, where earlier ones had none."""
    played: dict[tuple[str, str], list[str]] = {}
    for name, opponent in itertools.product(names, names):
        if name in player_of and player_of.get(opponent) != player_of[name] and (name, opponent) in met:
            played.setdefault((player_of[name], opponent), []).append(name)
    found = []
    for (player, opponent), snapshots in played.items():
        lost = 0.0
        for name in snapshots:  # in the order in which they were made
            score, games = met[name, opponent]
            if score > 0:
                if lost > 0:
                    text = f"{name} takes the first point of {player} against {opponent}, after {lost:.0f} games."
                    found.append(TellingResult(FIRST_WIN, name, opponent, lost, text))
                break
            lost += games
    return found


def choose(rows: Sequence[ReplayRow], ratings: Iterable[RatingRow], *, count: int) -> tuple[TellingGame, ...]:
    """The most telling of recorded games, the kinds by turns, each game once.

    Args:
      rows: games that were recorded; one played for a `TellingResult` has its fields as tags.
      count: at most so many; a third of them for their length.
    """
    elo = {row.policy: row.elo for row in ratings if row.games > 0}
    by_kind: dict[str, list[TellingGame]] = {kind: [] for kind in KINDS}
    for row in rows:
        for telling in _telling(row, elo):
            by_kind[telling.why].append(telling)
    for found in by_kind.values():
        found.sort(key=lambda telling: (-telling.score, telling.file, telling.game))
    del by_kind[LONGEST][-(-count // len(KINDS)) :]
    chosen: dict[tuple[str, int], TellingGame] = {}
    for telling in itertools.chain.from_iterable(itertools.zip_longest(*by_kind.values())):
        if telling is not None and len(chosen) < count:
            chosen.setdefault((telling.file, telling.game), telling)
    return tuple(chosen.values())


def _telling(row: ReplayRow, elo: Mapping[str, float]) -> list[TellingGame]:
    names = [holder.name for holder in row.seats]
    text = f"{' - '.join(names)} lasts {counted(row.steps, 'step')}."
    found = [TellingGame(LONGEST, row.steps, text, row.file, row.game)]
    if row.tags.get("why") in (UPSET, FIRST_WIN) and "score" in row.tags:
        score, text = row.tags["score"], row.tags.get("text", "")
        found.append(TellingGame(row.tags["why"], _number(score), text, row.file, row.game))
    elif len(names) == 2 and row.returns[0] != row.returns[1] and all(name in elo for name in names):
        winner = int(row.returns[1] > row.returns[0])
        bits = surprise(elo[names[winner]], elo[names[1 - winner]])
        if bits > MIN_SURPRISE:
            gap = elo[names[1 - winner]] - elo[names[winner]]
            text = f"{names[winner]} beats {names[1 - winner]}, which is rated {gap:.0f} Elo higher ({2.0**-bits:.0%})."
            found.append(TellingGame(UPSET, bits, text, row.file, row.game))
    return found


def _number(text: str) -> float:
    """A score out of a file's tags; 0 where it is none."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
