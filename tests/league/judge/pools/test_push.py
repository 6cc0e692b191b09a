"""A live run pushes its snapshots to a pool: which ones, each once, and trouble ends nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.config.run_config import PoolConfig
from league.core.state.records import SnapshotInfo
from league.core.state.state import LeagueState
from league.judge.pools.core.records import PoolGame
from league.judge.pools.folder import PoolFolder
from league.judge.pools.pool import create_pool, open_pool
from league.judge.pools.push import PoolPusher
from league.store.snapshots import LocalSnapshotStore
from tests.league import tiny_runs
from tests.league.judge.pools.frozen_copies import frozen_copy


@pytest.fixture
def pool(tmp_path: Path) -> PoolFolder:
    folder = PoolFolder(tmp_path / "pool")
    create_pool(folder, PoolGame("tic_tac_toe", 2))
    return folder


def pusher(pool: PoolFolder, what: str, run: Path, said: list[str]) -> tuple[PoolPusher, LeagueState]:
    store, state = LocalSnapshotStore(run / "snapshots"), LeagueState()
    for seed, role in ((1, "main_agent"), (2, "main_exploiter"), (3, "main_agent")):
        copy = frozen_copy(seed)
        store.put(copy.weights, copy.manifest)
        name = f"{role.replace('_', '-')}-s{seed}"
        digest = copy.manifest.digest
        state.snapshots[name] = SnapshotInfo(name, digest, "p", role, None, seed, seed, "gate")
    state.tags = {"release": "main-exploiter-s2"}
    config = PoolConfig(str(pool.path), what)  # type: ignore[arg-type]  # one of its literals
    return PoolPusher(config, run, store, say=said.append), state


@pytest.mark.parametrize(
    ("what", "names"),
    [("tagged", ["run.main-exploiter-s2"]), ("all-main", ["run.main-agent-s1", "run.main-agent-s3"])],
)
def test_the_chosen_snapshots_join_once(pool: PoolFolder, tmp_path: Path, what: str, names: list[str]) -> None:
    said: list[str] = []
    pushing, state = pusher(pool, what, tmp_path / "run", said)
    pushing.look(state)
    pushing.close()
    assert sorted(path.name for path in pool.inbox.iterdir()) == names
    with open_pool(pool) as opened:
        opened.tend()
        assert [policy.name for policy in opened.state.policies] == names
    again, _ = pusher(pool, what, tmp_path / "run", said)  # a resumed run has forgotten what it pushed
    again.look(state)
    again.close()
    assert not list(pool.inbox.iterdir()) and not said


def test_a_pool_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    said: list[str] = []
    pushing, state = pusher(PoolFolder(tmp_path / "none"), "all-main", tmp_path / "run", said)
    pushing.look(state)
    pushing.close()
    assert len(said) == 1 and "no rating pool" in said[0]


def test_a_run_pushes_to_the_pool_of_its_configuration(pool: PoolFolder, tmp_path: Path) -> None:
    plain = tiny_runs.tiny(league=tiny_runs.ONE_PLAYER, pool={"folder": str(pool.path), "what": "all-main"})
    ended = tiny_runs.start(tmp_path, plain, env_steps=400)
    state = tiny_runs.state_of(ended.folder.path)
    mains = {f"run.{name}" for name, info in state.snapshots.items() if info.role == "main_agent"}
    assert {path.name for path in pool.inbox.iterdir()} == mains != set()
