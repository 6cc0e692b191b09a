"""Opens a game of a person against a contender."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from envs.protocol import EnvConfig
from league.contenders.contender import OpenConditions, UnknownContender
from league.contenders.finding import find_contenders, game_of
from league.errors import LeagueError
from league.play.session import GameSession
from league.policies.auto_export import AUTO
from league.replays.replay import SeatHolder


@contextmanager
def open_session(
    against: str,
    *,
    seat: int | None = None,
    env: EnvConfig | None = None,
    seed: int | None = None,
    greedy: bool = False,
    trust: bool = False,
) -> Iterator[GameSession]:
    """A game against a contender, closed at the end of the context.

    Args:
      against: a contender as it is written; a run alone stands for its policy to play.
      seat: of the person; None is the first.
      env: the game, for contenders that bring none.
      seed: of the game; None draws one.
      greedy: whether networks take the likeliest action.
    Raises:
      LeagueError: there is no such contender or seat. EnvError: the game cannot be made.
    """
    written = f"{against}:{AUTO}" if (Path(against) / "config.yaml").is_file() else against
    found = find_contenders([written], trust=trust)
    if len(found) != 1:
        raise UnknownContender(f"{against} stands for {len(found)} policies: name one of them.")
    (contender,) = found
    game = game_of(found, env=env)
    number = int(np.random.default_rng(seed).integers(2**31)) if seed is None else seed
    with contender.open(game, OpenConditions(seed=number, greedy=greedy)) as policy:
        place, seats = seat or 0, game.spec.num_seats
        if not 0 <= place < seats:
            raise LeagueError(f"--seat {place}: {game.env.id} has the seats 0 to {seats - 1}.")
        opponent = SeatHolder(contender.name.rpartition("/")[2], contender.identity)
        holders = [SeatHolder("you") if each == place else opponent for each in range(seats)]
        session = GameSession(game.env, [policy] * seats, seat=place, holders=holders, seed=number)
        try:
            yield session
        finally:
            session.close()
