"""The kind of a game, as far as it can be known. It decides which policy of a run is the one to play."""

from __future__ import annotations

from contextlib import closing
from enum import Enum

from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import BUILT_IN, make

KNOWN_PREFIXES = ("openspiel:",)
"""Ids whose adapters say whether information is hidden."""


class GameKind(Enum):
    """A kind of game: what its seats see, and when they move."""

    PERFECT = "one seat moves at a time and sees everything"
    AT_ONCE = "seats move at once"
    OTHER = "information is hidden, or that is not known"


def game_kind(env: EnvConfig, spec: EnvSpec) -> GameKind:
    """The kind of a game.

    PettingZoo and an env of the user's own cannot say that they hide nothing. They count as `OTHER`: what is hard to
    exploit is hardly weaker, while the strongest may be easy to exploit.

    Raises:
      EnvError: it cannot be made.
    """
    with closing(make(env, num_envs=1)) as game:
        at_once = len(game.reset(0).env_index) > 1
    if at_once:
        return GameKind.AT_ONCE
    says = env.id in BUILT_IN or env.id.startswith(KNOWN_PREFIXES)
    return GameKind.PERFECT if says and not spec.hidden_information else GameKind.OTHER
