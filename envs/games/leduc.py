"""Leduc poker: six cards (three ranks, two suits), one each and one public, two betting rounds with two raises each.

Ante one chip, raises of two chips in the first round and four in the second, before which the public card is shown.
A pair with the public card wins, else the higher rank; equal ranks split it. Actions: 0 fold (only against a raise),
1 call (or check), 2 raise.

Information state, bool [30]: the seat (2), its card (6: 2 x rank + suit), the public card (6, zeros in the first
round), then for each round four places of (call, raise). Content, order and chips are those of OpenSpiel's
`leduc_poker`.

Source: Southey et al. 2005, Bayes' bluff: opponent modelling in poker.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

from league.envs.games.poker import BettingTree, Deal, PokerGame, compile_tree

CARDS = 6
FOLD, CALL, RAISE = 0, 1, 2
ANTE = 1
RAISES = (2, 4)  # chips of a raise in each round
MAX_RAISES = 2  # in one round
PLACES = 4  # the longest round: call, raise, raise, call
NUM_ENTRIES = 2 + 2 * CARDS + 2 * PLACES * 2
DEALS: tuple[Deal, ...] = tuple(itertools.permutations(range(CARDS), 3))
"""Every way to deal the cards, equally likely, in the order of the tables."""


@dataclass(frozen=True)
class LeducBetting:
    """See `Betting`. rounds: actions of each round; stakes: chips that each seat has put in; folded: that seat."""

    rounds: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    stakes: tuple[int, int] = (ANTE, ANTE)
    second_round: bool = False
    folded: int | None = None

    @property
    def _said(self) -> tuple[int, ...]:
        return self.rounds[int(self.second_round)]

    @property
    def seat(self) -> int | None:
        """The first seat begins both rounds."""
        over = self.folded is not None or (self.second_round and _settled(self._said))
        return None if over else len(self._said) % 2

    @property
    def legal(self) -> tuple[int, ...]:
        """A fold is legal only against a raise."""
        fold = (FOLD,) if self.stakes[0] != self.stakes[1] else ()
        more = (RAISE,) if self._said.count(RAISE) < MAX_RAISES else ()
        return (*fold, CALL, *more)

    def after(self, action: int) -> LeducBetting:
        seat = self.seat
        assert seat is not None
        if action == FOLD:
            return LeducBetting(self.rounds, self.stakes, self.second_round, folded=seat)
        stake = max(self.stakes) + (RAISES[int(self.second_round)] if action == RAISE else 0)
        stakes = (stake, self.stakes[1]) if seat == 0 else (self.stakes[0], stake)
        said = (*self._said, action)
        if self.second_round:
            return LeducBetting((self.rounds[0], said), stakes, second_round=True)
        return LeducBetting((said, ()), stakes, second_round=_settled(said))

    def observed(self, deal: Deal) -> tuple[int, ...]:
        assert self.seat is not None
        public = (2 + CARDS + deal[2],) if self.second_round else ()
        bets = tuple(
            2 + 2 * CARDS + 2 * (PLACES * round_number + place) + (action == RAISE)
            for round_number, said in enumerate(self.rounds)
            for place, action in enumerate(said)
        )
        return (self.seat, 2 + deal[self.seat], *public, *bets)

    def payoff(self, deal: Deal) -> float:
        if self.folded is not None:
            return float(self.stakes[1] if self.folded == 1 else -self.stakes[0])
        first, second = (_strength(deal[seat], deal[2]) for seat in (0, 1))
        return float((first > second) - (first < second)) * self.stakes[0]


def _settled(said: tuple[int, ...]) -> bool:
    """True if a round is over: both seats have acted and the last one called."""
    return len(said) >= 2 and said[-1] == CALL


def _strength(card: int, public: int) -> int:
    rank, paired = card // 2, card // 2 == public // 2
    return rank + (CARDS if paired else 0)


@functools.cache
def leduc_tree() -> BettingTree:
    """Leduc poker as tables: H = 36, D = 120, I = 936."""
    return compile_tree(LeducBetting(), DEALS, num_actions=3, num_entries=NUM_ENTRIES)


class LeducPoker(PokerGame):
    """N games of Leduc poker."""

    def __init__(self, *, num_envs: int) -> None:
        super().__init__(env_id="leduc_poker", num_envs=num_envs, tree=leduc_tree())
