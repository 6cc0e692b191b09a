"""Games of the newest policies of a run, one after the other, while it trains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from league.core.metagame.meta_game import own_snapshots
from league.judge.recording.recorder import record_game
from league.judge.recording.replay import Replay, SeatHolder
from league.policies.loading import OpenRun, load_from_run, open_run
from league.policies.select import UnknownPolicy


@dataclass(frozen=True)
class WatchedGame:
    """One game. trained_steps: of the policy on each team, as far as is known."""

    replay: Replay
    trained_steps: tuple[int | None, ...]


def newest_game(path: Path, *, seed: int, players: tuple[str, ...] = ()) -> WatchedGame:
    """One game between policies of a run, as they are now.

    Args:
      seed: of the game and of the choice of players.
      players: names of policies, one for each team or fewer; drawn from the players of the league by default.
    Raises:
      UnknownPolicy: none is saved yet. LeagueError: the run cannot be read. EnvError: its game cannot be played.
    """
    run = open_run(path)
    rng = np.random.default_rng([seed, 2])
    teams = tuple(dict.fromkeys(run.spec.teams))
    names = players or _drawn(run, len(teams), rng)
    chosen = [names[place % len(names)] for place in range(len(teams))]
    loaded = {name: load_from_run(run, name, seed=seed) for name in dict.fromkeys(chosen)}
    policies = {name: policy.as_seat_policy() for name, policy in loaded.items()}
    holder = dict(zip(teams, chosen, strict=True))
    seats = [holder[team] for team in run.spec.teams]
    replay = record_game(
        run.env,
        [policies[name] for name in seats],
        seed,
        seats=[SeatHolder(loaded[name].name, source=run.path.name) for name in seats],
        tags={"kind": "watched"},
    )
    return WatchedGame(replay, tuple(_trained(run, name) for name in chosen))


def watch(path: Path, *, seed: int, players: tuple[str, ...] = ()) -> Iterator[WatchedGame]:
    """Games without end, each with the policies as they are when it begins. Arguments and errors as `newest_game`."""
    while True:
        yield newest_game(path, seed=seed, players=players)
        seed += 1


def _drawn(run: OpenRun, count: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Players that have something saved, in random order, a main agent among them where there is one."""
    frozen = {run.state.snapshots[name].player for name in own_snapshots(run.state)}
    saved = [name for name, player in run.state.players.items() if player.checkpoint is not None or name in frozen]
    if not saved:
        raise UnknownPolicy(f"{run.path} has saved no policy yet: try again in a minute.")
    mains = [name for name in saved if run.state.players[name].role == "main_agent"] or saved
    first = mains[int(rng.integers(len(mains)))]
    others = [name for name in saved if name != first] or [first]
    names = [first, *(others[int(rng.integers(len(others)))] for _ in range(count - 1))]
    return tuple(names[place] for place in rng.permutation(count))


def _trained(run: OpenRun, name: str) -> int | None:
    player = run.state.players.get(name)
    if player is None or player.checkpoint is None:
        return None
    return player.checkpoint.trained_steps
