"""Makes pools and brings policies into them: bots and anchors by name, snapshots of runs and of folders."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from envs.bots import is_own_bot, make_bot
from envs.protocol import EnvConfig
from envs.registry import spec_of
from league.config.plugin_names import outside_names
from league.config.yaml import parse_yaml
from league.contenders.stored import find_stored, trust_stored
from league.core.metagame.meta_game import own_snapshots
from league.core.state.records import BOT_PREFIX, bot_name
from league.errors import ConfigError, LeagueError
from league.policies.frozen import FrozenCopy
from league.policies.loading import frozen_copies, open_run
from league.policies.trust import require_trusted
from league.pool.core.records import BOT, PoolGame, PoolPolicy
from league.pool.core.rules import AlreadyThere, PoolRefused
from league.pool.folder import PoolFolder
from league.pool.inbox import join_copy
from league.pool.pool import Pool, PoolError, create_pool, open_pool
from league.pool.push import push_copy
from league.store.storage import Storage

_DIGEST = re.compile(r"[0-9a-f]{64}")
ALL_SNAPSHOTS = "snapshots"
"""NAME of RUN:NAME for every snapshot that the run froze and still has."""


def make_pool(
    path: Path, *, env_id: str, options: Sequence[str], anchors: Sequence[str], opening_plies: int, trust: bool
) -> str:
    """Make a pool with its anchors; returns a sentence.

    Args:
      options: "key=value" each, of the game. anchors: "BOT=ELO" each.
    Raises:
      PoolError: it cannot be made so. EnvError: the game or a bot cannot be made.
    """
    env = EnvConfig(env_id, dict(map(_option, options)))
    if not trust:
        require_trusted(outside_names({"env": {"id": env.id, "kwargs": dict(env.kwargs)}}), what="--game")
    fixed = [_anchor(text) for text in anchors]
    spec = spec_of(dataclasses.replace(env, workers=0))
    folder = PoolFolder(path)
    game = PoolGame(env_id, len(set(spec.teams)), options=dict(env.kwargs), opening_plies=opening_plies)
    create_pool(folder, game)
    with open_pool(folder, trust=trust) as pool:
        for name, elo in fixed:
            _join(pool, PoolPolicy(name, BOT, elo=elo, source="league pool init"))
    known = ", ".join(f"{name} at {elo:g}" for name, elo in fixed)
    return f"{path} is a rating pool of {env_id}, anchored by {known}."


def add_contenders(path: Path, contenders: Sequence[str], *, trust: bool) -> list[str]:
    """Have policies join; returns a sentence for each.

    Raises:
      LeagueError: one of them stands for nothing or does not fit; those before it have joined.
    """
    folder = PoolFolder(path).require()
    copies = [found for text in contenders if not text.startswith(BOT_PREFIX) for found in copies_of(text, trust=trust)]
    bots = [text for text in contenders if text.startswith(BOT_PREFIX)]
    for bot in bots:
        _require_bot(bot)
    try:
        with open_pool(folder, trust=trust) as pool:
            return [_add_bot(pool, bot) for bot in bots] + [_add_copy(pool, name, copy) for name, copy in copies]
    except PoolError:
        if bots:
            raise
        return [push_copy(folder, name, copy, storage=Storage()) for name, copy in copies]


def push(path: Path, source: str, *, trust: bool) -> list[str]:
    """Put policies into a pool's inbox, live or not; returns a sentence for each."""
    folder = PoolFolder(path).require()
    return [push_copy(folder, name, copy, storage=Storage()) for name, copy in copies_of(source, trust=trust)]


def copies_of(text: str, *, trust: bool) -> list[tuple[str, FrozenCopy]]:
    """The frozen policies that "RUN", "RUN:NAME" or a folder stands for, with their names in a pool.

    Raises:
      LeagueError: there are none.
    """
    folder, _, name = text.rpartition(":")
    if trust:
        trust_stored(text)
    if name == ALL_SNAPSHOTS and not Path(text).exists():
        run = open_run(Path(folder))
        home = run.path.resolve().name
        copies = [copy for one in own_snapshots(run.state) for copy in frozen_copies(run, run.choose(one))]
        return [(f"{home}.{_short(copy)}", copy) for copy in copies]
    found = []
    for contender in find_stored(text):
        home = contender.source.resolve().name
        found += [(home if _DIGEST.fullmatch(home) else f"{home}.{_short(copy)}", copy) for copy in contender.copies]
    return found


def _short(copy: FrozenCopy) -> str:
    """A name within its run; a restart state is named by its weights too, since it changes."""
    is_snapshot = copy.name != copy.manifest.player
    return copy.name if is_snapshot else f"{copy.name}@{copy.manifest.digest[:8]}"


def _add_bot(pool: Pool, name: str) -> str:
    _join(pool, PoolPolicy(name, BOT, source="league pool add"))
    return f"{name} joined."


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


def _anchor(text: str) -> tuple[str, float]:
    name, equals, elo = text.rpartition("=")
    name = BOT_PREFIX + bot_name(name)
    try:
        value = float(elo)
    except ValueError:
        equals = ""
    if not equals:
        raise PoolError(f"--anchor {text}: write BOT=ELO, as in bot:random=0.")
    _require_bot(name)
    return name, value


def _require_bot(name: str) -> None:
    if is_own_bot(bot_name(name)):
        raise LeagueError(
            f"{name} is code of your own: a pool, whose workers may be other machines, plays built-in bots."
        )
    make_bot(bot_name(name), seed=0)
