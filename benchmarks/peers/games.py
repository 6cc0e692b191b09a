"""The games that League and its peers learn, and how the trained policies of each are judged.

No game has a setting of its own but its id, the id's kwargs and the budget. All are held out of the fitting of
defaults, or are named there as public games; none is tuned here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from league.envs.protocol import EnvConfig

LADDER: Final = "ladder"
EXACT: Final = "exact"
RETURN: Final = "return"
Judge = Literal["ladder", "exact", "return"]
"""The level on a ladder of searches; NashConv of the whole game; mean return of one seat."""

RANDOM, TACTICAL = "random", "tactical"
RANDOM_SIMULATIONS = 1
"""A search of one simulation tries one move at random: random play is the lowest rung of the ladder."""
RUNGS = (25, 100, 400, 1600, 6400)


@dataclass(frozen=True)
class Game:
    """A game of the table.

    Fields:
      env: its id and kwargs, all that a League run is given.
      judge: see `Judge`.
      spiel: the same game in OpenSpiel, with equal numbers of actions, whose search climbs the ladder.
      original: "module:function" that makes it where the game comes from PettingZoo or Gymnasium; else League
        shows its own game as a PettingZoo env.
      top: simulations of the highest rung; a search of a long game is dear.
      has_tactical: whether the bot `tactical` plays it: copies of a game from PettingZoo are dear.
    """

    env: EnvConfig
    judge: Judge = LADDER
    spiel: str = ""
    original: str = ""
    top: int = RUNGS[-1]
    has_tactical: bool = True

    @property
    def more_is_worse(self) -> bool:
        """True where a low figure is a good one."""
        return self.judge == EXACT

    @property
    def rungs(self) -> tuple[int, ...]:
        """Simulations of the searches of its ladder, rising."""
        return tuple(rung for rung in RUNGS if rung <= self.top)


def _openspiel(name: str, judge: Judge = LADDER) -> Game:
    return Game(EnvConfig(f"openspiel:{name}"), judge, spiel=name)


GAMES: Mapping[str, Game] = {
    "connect_four": Game(EnvConfig("connect_four"), spiel="connect_four"),
    "hex": _openspiel("hex(board_size=5)"),
    "leduc": _openspiel("leduc_poker", EXACT),
    "cartpole": Game(EnvConfig("gymnasium:CartPole-v1"), RETURN, original="gymnasium:CartPole-v1"),
    "connect_four_pettingzoo": Game(
        EnvConfig("pettingzoo:classic/connect_four_v3"),
        spiel="connect_four",
        original="pettingzoo.classic.connect_four_v3:env",
        has_tactical=False,
    ),
    "clobber": _openspiel("clobber(rows=5,columns=6)"),
    "y": _openspiel("y(board_size=5)"),
    "goofspiel": _openspiel("goofspiel(num_cards=4,points_order=descending,imp_info=true)", EXACT),
    "othello": Game(EnvConfig("othello"), spiel="othello", top=400),
}
