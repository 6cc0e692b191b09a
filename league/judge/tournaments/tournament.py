"""The state of a tournament: a fold of its journal that says which batches are due and what the results are.

Shape letters: C contenders, T teams of the game, K scores of a pair of games.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.judge.matches.contest import MAX_FAILURES
from league.judge.matches.match_result import MatchResult, merged
from league.judge.matches.sprt import PAIR_SCORES, SprtConfig, SprtRow, pair_counts, sequential_test
from league.judge.tournaments.formats import Format, PairScore, Round
from league.judge.tournaments.records import BatchKey, BatchPlayed, Lineup, TournamentConfig, result_of


@dataclass(frozen=True)
class PairTest:
    """The sequential test of a pairing in one round. round: from 0; games: that count; test: after them."""

    round: int
    lineup: Lineup
    games: int
    test: SprtRow


class PairLooks:
    """The looks at the test of one pairing: one after each of its batches, in the order of their numbers."""

    def __init__(self, config: SprtConfig) -> None:
        self._config = config
        self._counts: NDArray[np.int64] = np.zeros(len(PAIR_SCORES), np.int64)
        self._waiting: dict[int, NDArray[np.int64]] = {}
        self._next = 0
        self.last: int | None = None
        """Number of the batch after which the test had decided; None while it has not."""

    def add(self, number: int, counts: NDArray[np.int64]) -> None:
        """Take the pairs of a batch in, int64 [K]; they are looked at once those of all batches before have been."""
        self._waiting[number] = counts
        while self.last is None and self._next in self._waiting:
            self._counts += self._waiting.pop(self._next)
            if sequential_test(self._counts, self._config).decision:
                self.last = self._next
            self._next += 1


class Tournament:
    """Games that are due, and games that have been played.

    Rounds follow one another: who meets in a round depends on the results of all rounds before. Within a round batches
    count in the order of its schedule, whenever they ended: the first of each pairing, then the second of each. A
    batch does not count once the test of its pairing has decided, or one of its contenders has retired. So the results
    do not depend on how many batches were played at once.

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
        self._counted: dict[BatchKey, BatchPlayed] = {}
        self._closed: list[Round] = []
        self.aborted = [0] * contenders
        self._begin_round()

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
    def games_played(self) -> int:
        """Games of the batches that count, those aborted included."""
        return sum(event.games for event in self._counted.values())

    @property
    def games_known(self) -> int:
        """Games of the rounds so far, the present one to its end."""
        waiting = sum(games for key, games in self._schedule[self._place :] if self._may_count(key))
        return self.games_played + waiting

    def is_retired(self, contender: int) -> bool:
        """True if a contender failed too often to take part any longer."""
        return self.aborted[contender] >= MAX_FAILURES

    def due(self) -> Iterator[tuple[BatchKey, int]]:
        """The batches of the present round that are still to be played, with their games, in the order of counting."""
        return ((key, games) for key, games in self._schedule[self._place :] if self.is_due(key))

    def is_due(self, key: BatchKey) -> bool:
        """True for a batch of the present round that is still to be played."""
        return key not in self._played and self._may_count(key)

    def seed_number(self, key: BatchKey) -> int:
        """The number that a batch's seeds are made from: equal for every pairing of a round, so openings are common."""
        return key.round * len(self._sizes()) + key.number

    def add(self, event: BatchPlayed) -> None:
        """Take a batch in; each counts once at most."""
        assert event.key not in self._played, f"{event.key} was played before"
        self._played[event.key] = event
        if event.key.lineup in self._looks:
            scores = result_of(event, self._teams).group_scores[:, 0]
            self._looks[event.key.lineup].add(event.key.number, pair_counts(scores))
        self._count()

    def close_round(self) -> None:
        """Begin the next round, once nothing of the present one is due."""
        assert not self.is_over and self._place == len(self._schedule), "games of this round are due"
        results = self._merged(key for key in self.keys() if key.round == self.round)
        scores = [PairScore(lineup, self._scores(results[lineup])) for lineup in self._lineups if lineup in results]
        self._closed.append(tuple(scores))
        self._begin_round()

    def keys(self) -> list[BatchKey]:
        """The batches that count, pairing by pairing in their order."""
        return sorted(self._counted, key=_order)

    def surplus(self) -> list[BatchKey]:
        """The batches that were played and do not count."""
        return sorted(self._played.keys() - self._counted.keys(), key=_order)

    def results(self) -> dict[Lineup, MatchResult]:
        """All games of each pairing that count, rounds and batches in their order."""
        return self._merged(self.keys())

    def tests(self) -> tuple[PairTest, ...]:
        """The test of each pairing with a game that counts, round by round; empty where none was asked for."""
        config = self._config.sprt
        if config is None:
            return ()
        found = []
        for number in range(self.round + 1):
            results = self._merged(key for key in self.keys() if key.round == number)
            for lineup, result in results.items():
                test = sequential_test(pair_counts(result.group_scores[:, 0]), config)
                found.append(PairTest(number, lineup, result.games, test))
        return tuple(found)

    def _begin_round(self) -> None:
        self._lineups = self._format(self._contenders, self._teams, self.closed_rounds, self._config.rounds)
        self._schedule = [
            (BatchKey(self.round, lineup, number), games)
            for number, games in enumerate(self._sizes())
            for lineup in self._lineups
        ]
        self._place = 0
        sprt = self._config.sprt
        self._looks = {} if sprt is None else {lineup: PairLooks(sprt) for lineup in self._lineups}
        self._count()

    def _count(self) -> None:
        """Count what is next in the schedule, up to the first batch that is still to be played."""
        while self._place < len(self._schedule):
            key, _ = self._schedule[self._place]
            if self.is_due(key):
                return
            if self._may_count(key):
                event = self._counted[key] = self._played[key]
                for contender, lost in zip(key.lineup, event.aborted, strict=False):
                    self.aborted[contender] += lost
            self._place += 1

    def _may_count(self, key: BatchKey) -> bool:
        """False for a batch after the end of its pairing, as far as the batches before it are known."""
        looks = self._looks.get(key.lineup)
        is_late = looks is not None and looks.last is not None and key.number > looks.last
        return not is_late and not any(self.is_retired(one) for one in key.lineup)

    def _merged(self, keys: Iterator[BatchKey] | Sequence[BatchKey]) -> dict[Lineup, MatchResult]:
        parts: dict[Lineup, list[MatchResult]] = {}
        for key in keys:
            result = result_of(self._counted[key], self._teams)
            if result.num_groups:
                parts.setdefault(key.lineup, []).append(result)
        return {lineup: merged(results) for lineup, results in parts.items()}

    def _scores(self, result: MatchResult) -> tuple[float, ...]:
        if self._teams == 1:
            return (0.0,)
        return tuple(float(value) for value in np.mean(result.group_scores, axis=0)[: max(2, self._teams)])

    def _sizes(self) -> list[int]:
        """Games of the batches of one pairing, by their numbers."""
        teams, total = self._teams, -(-self._config.games // self._teams) * self._teams
        size = max(teams, self._config.batch_games // teams * teams)
        return [min(size, total - start) for start in range(0, total, size)]


def _order(key: BatchKey) -> tuple[Lineup, int, int]:
    return key.lineup, key.round, key.number
