"""Engines in a pool: they join by their identity and play where they are found; a worker without one has other work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.judge.contenders.finding import find_contenders
from league.judge.pools.core.records import OUTSIDE, PoolPolicy
from league.judge.pools.folder import PoolFolder
from league.judge.pools.members import add_contenders, make_pool
from league.judge.pools.pool import PoolError, open_pool
from league.judge.pools.run import run_here
from league.judge.pools.service.client import PoolClient
from league.judge.pools.service.run_command import Listening, serving, work
from league.policies.trust import trust_places
from tests.league.judge.contenders.fake_engines import GTP, made

TOKEN = "t" * 32


@pytest.fixture
def engine(tmp_path: Path) -> str:
    return f"gtp:{made(tmp_path, GTP)[0]}"


@pytest.fixture
def pool(engine: str, tmp_path: Path) -> Path:
    path = tmp_path / "pool"
    make_pool(
        path,
        env_id="openspiel:go(board_size=3)",
        options=(),
        anchors=(f"{engine}=1500",),
        opening_plies=2,
    )
    assert add_contenders(path, ["bot:random"]) == ["bot:random joined."]
    return path


def test_an_engine_is_an_anchor_and_its_games_count_where_it_may_run(pool: Path, engine: str) -> None:
    trust_places([pool])
    with open_pool(PoolFolder(pool)) as opened:
        member = opened.state.policies[0]
        assert member == PoolPolicy(engine, OUTSIDE, "", 1500.0, member.source, find_contenders([engine])[0].identity)
        assert run_here(opened, still=lambda: opened.state.finished == 0, source=pool) > 0
        assert opened.state.finished == 1 and int(opened.state.games.values[0]) > 0
    with open_pool(PoolFolder(pool)) as again:
        assert again.state.policies[0] == member
    with pytest.raises(PoolError, match="is the same policy"):
        add_contenders(pool, [f"{engine}?deadline=60"])


def test_a_worker_without_the_engine_says_so_and_has_other_work(pool: Path, engine: str, tmp_path: Path) -> None:
    add_contenders(pool, ["bot:mcts:1"])
    with open_pool(PoolFolder(pool)) as opened, serving(opened, TOKEN, Listening()) as url:
        with PoolClient(url, TOKEN, worker="w", patience_s=2.0) as client:
            games = work(client, still=lambda: not opened.state.finished, idle=lambda seconds: None)
        assert games > 0 and int(opened.state.games.values[0]) == 0, "the bots alone, without --trust"
        assert opened.state.expired == 1 and opened.state.failed == 0, "asked for once, and nobody is to blame"
        Path(engine.removeprefix("gtp:")).unlink()
        trust_places([url])
        with PoolClient(url, TOKEN, worker="w2", patience_s=2.0) as client:
            work(client, still=lambda: opened.state.expired < 2, idle=lambda seconds: None)
        assert int(opened.state.games.values[0]) == 0 and opened.state.failed == 0


def test_another_version_of_an_engine_is_not_played_for_it(pool: Path, engine: str) -> None:
    with open_pool(PoolFolder(pool)) as opened:
        opened.state.policies[0] = replace(opened.state.policies[0], identity="0" * 64)
        granted = opened.lease("w")
        assert granted is not None
        opened.give_up(granted.lease.lease_id, granted.lease.token, "not now")
        turns = iter([True, False])
        trust_places([pool])
        assert run_here(opened, still=lambda: next(turns, False), source=pool) == 0
        assert opened.state.expired == 2 and opened.state.failed == 0


def test_what_does_not_play_the_game_or_is_not_there_does_not_join(pool: Path, tmp_path: Path) -> None:
    with pytest.raises(LeagueError, match="no-such-engine"):
        add_contenders(pool, [f"uci:{tmp_path / 'no-such-engine'}"])
