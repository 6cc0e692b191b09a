"""Makes pools and brings policies into them: bots and anchors by name, snapshots of runs and of folders."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from league.config.contender_names import split_source
from league.config.plugin_names import absolute_game, outside_names
from league.config.yaml import parse_yaml
from league.core.metagame.meta_game import own_snapshots
from league.core.state.records import BOT_PREFIX, bot_name
from league.envs.bots import is_own_bot, make_bot
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.envs.seat_plan import SeatPlan
from league.errors import ConfigError, LeagueError
from league.judge.contenders.contender import Game, plain_game
from league.judge.contenders.finding import CONTENDERS, find_contenders, require_playable
from league.judge.contenders.own_policies import OwnContender
from league.judge.contenders.stored import find_stored
from league.judge.pools.core.records import BOT, OUTSIDE, PoolGame, PoolPolicy
from league.judge.pools.core.rules import AlreadyThere, PoolRefused
from league.judge.pools.folder import PoolFolder
from league.judge.pools.inbox import join_copy
from league.judge.pools.play import env_of
from league.judge.pools.pool import Pool, PoolError, PoolInUse, create_pool, open_pool
from league.judge.pools.push import push_copy
from league.policies.frozen import FrozenCopy
from league.policies.loading import frozen_copies, open_run
from league.policies.trust import is_trusted, require_trusted
from league.store.storage import Storage

_DIGEST = re.compile(r"[0-9a-f]{64}")
MADE, ADDED = "league pool init", "league pool add"
OUTSIDE_KINDS = frozenset(CONTENDERS) - {"bot"}
"""Kinds of contenders that are in no folder of ours."""
ALL_SNAPSHOTS = "snapshots"
"""NAME of RUN:NAME for every snapshot that the run froze and still has."""


def make_pool(path: Path, *, env_id: str, options: Sequence[str], anchors: Sequence[str], opening_plies: int) -> str:
    """Make a pool with its anchors; returns a sentence.

    Args:
      env_id: of the game; or a run, a snapshot's folder or a package, whose game and planned seats it is.
      options: "key=value" each, of the game. anchors: "BOT=ELO" each; also an engine or a served policy.
    Raises:
      PoolError: it cannot be made so. EnvError: the game or a bot cannot be made.
    """
    env = _game_of(env_id, dict(map(_option, options)))
    spec = spec_of(dataclasses.replace(env, workers=0))
    fixed = [_anchor(text, Game(env, spec)) for text in anchors]
    folder = PoolFolder(path)
    seats = msgspec.json.decode(msgspec.json.encode(SeatPlan.of(env).plain()))  # as the journal gives them back
    game = PoolGame(env.id, spec.num_teams, options=dict(env.kwargs), opening_plies=opening_plies, seats=seats)
    create_pool(folder, game)
    with open_pool(folder) as pool:
        for anchor in fixed:
            _join(pool, anchor)
    known = ", ".join(f"{anchor.name} at {anchor.elo:g}" for anchor in fixed)
    return f"{path} is a rating pool of {env.id}, anchored by {known}."


def _game_of(written: str, options: dict[str, object]) -> EnvConfig:
    """The game that is named, or that of a folder with policies."""
    if Path(written).is_dir():
        game = find_stored(written)[0].game
        if game is None:
            raise LeagueError(f"{written} names no game: give the id of one to --game.")
        env = game.env
        return dataclasses.replace(env, kwargs={**env.kwargs, **options}, workers=0)
    env = EnvConfig(absolute_game(written, (Path.cwd(),)), options)
    if not is_trusted(written):
        require_trusted(outside_names({"env": {"id": env.id, "kwargs": dict(env.kwargs)}}), what="--game")
    return env


def add_contenders(path: Path, contenders: Sequence[str]) -> list[str]:
    """Have policies join; returns a sentence for each.

    Raises:
      LeagueError: one of them stands for nothing or does not fit; those before it have joined.
    """
    folder = PoolFolder(path).require()
    outside = [text for text in contenders if is_outside(text)]
    stored = [text for text in contenders if not text.startswith(BOT_PREFIX) and text not in outside]
    copies = [found for text in stored for found in copies_of(text)]
    bots = [text for text in contenders if text.startswith(BOT_PREFIX)]
    for bot in bots:
        _require_bot(bot)
    try:
        with open_pool(folder) as pool:
            game = Game(env_of(pool.game), pool.spec)
            joined = [_add_named(pool, PoolPolicy(bot, BOT, source=ADDED)) for bot in bots]
            joined += [_add_named(pool, _outside(text, game, source=ADDED)) for text in outside]
            return joined + [_add_copy(pool, name, copy) for name, copy in copies]
    except PoolInUse:
        if bots or outside:
            raise
        return [push_copy(folder, name, copy, storage=Storage()) for name, copy in copies]


def push(path: Path, source: str) -> list[str]:
    """Put policies into a pool's inbox, live or not; returns a sentence for each."""
    folder = PoolFolder(path).require()
    return [push_copy(folder, name, copy, storage=Storage()) for name, copy in copies_of(source)]


def copies_of(text: str) -> list[tuple[str, FrozenCopy]]:
    """The frozen policies that "RUN", "RUN:NAME" or a folder stands for, with their names in a pool.

    Raises:
      LeagueError: there are none.
    """
    folder, name = split_source(text)
    if name == ALL_SNAPSHOTS:
        run = open_run(folder)
        home = run.path.resolve().name
        copies = [copy for one in own_snapshots(run.state) for copy in frozen_copies(run, run.choose(one))]
        return [(f"{home}.{_short(copy)}", copy) for copy in copies]
    found = []
    for contender in find_stored(text):
        if isinstance(contender, OwnContender):
            raise LeagueError(
                f"{contender.name} is of a trainer of your own: a pool keeps networks of League; `league tournament` "
                "plays it."
            )
        home = contender.source.resolve().name
        found += [(home if _DIGEST.fullmatch(home) else f"{home}.{_short(copy)}", copy) for copy in contender.copies]
    return found


def _short(copy: FrozenCopy) -> str:
    """A name within its run; a restart state is named by its weights too, since it changes."""
    is_snapshot = copy.name != copy.manifest.player
    return copy.name if is_snapshot else f"{copy.name}@{copy.manifest.digest[:8]}"


def is_outside(written: str) -> bool:
    """True for an engine or a served policy."""
    return written.partition(":")[0] in OUTSIDE_KINDS


def _outside(written: str, game: Game, *, source: str) -> PoolPolicy:
    """An engine or a served policy, which can play the game here."""
    found = find_contenders([written])
    require_playable(found, plain_game(game.env, game.spec))
    return PoolPolicy(written, OUTSIDE, source=source, identity=found[0].identity)


def _add_named(pool: Pool, policy: PoolPolicy) -> str:
    _join(pool, policy)
    return f"{policy.name} joined."


def _add_copy(pool: Pool, name: str, copy: FrozenCopy) -> str:
    try:
        join_copy(copy, name, pool.spec, pool.store, join=pool.join, source=Path(name))
    except AlreadyThere as error:
        return f"{error}: nothing was added."
    except PoolRefused as error:
        raise PoolError(f"{error}.") from error
    return f"{name} joined."


def _join(pool: Pool, policy: PoolPolicy) -> None:
    try:
        pool.join(policy)
    except PoolRefused as error:
        raise PoolError(f"{error}.") from error


def _option(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise PoolError(f"--set {text}: write KEY=VALUE, an option of the game.")
    try:
        return key, parse_yaml(value, source=f"--set {key}")
    except ConfigError as error:
        raise PoolError(f"--set {text}: {error.problems[0]}.") from error


def _anchor(text: str, game: Game) -> PoolPolicy:
    name, equals, elo = text.rpartition("=")
    try:
        value = float(elo)
    except ValueError:
        equals = ""
    if not equals:
        raise PoolError(f"--anchor {text}: write BOT=ELO, as in bot:random=0.")
    if is_outside(name):
        return dataclasses.replace(_outside(name, game, source=MADE), elo=value)
    name = BOT_PREFIX + bot_name(name)
    _require_bot(name)
    return PoolPolicy(name, BOT, elo=value, source=MADE)


def _require_bot(name: str) -> None:
    if is_own_bot(bot_name(name)):
        raise LeagueError(
            f"{name} is code of your own: a pool, whose workers may be other machines, plays built-in bots."
        )
    make_bot(bot_name(name), seed=0)
