"""Finds contenders by their written names, and the one game that they all play."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from league import higher_wings
from league.agents.acting.policy import ActInputs
from league.config.contender_names import PROGRAMS, is_folder, runs_outside_code
from league.core.state.records import BOT_PREFIX
from league.envs.plugins import load
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import make, spec_of
from league.judge.contenders.contender import (
    Contender,
    Fallible,
    Finder,
    Game,
    OpenConditions,
    UnknownContender,
    plain_game,
)
from league.judge.contenders.stored import find_stored
from league.policies.policy_store import spec_hash

CONTENDERS: Mapping[str, str] = {
    "bot": "league.judge.contenders.bots:find_bot",
    "uci": "league.judge.contenders.uci:find_uci",
    "gtp": "league.judge.contenders.gtp:find_gtp",
    **higher_wings.CONTENDERS,
}
"""Kind, the word before the first colon -> "module:attribute" of its `Finder`; anything else is a folder."""


def find_contenders(written: Sequence[str]) -> tuple[Contender, ...]:
    """The contenders that names stand for, in their order; a folder of snapshots stands for all of them.

    Args:
      written: `RUN:NAME`, a folder of a snapshot, of several or of an exported policy, or one of `CONTENDERS`.
    Raises:
      LeagueError: a name stands for nothing, or two for the same. EnvError: no such bot, or a game cannot be made.
    """
    found: list[Contender] = []
    for text in written:
        found.extend(finder_of(text)(text))
    names = [contender.name for contender in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnknownContender(f"{twice} is named twice: name each contender once.")
    return tuple(found)


def finder_of(written: str) -> Finder:
    """The finder for a written contender."""
    kind = _kind_of(written)
    return find_stored if kind is None else cast(Callable[[str], tuple[Contender, ...]], load(CONTENDERS[kind]))


def _kind_of(written: str) -> str | None:
    kind, colon, _ = written.partition(":")
    return kind if colon and kind in CONTENDERS else None


def runs_a_program(written: str) -> bool:
    """True if a written contender is a program or a bot of the user's own, which runs as soon as it is found."""
    kind = _kind_of(written)
    return kind in PROGRAMS or (kind == "bot" and runs_outside_code(written))


def with_bot_prefix(written: str) -> str:
    """A contender as a configuration names it, where `tactical` stands for `bot:tactical`, as this room writes it."""
    return written if _kind_of(written) is not None or is_folder(written) else BOT_PREFIX + written


def game_of(contenders: Sequence[Contender], *, env: EnvConfig | None = None) -> Game:
    """The game of all contenders.

    Args:
      env: the game to play, for contenders that bring none; else that of the first who brings one.
    Raises:
      UnknownContender: nobody brings a game and none is given, or two are of different games; one sentence.
      EnvError: it cannot be made.
    """
    games = [(one, one.game) for one in contenders if one.game is not None]
    if env is None and not games:
        raise UnknownContender("no contender brings a game: give one with --env, such as --env connect_four.")
    game = games[0][1] if env is None else plain_game(env, spec_of(replace(env, workers=0)))
    for one, own in games:
        if shape_of(own.spec) != shape_of(game.spec):
            first = games[0][0].name if env is None else "--env"
            raise UnknownContender(
                f"{one.name} plays {own.env.id} and {first} plays {game.env.id}, which differ in seats, teams,"
                " observations, actions or the mask: all contenders must be of one game."
            )
    return game


def remarks_on(contenders: Sequence[Contender], game: Game) -> tuple[str, ...]:
    """One sentence on each contender whose game is called or set otherwise, and on those of the same weights."""
    notes = []
    seen: dict[str, str] = {}
    for one in contenders:
        if one.game is not None and (one.game.env.id, one.game.env.kwargs) != (game.env.id, game.env.kwargs):
            notes.append(
                f"{one.name} was trained on {one.game.env.id} {one.game.env.kwargs or ''}".rstrip()
                + f" and plays {game.env.id} {game.env.kwargs or ''}".rstrip()
                + " here, which has the same observations and actions"
            )
        if one.identity in seen:
            notes.append(f"{one.name} and {seen[one.identity]} are the same policy")
        seen.setdefault(one.identity, one.name)
    return tuple(notes)


def shape_of(spec: EnvSpec) -> tuple[str, tuple[int, ...]]:
    """The facts of a game in which two policies must agree to meet: what networks must fit, and the teams."""
    places = {team: number for number, team in enumerate(dict.fromkeys(spec.teams))}
    return spec_hash(spec), tuple(places[team] for team in spec.teams)


def require_playable(contenders: Sequence[Contender], game: Game, *, search: int = 0) -> None:
    """Ask every contender for one move, so that one who cannot play is named before the first game.

    search: see `OpenConditions`.
    Raises:
      LeagueError, EnvError: it cannot play.
    """
    env = make(replace(game.env, workers=0), num_envs=1)
    try:
        turn = env.reset(0)
        slots = np.arange(1)
        for contender in contenders:
            with contender.open(game, OpenConditions(seed=0, greedy=True, search=search)) as policy:
                core = np.zeros((1, int(getattr(policy, "core_size", 0))), np.float32)
                policy.act(ActInputs(env, turn, slots, core, [[]]), np.random.default_rng(0))
                if isinstance(policy, Fallible) and policy.failed_games():
                    raise UnknownContender(f"{contender.name} cannot play {game.env.id}: it {policy.last_failure}.")
    finally:
        env.close()
