"""The state of a tournament: a fold of its journal that says which batches are due and what the results are.

Shape letters: C contenders, T teams of the game.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from league.eval.contest import MAX_FAILURES
from league.eval.match_result import MatchResult, merged
from league.tournament.formats import Format, PairScore, Round
from league.tournament.records import BatchKey, BatchPlayed, Lineup, TournamentConfig, result_of


class Tournament:
    """Games that are due, and games that have been played.

    Rounds follow one another: who meets in a round depends on the results of all rounds before. Within a round batches
    may end in any order, and the state at its end is the same.

    Args:
      contenders: C. teams: T.
      format: decides who meets.
    """

    def __init__(self, config: TournamentConfig, *, contenders: int, teams: int, format: Format) -> None:
        self._config = config
        self._contenders = contenders
        self._teams = teams
        self._format = format
        self._played: dict[BatchKey, BatchPlayed] = {}
        self._closed: list[Round] = []
        self.aborted = [0] * contenders
        self._lineups = format(contenders, teams, (), config.rounds)

    @property
    def is_over(self) -> bool:
        """True if no batch is due and none will be."""
        return not self._lineups

    @property
    def round(self) -> int:
        """Number of the present round, from 0; of the rounds when it is over."""
        return len(self._closed)

    @property
    def closed_rounds(self) -> tuple[Round, ...]:
        """Results of the rounds that have ended."""
        return tuple(self._closed)

    @property
    def lineups(self) -> tuple[Lineup, ...]:
        """Pairings of the present round."""
        return self._lineups

    @property
    def games_played(self) -> int:
        """Games of all batches, those aborted included."""
        return sum(event.games for event in self._played.values())

    @property
    def games_known(self) -> int:
        """Games of the rounds so far, the present one to its end."""
        per_pairing = sum(games for _, games in self._batches())
        closed = sum(event.games for key, event in self._played.items() if key.round < self.round)
        return closed + len(self._lineups) * per_pairing

    def is_retired(self, contender: int) -> bool:
        """True if a contender failed too often to take part any longer."""
        return self.aborted[contender] >= MAX_FAILURES

    def due(self) -> Iterator[tuple[BatchKey, int]]:
        """The unplayed batches of the present round, with their games: the first of each pairing, then the second.

        Pairings with a contender that has retired are left out.
        """
        for number, games in self._batches():
            for lineup in self._lineups:
                key = BatchKey(self.round, lineup, number)
                if key not in self._played and not any(self.is_retired(one) for one in lineup):
                    yield key, games

    def seed_number(self, key: BatchKey) -> int:
        """The number that a batch's seeds are made from: equal for every pairing of a round, so openings are common."""
        return key.round * len(list(self._batches())) + key.number

    def add(self, event: BatchPlayed) -> None:
        """Take a batch in; each counts once."""
        assert event.key not in self._played, f"{event.key} was played before"
        self._played[event.key] = event
        for contender, lost in zip(event.key.lineup, event.aborted, strict=False):
            self.aborted[contender] += lost

    def close_round(self) -> None:
        """Begin the next round, once nothing of the present one is due."""
        assert not self.is_over and next(self.due(), None) is None, "games of this round are due"
        results = self._results_of(self.round)
        scores = [PairScore(lineup, self._scores(results[lineup])) for lineup in self._lineups if lineup in results]
        self._closed.append(tuple(scores))
        self._lineups = self._format(self._contenders, self._teams, self.closed_rounds, self._config.rounds)

    def keys(self) -> list[BatchKey]:
        """The batches that have been played, pairing by pairing in their order."""
        return sorted(self._played, key=_order)

    def results(self) -> dict[Lineup, MatchResult]:
        """All games of each pairing that count, rounds and batches in their order."""
        return self._merged(self.keys())

    def _results_of(self, number: int) -> dict[Lineup, MatchResult]:
        return self._merged(sorted((key for key in self._played if key.round == number), key=_order))

    def _merged(self, keys: Sequence[BatchKey]) -> dict[Lineup, MatchResult]:
        parts: dict[Lineup, list[MatchResult]] = {}
        for key in keys:
            result = result_of(self._played[key], self._teams)
            if result.num_groups:
                parts.setdefault(key.lineup, []).append(result)
        return {lineup: merged(results) for lineup, results in parts.items()}

    def _scores(self, result: MatchResult) -> tuple[float, ...]:
        if self._teams == 1:
            return (0.0,)
        return tuple(float(value) for value in np.mean(result.group_scores, axis=0)[: max(2, self._teams)])

    def _batches(self) -> Iterator[tuple[int, int]]:
        """Number and games of the batches of one pairing."""
        teams, total = self._teams, -(-self._config.games // self._teams) * self._teams
        size = max(teams, self._config.batch_games // teams * teams)
        for number, start in enumerate(range(0, total, size)):
            yield number, min(size, total - start)


def _order(key: BatchKey) -> tuple[Lineup, int, int]:
    return key.lineup, key.round, key.number
