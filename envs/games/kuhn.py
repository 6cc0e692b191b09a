"""Kuhn poker: three cards, one each, one chip as ante, at most one bet of one chip.

Actions: 0 pass (check or fold), 1 bet (or call). The higher card takes the pot where nobody folds.
Information state, bool [11]: the seat (2), its card (3), then each action so far as a pass or a bet (3 x 2).
Content, order and chips are those of OpenSpiel's `kuhn_poker`.

Source: Kuhn 1950, Simplified two-person poker.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

from league.envs.games.poker import BettingTree, Deal, PokerGame, compile_tree

CARDS = 3
PASS, BET = 0, 1
NUM_ENTRIES = 2 + CARDS + 3 * 2
DEALS: tuple[Deal, ...] = tuple(itertools.permutations(range(CARDS), 2))
"""Every way to deal the cards, equally likely, in the order of the tables."""


@dataclass(frozen=True)
class KuhnBetting:
    """See `Betting`. history: the actions so far."""

    history: tuple[int, ...] = ()

    @property
    def seat(self) -> int | None:
        """The seats alternate; a game is over after two passes, a called bet or a fold."""
        over = self.history in ((PASS, PASS), (BET, PASS), (BET, BET)) or len(self.history) == 3
        return None if over else len(self.history) % 2

    @property
    def legal(self) -> tuple[int, ...]:
        """Both actions are always legal."""
        return (PASS, BET)

    def after(self, action: int) -> KuhnBetting:
        return KuhnBetting((*self.history, action))

    def observed(self, deal: Deal) -> tuple[int, ...]:
        assert self.seat is not None
        bets = tuple(2 + CARDS + 2 * place + action for place, action in enumerate(self.history))
        return (self.seat, 2 + deal[self.seat], *bets)

    def payoff(self, deal: Deal) -> float:
        if self.history == (BET, PASS):
            return 1.0
        if self.history == (PASS, BET, PASS):
            return -1.0
        stake = 1.0 if self.history == (PASS, PASS) else 2.0
        return stake if deal[0] > deal[1] else -stake


@functools.cache
def kuhn_tree() -> BettingTree:
    """Kuhn poker as tables: H = 4, D = 6, I = 12."""
    return compile_tree(KuhnBetting(), DEALS, num_actions=2, num_entries=NUM_ENTRIES)


class KuhnPoker(PokerGame):
    """N games of Kuhn poker."""

    def __init__(self, *, num_envs: int) -> None:
        super().__init__(env_id="kuhn_poker", num_envs=num_envs, tree=kuhn_tree())
