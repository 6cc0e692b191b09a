"""Small games made by number: symmetric ones of many kinds, and ones whose seats have roles that views do not tell.

Each family draws the payoffs, sizes and lengths of a game from its number. In a symmetric game nothing changes if all
seats swap places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Draws = np.random.Generator


class SmallGame:
    """One game. The constructor takes the draws that fix its rules; `begin` those of an episode.

    Attributes:
      seats, actions, numbers: of the game: seats, actions of each, numbers of a view.
      acting: seats that act now. over: whether the episode has ended.
    """

    seats, actions, numbers = 2, 3, 1

    def __init__(self, rules: Draws) -> None:
        self.length = int(rules.integers(1, 7))
        self.draws = rules
        self.acting = tuple(range(self.seats))
        self.round = 0

    def begin(self, draws: Draws) -> None:
        """Start an episode."""
        self.draws, self.round = draws, 0

    @property
    def over(self) -> bool:
        """True after the last round."""
        return self.round >= self.length

    def view(self, seat: int) -> list[float]:
        """The view of a seat: here the round."""
        return [float(self.round)]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Take the actions of the acting seats; returns the rewards of all."""
        raise NotImplementedError


class Contest(SmallGame):
    """Symmetric: random antisymmetric payoffs in every round, added up unseen and told at the end by their sign."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.actions = int(rules.integers(2, 7))
        payoffs = rules.integers(-3, 4, (self.length, self.actions, self.actions))
        self.payoffs = payoffs - payoffs.transpose(0, 2, 1)
        self.only_signs = bool(rules.integers(2))
        self.pays_late = bool(rules.integers(2))
        self.score = 0.0

    def begin(self, draws: Draws) -> None:
        """Forget the score too."""
        super().begin(draws)
        self.score = 0.0

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay now, or at the end."""
        won = float(self.payoffs[self.round, chosen[0], chosen[1]])
        self.round += 1
        self.score += won
        paid = (self.score if self.over else 0.0) if self.pays_late else won
        return np.array([1.0, -1.0]) * (np.sign(paid) if self.only_signs else paid)


class Hands(Contest):
    """Symmetric: a contest in which each sees what it and the other played before, itself first."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.numbers = 3
        self.last = (-1, -1)

    def begin(self, draws: Draws) -> None:
        """Nothing was played."""
        super().begin(draws)
        self.last = (-1, -1)

    def view(self, seat: int) -> list[float]:
        """Own last action first."""
        return [float(self.round), float(self.last[seat]), float(self.last[1 - seat])]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """As in a contest."""
        self.last = (chosen[0], chosen[1])
        return super().play(chosen)


class Cards(SmallGame):
    """Symmetric: each card of a hand is played once for a prize; the sign of the points is paid at the end.

    A view has the cards left to the seat, those left to the other, and the prize.
    """

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.length = self.actions = int(rules.integers(3, 7))
        self.numbers = 2 * self.length + 1
        self.hands = np.ones((2, self.length))
        self.prizes = np.arange(self.length)
        self.points = 0.0

    def begin(self, draws: Draws) -> None:
        """Deal."""
        super().begin(draws)
        self.hands[:] = 1.0
        self.prizes, self.points = draws.permutation(self.length), 0.0

    def view(self, seat: int) -> list[float]:
        """Cards and prize, but no points."""
        return [*self.hands[seat], *self.hands[1 - seat], float(self.prizes[self.round])]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """The higher card wins the prize; an action counts through the cards that are left."""
        cards = [np.flatnonzero(hand)[chosen[seat] % int(hand.sum())] for seat, hand in enumerate(self.hands)]
        self.points += float(np.sign(cards[0] - cards[1])) * (self.prizes[self.round] + 1)
        self.hands[[0, 1], cards] = 0.0
        self.round += 1
        won = float(np.sign(self.points)) if self.over else 0.0
        return np.array([won, -won])


class CommonPrize(SmallGame):
    """Symmetric: both see the same prize, which never comes again, and the higher bid wins it and pays."""

    actions = 5

    def begin(self, draws: Draws) -> None:
        """Draw a prize."""
        super().begin(draws)
        self.prize = float(draws.random())

    def view(self, seat: int) -> list[float]:
        """The prize."""
        return [self.prize]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """The higher bid wins."""
        bids = np.array([chosen[seat] for seat in range(self.seats)])
        won = (bids == bids.max()) & ((bids == bids.max()).sum() == 1)
        paid = np.where(won, self.prize - bids / self.actions, 0.0)
        self.round += 1
        self.prize = float(self.draws.random())
        return paid


class ThreeBids(CommonPrize):
    """Symmetric: the same with three seats."""

    seats = 3


class Heap(SmallGame):
    """Symmetric, in turns: a random seat begins, and who takes the last stone of a heap wins."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.size = int(rules.integers(3, 12))
        self.heap = self.size

    def begin(self, draws: Draws) -> None:
        """Draw who begins."""
        super().begin(draws)
        self.heap, self.acting = self.size, (int(draws.integers(2)),)

    @property
    def over(self) -> bool:
        """True once the heap is gone."""
        return self.heap <= 0

    def view(self, seat: int) -> list[float]:
        """The heap."""
        return [float(self.heap)]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Take one to three."""
        mover = self.acting[0]
        self.heap -= chosen[mover] + 1
        paid = np.zeros(2)
        if self.over:
            paid[mover], paid[1 - mover] = 1.0, -1.0
        self.acting = (1 - mover,)
        return paid


class Luck(SmallGame):
    """Symmetric: rare and heavy winnings of each seat by itself, whatever it does."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.chance, self.power = float(rules.choice([0.003, 0.03, 0.3])), float(rules.choice([0.0, 1.0, 3.0]))

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay by chance."""
        self.round += 1
        stakes = (1.0 + self.draws.pareto(1.5, 2)) ** self.power
        return np.where(self.draws.random(2) < self.chance, stakes, 0.0)


class Advantage(Contest):
    """Symmetric: one seat, drawn for each episode, has a hidden advantage in all of its rounds."""

    def begin(self, draws: Draws) -> None:
        """Draw who has it."""
        super().begin(draws)
        self.ahead = np.roll([2.0, -2.0], int(draws.integers(2)))

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay it on top."""
        paid: NDArray[np.float64] = super().play(chosen) + self.ahead
        return paid


class Constant(SmallGame):
    """Symmetric: every action pays the same."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.pay = float(rules.choice([0.0, 0.1, -1.0, 1e6]))

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay it."""
        self.round += 1
        return np.full(2, self.pay)


class Draw(Contest):
    """Symmetric: nearly all games are drawn."""

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay one game in fifty."""
        return super().play(chosen) * (self.draws.random() < 0.02)


class Pennies(SmallGame):
    """Roles: one seat wants equal actions, the other unequal ones, with noise on each payoff; both see the round."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.actions, self.noise = int(rules.integers(2, 4)), float(rules.choice([0.0, 0.5, 1.0]))

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay the first seat where both chose the same."""
        self.round += 1
        won = (1.0 if chosen[0] == chosen[1] else -1.0) + self.noise * self.draws.normal()
        return np.array([won, -won])


class HiddenPennies(Pennies):
    """Roles: the same beside a number that both see and that never comes again."""

    def begin(self, draws: Draws) -> None:
        """Draw a number."""
        super().begin(draws)
        self.number = float(draws.random())

    def view(self, seat: int) -> list[float]:
        """The number, the same for both."""
        return [self.number]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Draw another."""
        self.number = float(self.draws.random())
        return super().play(chosen)


class Tax(SmallGame):
    """Roles: the second seat pays for one of the actions, which is free for the first."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.tax = float(rules.uniform(0.6, 1.5))

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """A prize by chance, less the tax."""
        self.round += 1
        paid = self.draws.normal(size=2)
        paid[1] -= self.tax * (chosen[1] == 0)
        return paid


class Pursuit(SmallGame):
    """Roles: one seat chases the other on a ring; both see both places, first the hunter's."""

    numbers = 2

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.ring, self.length = int(rules.integers(4, 9)), int(rules.integers(4, 12))
        self.places = [0, 0]

    def begin(self, draws: Draws) -> None:
        """Draw the places."""
        super().begin(draws)
        self.places = draws.integers(self.ring, size=2).tolist()

    def view(self, seat: int) -> list[float]:
        """Both places."""
        return [float(place) for place in self.places]

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Move left, stay or move right; a catch pays the hunter."""
        self.round += 1
        self.places = [(place + chosen[seat] - 1) % self.ring for seat, place in enumerate(self.places)]
        caught = self.places[0] == self.places[1]
        return np.array([1.0, -1.0]) * caught


class Tracks(SmallGame):
    """Roles: each drives a point of its own along a line, and wins by being ahead; both see the same two numbers."""

    numbers = 2

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.length = int(rules.integers(4, 12))
        self.places = np.zeros(2)

    def begin(self, draws: Draws) -> None:
        """Draw the places."""
        super().begin(draws)
        self.places = draws.normal(size=2)

    def view(self, seat: int) -> list[float]:
        """Both places."""
        return self.places.tolist()

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Move; the one that is ahead at the end wins."""
        self.round += 1
        self.places = self.places + 0.3 * np.array([chosen[0] - 1, chosen[1] - 1]) + 0.1 * self.draws.normal(size=2)
        ahead = np.sign(self.places[0] - self.places[1]) if self.over else 0.0
        return np.array([ahead, -ahead])


class Scales(Luck):
    """Roles: the second seat earns a thousandth."""

    def __init__(self, rules: Draws) -> None:
        super().__init__(rules)
        self.chance, self.power = 0.5, 0.0

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """Pay by chance."""
        paid = super().play(chosen)
        paid[1] *= 1e-3
        return paid


class Tagger(SmallGame):
    """Roles: two seats win by choosing what the third did not; all see the round."""

    seats = 3

    def play(self, chosen: Mapping[int, int]) -> NDArray[np.float64]:
        """The third wins by a hit."""
        self.round += 1
        hits = sum(chosen[seat] == chosen[2] for seat in (0, 1))
        return np.array([*(1.0 if chosen[seat] != chosen[2] else -1.0 for seat in (0, 1)), float(hits)])


SYMMETRIC: Mapping[str, Callable[[Draws], SmallGame]] = {
    "contest": Contest,
    "hands": Hands,
    "cards": Cards,
    "common_prize": CommonPrize,
    "three_bids": ThreeBids,
    "heap": Heap,
    "luck": Luck,
    "advantage": Advantage,
    "constant": Constant,
    "draw": Draw,
}
ROLES: Mapping[str, Callable[[Draws], SmallGame]] = {
    "pennies": Pennies,
    "hidden_pennies": HiddenPennies,
    "tax": Tax,
    "pursuit": Pursuit,
    "tracks": Tracks,
    "scales": Scales,
    "tagger": Tagger,
}
"""Family -> its class."""
