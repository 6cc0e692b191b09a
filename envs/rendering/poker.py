"""Renderers of Kuhn and Leduc poker: the cards that a seat may see, the actions so far and the chips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from league.envs.games import kuhn, leduc
from league.envs.games.poker import Deal
from league.envs.protocol import EnvSpec
from league.envs.rendering.drawing import INK, SEAT_COLOURS, Drawing, Label, Rect, Shape
from league.envs.rendering.renderer import Actions, Moment, Scene

KUHN_CARDS = ("J", "Q", "K")
LEDUC_CARDS = tuple(rank + suit for rank in "JQK" for suit in "sh")
HIDDEN = "?"
WIDTH = 400.0


@dataclass(frozen=True)
class Hand:
    """A game in progress.

    Fields:
      deal: the cards of both seats, then the public ones.
      betting: the situation. said: (seat, action) of every action so far, with the word for it.
    """

    deal: Deal
    betting: kuhn.KuhnBetting | leduc.LeducBetting
    said: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class _View:
    """The parts of a game that are shown. lines: of actions. ending: empty while the game lasts."""

    own: tuple[str, str]
    public: str | None
    chips: tuple[int, int]
    lines: tuple[str, ...]
    ending: str


class PokerRenderer:
    """A table of two seats; a subclass knows the cards, the words and the chips of its game."""

    cards: Sequence[str]

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec

    def begin(self, moment: Moment) -> Hand:
        """See `Renderer`; the cards are read from the env's saved state."""
        saved: dict[str, Any] = moment.env.save()  # type: ignore[attr-defined]
        return self._start(int(saved["deal"][moment.game]))

    def after(self, state: Hand, actions: Actions, moment: Moment) -> Hand:
        del moment
        ((seat, action),) = actions.items()
        word = self.action_name(state, seat, action)
        return replace(state, betting=state.betting.after(int(action)), said=(*state.said, (seat, word)))

    def scene(self, state: Hand, *, seat: int | None = None) -> Scene:
        """See `Renderer`; a seat sees the other's card only where both were shown at the end."""
        view = self._view(state, seat)
        rows = [
            f"{name}: card {card}, {chips} in the pot"
            for name, card, chips in zip(self._spec.seat_names, view.own, view.chips, strict=True)
        ]
        board = [] if view.public is None else [f"board: {view.public}"]
        text = "\n".join([*board, *rows, *view.lines, view.ending or f"{self._to_move(state)} to act"])
        return Scene(text, self._drawing(state, view))

    def action_name(self, state: Hand, seat: int, action: Any) -> str:
        raise NotImplementedError

    def _start(self, deal: int) -> Hand:
        raise NotImplementedError

    def _chips(self, state: Hand) -> tuple[int, int]:
        raise NotImplementedError

    def _public(self, state: Hand) -> str | None:
        """The public card as it is shown; None in games without one."""
        raise NotImplementedError

    def _folded(self, state: Hand) -> bool:
        raise NotImplementedError

    def _rounds(self, state: Hand) -> list[tuple[tuple[int, str], ...]]:
        return [state.said]

    def _to_move(self, state: Hand) -> str:
        assert state.betting.seat is not None
        return self._spec.seat_names[state.betting.seat]

    def _view(self, state: Hand, seat: int | None) -> _View:
        over = state.betting.seat is None
        shown = seat is None or (over and not self._folded(state))
        first, second = (self.cards[state.deal[each]] if shown or each == seat else HIDDEN for each in (0, 1))
        names = self._spec.seat_names
        lines = tuple(", ".join(f"{names[by]} {word}" for by, word in said) for said in self._rounds(state) if said)
        return _View((first, second), self._public(state), self._chips(state), lines, self._ending(state))

    def _ending(self, state: Hand) -> str:
        if state.betting.seat is not None:
            return ""
        won = state.betting.payoff(state.deal)
        if won == 0:
            return "the pot is split"
        return f"{self._spec.seat_names[int(won < 0)]} wins {abs(won):g}"

    def _drawing(self, state: Hand, view: _View) -> Drawing:
        shapes: list[Shape] = [Rect(0, 0, WIDTH, 170, "#0f5132", radius=12)]
        for seat, card in enumerate(view.own):
            x = 70.0 + 260.0 * seat
            active = state.betting.seat == seat
            shapes += _card(x, 60, card, border=SEAT_COLOURS[1] if active else INK)
            name = self._spec.seat_names[seat] + (" (to act)" if active else "")
            shapes.append(Label(x, 118, name, 14, "#ffffff"))
            shapes.append(Label(x, 142, f"{view.chips[seat]} in the pot", 14, "#ffffff"))
        if view.public is not None:
            shapes += _card(WIDTH / 2, 60, view.public, border=INK)
            shapes.append(Label(WIDTH / 2, 118, "board", 14, "#ffffff"))
        lines = [*view.lines, *([view.ending] if view.ending else [])]
        shapes += [Label(WIDTH / 2, 190 + 22 * row, line, _size(line)) for row, line in enumerate(lines)]
        return Drawing(WIDTH, 190 + 22 * 4, tuple(shapes))


class KuhnRenderer(PokerRenderer):
    """Three cards, one each."""

    cards = KUHN_CARDS

    def action_name(self, state: Hand, seat: int, action: Any) -> str:
        """See `Renderer`: a pass against a bet is a fold, a bet against a bet a call."""
        del seat
        assert isinstance(state.betting, kuhn.KuhnBetting)
        against = kuhn.BET in state.betting.history
        if int(action) == kuhn.BET:
            return "call" if against else "bet"
        return "fold" if against else "check"

    def _start(self, deal: int) -> Hand:
        return Hand(kuhn.DEALS[deal], kuhn.KuhnBetting())

    def _chips(self, state: Hand) -> tuple[int, int]:
        assert isinstance(state.betting, kuhn.KuhnBetting)
        bets = [1, 1]
        for place, action in enumerate(state.betting.history):
            bets[place % 2] += action == kuhn.BET
        return bets[0], bets[1]

    def _public(self, state: Hand) -> None:
        return None

    def _folded(self, state: Hand) -> bool:
        assert isinstance(state.betting, kuhn.KuhnBetting)
        return state.betting.history in ((kuhn.BET, kuhn.PASS), (kuhn.PASS, kuhn.BET, kuhn.PASS))


class LeducRenderer(PokerRenderer):
    """Six cards, one each and one public; s and h are the suits."""

    cards = LEDUC_CARDS

    def action_name(self, state: Hand, seat: int, action: Any) -> str:
        """See `Renderer`: a call of nothing is a check."""
        del seat
        assert isinstance(state.betting, leduc.LeducBetting)
        if int(action) == leduc.CALL and state.betting.stakes[0] == state.betting.stakes[1]:
            return "check"
        return {leduc.FOLD: "fold", leduc.CALL: "call", leduc.RAISE: "raise"}[int(action)]

    def _start(self, deal: int) -> Hand:
        return Hand(leduc.DEALS[deal], leduc.LeducBetting())

    def _chips(self, state: Hand) -> tuple[int, int]:
        assert isinstance(state.betting, leduc.LeducBetting)
        return state.betting.stakes

    def _public(self, state: Hand) -> str:
        assert isinstance(state.betting, leduc.LeducBetting)
        return LEDUC_CARDS[state.deal[2]] if state.betting.second_round else HIDDEN

    def _folded(self, state: Hand) -> bool:
        assert isinstance(state.betting, leduc.LeducBetting)
        return state.betting.folded is not None

    def _rounds(self, state: Hand) -> list[tuple[tuple[int, str], ...]]:
        assert isinstance(state.betting, leduc.LeducBetting)
        first = len(state.betting.rounds[0])
        return [state.said[:first], state.said[first:]]


def _card(x: float, y: float, text: str, *, border: str) -> list[Shape]:
    fill = "#8c2131" if text == HIDDEN else "#ffffff"
    colour = "#ffffff" if text == HIDDEN else SEAT_COLOURS[0] if text.endswith("h") else INK
    return [
        Rect(x - 26, y - 38, 52, 76, fill, stroke=border, stroke_width=3, radius=6),
        Label(x, y, text, 26, colour),
    ]


def _size(line: str) -> float:
    """The largest size of letters, at most 14, at which a line fits the table."""
    return min(14.0, WIDTH / (0.62 * max(len(line), 1)))
