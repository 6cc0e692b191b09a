"""Every env that a command makes is closed again, also where it is given up half-way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import league as library
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import _LAST, NoExactValue
from tests.league.commands import league
from tests.league.counted_envs import OPEN
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, tiny

BOARDS = "tests.league.counted_envs:boards"
CARDS = "tests.league.counted_envs:cards"
LINE = "tests.league.counted_envs:line"


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    OPEN.clear()
    yield
    OPEN.clear()


def all_closed() -> bool:
    return OPEN["made"] > 0 and OPEN["open"] == 0


@pytest.mark.parametrize("env_id", [CARDS, LINE])
def test_a_run_and_all_that_is_done_with_it_close_every_env(tmp_path: Path, env_id: str) -> None:
    plain = tiny(env={"id": env_id}, evaluation={"bots": ["random", "mcts:2"], "games": 2}, league=ONE_PLAYER)
    run = start(tmp_path, plain, env_steps=600).folder.path
    assert all_closed(), "train"
    go_on(run, env_steps=300)
    assert all_closed(), "resume"
    bots = "random,tactical,mcts:2" if env_id == CARDS else "random,mcts:2"
    assert league("eval", run, "--bots", bots, "--games", 2).code == 0
    assert all_closed(), "eval"
    library.load_policy(run)
    assert all_closed(), "load_policy"
    assert league("doctor", run).code == 0
    assert league("fork", run, tmp_path / "forked", "--at", "latest", "-s", "env.kwargs={}").code == 0
    assert all_closed(), "fork"
    assert league("simulate", tmp_path / "config.yaml", "--for", "10s").code == 0
    assert all_closed(), "simulate"
    if env_id == CARDS:
        assert league("exploit", run, "--env-steps", 300, "--games", 4).code == 0
        assert all_closed(), "exploit"


@pytest.mark.parametrize("env_id", [BOARDS, LINE])
def test_check_env_closes_every_env(env_id: str) -> None:
    assert league("check-env", env_id, "--seconds", 0.5).code == 0
    assert all_closed()


@pytest.mark.parametrize("name", ["endless_line", "third_fails", "no_env"])
def test_an_env_that_is_given_up_is_closed(name: str) -> None:
    with pytest.raises(EnvError):
        make(EnvConfig(f"tests.league.counted_envs:{name}"), num_envs=3)
    assert all_closed()


def test_the_perfect_bot_closes_the_copies_that_it_tries(tmp_path: Path) -> None:
    from league.envs.bots import make_bot

    env = make(EnvConfig(BOARDS), num_envs=2)
    turn = env.reset(0)
    make_bot("minimax", seed=0).act(env, turn, turn.env_index)
    assert (OPEN["open"], OPEN["made"] > 1) == (1, True)
    env.close()


@pytest.mark.parametrize("hopeless", [5.0, 1e9])
def test_a_game_without_an_exact_value_is_closed(monkeypatch: pytest.MonkeyPatch, hopeless: float) -> None:
    monkeypatch.setattr("league.envs.search.tree_walk.MAX_HISTORIES", 500)
    monkeypatch.setattr(
        "league.envs.search.tree_walk.HOPELESS", hopeless
    )  # given up at once, or in the middle of a visit
    _LAST.clear()
    with pytest.raises(NoExactValue):
        nash_conv(EnvConfig(BOARDS), lambda obs, mask: mask)  # type: ignore[arg-type, return-value]
    assert all_closed()
