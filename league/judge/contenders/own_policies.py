"""Contenders of a trainer of the user's own: its files, played by the code that its `league.League` names as loader.

A loader is a class or function that is called with (path, seed=...) and returns a bot, see `league.envs.bots.Bot`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from league.agents.acting.policy import BotPolicy, Policy
from league.envs.bots import make_own_bot
from league.judge.contenders.contender import Game, OpenConditions
from league.policies.frozen import FrozenCopy
from league.policies.loaded_policy import MixtureSeatPolicy


@dataclass(frozen=True)
class OwnContender:
    """A snapshot of such a trainer, or a mixture of several.

    Fields:
      name, identity, reason, game, copies: as of `Contender`; there are no weights that another network could take.
      loader: name of the code.
      members: (weight, path of its file) each.
    """

    name: str
    identity: str
    reason: str
    game: Game | None
    loader: str
    members: tuple[tuple[float, str], ...]
    copies: tuple[FrozenCopy, ...] = ()

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        bots = [
            (weight, BotPolicy(make_own_bot(self.loader, Path(path), seed=conditions.seed)))
            for weight, path in self.members
        ]
        yield bots[0][1] if len(bots) == 1 else MixtureSeatPolicy(bots)
