"""The games of the benchmark of the shipped defaults, and how policies of each are judged.

Those of `GAMES` have shaped the rules. Those of `HELD_OUT` have not: they show what a game can expect that nobody
here has tried. What they show must not be mended for them alone.

No game has a setting of its own but its id, the id's kwargs, its teams and the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from benchmarks.strength.runs import ROOT
from league.envs.protocol import EnvConfig

EXACT: Final = "exact"
SCORE: Final = "score"
RETURN: Final = "return"
Judge = Literal["exact", "score", "return"]
"""NashConv of the whole game; score against bots, own past, control and a fresh exploiter; mean return of one seat."""


@dataclass(frozen=True)
class Game:
    """A game of the benchmark.

    Fields:
      env: its id and kwargs, all that a run is given.
      kinds: the field's words for it.
      judge: see `Judge`.
      bots: opponents of a game that is judged by scores.
      tuned: configuration of this repository that was tuned for this game; None for none.
      is_long: whether it is also trained for the longest budget and against half of the past.
    """

    env: EnvConfig
    kinds: tuple[str, ...]
    judge: Judge = EXACT
    bots: tuple[str, ...] = ("random",)
    tuned: Path | None = None
    is_long: bool = False

    @property
    def is_cyclic(self) -> bool:
        """True if no pure choice is best."""
        return "cyclic" in self.kinds

    @property
    def has_perfect_information(self) -> bool:
        """True if nothing is hidden and one seat acts at a time."""
        return "perfect information" in self.kinds

    @property
    def more_is_worse(self) -> bool:
        """True if a low figure is a good one."""
        return self.judge == EXACT


def _openspiel(name: str) -> EnvConfig:
    return EnvConfig(f"openspiel:{name}")


def _board_game(name: str) -> Game:
    bots = ("mcts:25", "mcts:100")
    return Game(_openspiel(name), ("turn-based", "perfect information"), judge=SCORE, bots=bots)


def _config(name: str) -> Path:
    return ROOT / "configs" / f"{name}.yaml"


GAMES: Mapping[str, Game] = {
    "unequal_stakes": Game(
        EnvConfig("rock_paper_scissors", {"stakes": [1, 2, 3]}),
        ("one-shot", "simultaneous", "cyclic"),
        tuned=_config("rock_paper_scissors"),
    ),
    "blotto": Game(_openspiel("blotto(coins=6,fields=3)"), ("one-shot", "simultaneous", "cyclic")),
    "goofspiel": Game(
        _openspiel("goofspiel(num_cards=4,points_order=descending,imp_info=true)"),
        ("simultaneous", "hidden"),
        is_long=True,
    ),
    "oshi_zumo": Game(_openspiel("oshi_zumo(coins=4,size=1,horizon=6)"), ("simultaneous", "repeated bids")),
    "sealed_auction": Game(_openspiel("first_sealed_auction(max_value=5)"), ("one decision", "hidden", "general-sum")),
    "liars_dice": Game(_openspiel("liars_dice(numdice=1,dice_sides=4)"), ("turn-based", "hidden")),
    "kuhn": Game(EnvConfig("kuhn_poker"), ("turn-based", "hidden"), tuned=_config("kuhn")),
    "leduc": Game(EnvConfig("leduc_poker"), ("turn-based", "hidden"), tuned=_config("leduc"), is_long=True),
    "kuhn_three_seats": Game(_openspiel("kuhn_poker(players=3)"), ("turn-based", "hidden", "3 seats")),
    "phantom_tic_tac_toe": Game(_openspiel("phantom_ttt"), ("turn-based", "hidden"), judge=SCORE),
    "markov_soccer": Game(
        _openspiel("markov_soccer(horizon=100)"), ("simultaneous", "long", "sparse returns"), judge=SCORE
    ),
    "rps_15_rounds": Game(
        EnvConfig("pettingzoo:classic/rps_v2"), ("simultaneous", "repeated", "dense returns"), judge=SCORE
    ),
    "tic_tac_toe": Game(
        EnvConfig("pettingzoo:classic/tictactoe_v3"),
        ("turn-based", "perfect information"),
        judge=SCORE,
        bots=("tactical", "mcts:100"),
        tuned=_config("tic_tac_toe"),
    ),
    "breakthrough": Game(
        _openspiel("breakthrough(rows=6,columns=6)"),
        ("turn-based", "perfect information", "many actions"),
        judge=SCORE,
        bots=("tactical", "mcts:25", "mcts:100"),
    ),
    "connect_four": Game(
        EnvConfig("connect_four"),
        ("turn-based", "perfect information", "sparse returns"),
        judge=SCORE,
        bots=("tactical", "mcts:25", "mcts:100"),
        tuned=_config("connect_four"),
        is_long=True,
    ),
    "othello": Game(
        EnvConfig("othello"),
        ("turn-based", "perfect information", "long"),
        judge=SCORE,
        bots=("tactical", "mcts:25"),
    ),
    "simple_tag": Game(
        EnvConfig("mpe2.simple_tag_v3:parallel_env", teams=(("adversary_*",), ("agent_*",))),
        ("simultaneous", "teams", "dense returns"),
        judge=SCORE,
    ),
    "pendulum": Game(
        EnvConfig("gymnasium:Pendulum-v1"), ("one seat", "continuous", "long", "dense returns"), judge=RETURN
    ),
    "cartpole": Game(
        EnvConfig("gymnasium:CartPole-v1"),
        ("one seat", "long", "dense returns"),
        judge=RETURN,
        tuned=_config("cartpole"),
    ),
}


HELD_OUT: Mapping[str, Game] = {
    "goofspiel_three_seats": Game(
        _openspiel("goofspiel(num_cards=3,players=3,points_order=descending,imp_info=true)"),
        ("simultaneous", "hidden", "3 seats"),
    ),
    "oshi_zumo_six_coins": Game(_openspiel("oshi_zumo(coins=6,size=2,horizon=5)"), ("simultaneous", "repeated bids")),
    "blotto_ten_coins": Game(_openspiel("blotto(coins=10,fields=3)"), ("one-shot", "simultaneous", "cyclic")),
    "liars_dice_five_sides": Game(_openspiel("liars_dice(numdice=1,dice_sides=5)"), ("turn-based", "hidden")),
    "sealed_auction_three_seats": Game(
        _openspiel("first_sealed_auction(players=3,max_value=4)"), ("one decision", "hidden", "3 seats")
    ),
    "kuhn_four_seats": Game(_openspiel("kuhn_poker(players=4)"), ("turn-based", "hidden", "4 seats")),
    "quoridor": _board_game("quoridor(board_size=3)"),
    "hex": _board_game("hex(board_size=5)"),
    "clobber": _board_game("clobber(rows=5,columns=6)"),
    "dots_and_boxes": _board_game("dots_and_boxes(num_rows=3,num_cols=3)"),
    "mancala": _board_game("mancala"),
}

SETS: Mapping[str, Mapping[str, Game]] = {"public": GAMES, "held-out": HELD_OUT}
ALL: Mapping[str, Game] = {name: game for games in SETS.values() for name, game in games.items()}


def chosen(names: str | None, known: Mapping[str, Game] = GAMES) -> Sequence[str]:
    """The games that a comma-separated list names; all of them for None.

    Raises:
      ValueError: one that is not known.
    """
    if names is None:
        return list(known)
    asked = [name.strip() for name in names.split(",")]
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"unknown games {', '.join(unknown)}; known are {', '.join(known)}")
    return asked
