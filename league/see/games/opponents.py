"""Opens a game of a person against a contender."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from league.envs.protocol import EnvConfig, EnvSpec
from league.errors import LeagueError
from league.judge.contenders.contender import OpenConditions, UnknownContender
from league.judge.contenders.finding import find_contenders, game_of
from league.judge.recording.replay import SeatHolder
from league.policies.auto_export import AUTO
from league.see.games.session import GameSession


@contextmanager
def open_session(
    against: str,
    *,
    seat: int | str | None = None,
    env: EnvConfig | None = None,
    seed: int | None = None,
    greedy: bool = False,
    search: int = 0,
) -> Iterator[GameSession]:
    """A game against a contender, closed at the end of the context.

    Args:
      against: a contender as it is written; a run alone stands for its policy to play.
      seat: of the person, as for `seat_of`; None is the first.
      env: the game, for contenders that bring none.
      seed: of the game; None draws one.
      greedy: whether networks take the likeliest action. search: their simulations before each move; 0 for none.
    Raises:
      LeagueError: there is no such contender or seat. EnvError: the game cannot be made.
    """
    written = f"{against}:{AUTO}" if (Path(against) / "config.yaml").is_file() else against
    found = find_contenders([written])
    if len(found) != 1:
        raise UnknownContender(f"{against} stands for {len(found)} policies: name one of them.")
    (contender,) = found
    game = game_of(found, env=env)
    number = int(np.random.default_rng(seed).integers(2**31)) if seed is None else seed
    with contender.open(game, OpenConditions(seed=number, greedy=greedy, search=search)) as policy:
        place, seats = 0 if seat is None else seat_of(seat, game.spec), game.spec.num_seats
        opponent = SeatHolder(contender.name.rpartition("/")[2], contender.identity)
        holders = [SeatHolder("you") if each == place else opponent for each in range(seats)]
        hides = None if game.kind is None else game.kind.hides
        session = GameSession(game.env, [policy] * seats, seat=place, holders=holders, seed=number, hides=hides)
        try:
            yield session
        finally:
            session.close()


def seat_of(written: int | str, spec: EnvSpec) -> int:
    """The seat of a name that the game gives it, or of a number from 0.

    Raises:
      LeagueError: the game has no such seat.
    """
    text = str(written).strip()
    if text in spec.seat_names:
        return spec.seat_names.index(text)
    if text.isdecimal() and int(text) < spec.num_seats:
        return int(text)
    named = f", or {', '.join(spec.seat_names)}" if spec.seat_names else ""
    raise LeagueError(f"--seat {text}: {spec.env_id} has the seats 0 to {spec.num_seats - 1}{named}.")
