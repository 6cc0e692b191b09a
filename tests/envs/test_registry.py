"""Which env an id makes, and what each wrong id is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.env_registry import spec

from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.pettingzoo import AecEnv, ParallelEnv
from league.envs.games.connect_four import ConnectFour
from league.envs.protocol import EnvConfig, EnvError, ForkableEnv
from league.envs.registry import BUILT_IN, make

OWN_GAMES = """
from league.envs.games.connect_four import ConnectFour

def board(opening_plies=0, *, num_envs):
    return ConnectFour(num_envs=num_envs, opening_plies=opening_plies)

def aec(render_mode=None):
    from pettingzoo.classic import connect_four_v3
    return connect_four_v3.env(render_mode=render_mode)

def parallel():
    from pettingzoo.classic import rps_v2
    return rps_v2.parallel_env()

def single(name="CartPole-v1"):
    import gymnasium
    return gymnasium.make(name)

def number(num_envs):
    return 7

def nothing():
    return None

def needs(count, *, size):
    return None

def crooked():
    raise ValueError("bent")

constant = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own_games.py"
    path.write_text(OWN_GAMES)
    (tmp_path / "bad_syntax.py").write_text("def make(:")
    (tmp_path / "lacking.py").write_text("import no_such_package\ndef make(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_games", raising=False)
    return path


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_every_built_in_game_can_be_made_copied_and_saved(env_id: str) -> None:
    env = make(EnvConfig(env_id), num_envs=3)
    assert env.num_envs == 3
    assert env.spec.env_id == env_id
    assert isinstance(env, ForkableEnv)


def test_kwargs_reach_the_game() -> None:
    turn = make(EnvConfig("connect_four", {"opening_plies": 2}), num_envs=2).reset(0)
    assert turn.obs["board"].sum() == 4


@pytest.mark.parametrize(("function", "kind"), [("aec", AecEnv), ("parallel", ParallelEnv), ("single", GymnasiumEnv)])
@pytest.mark.parametrize("form", ["own_games:{}", "own_games.py:{}", "{}/own_games.py:{}"])
def test_own_factories_are_known_by_what_they_return(own: Path, function: str, kind: type, form: str) -> None:
    env_id = form.format(*((own.parent, function) if form.count("{}") == 2 else (function,)))
    env = make(EnvConfig(env_id), num_envs=2)
    assert type(env) is kind
    assert env.spec.env_id == env_id
    env.reset(0)


def test_an_own_batched_env_gets_num_envs_and_kwargs(own: Path) -> None:
    env: Any = make(EnvConfig("own_games.py:board", {"opening_plies": 1}), num_envs=5)
    assert env.spec == ConnectFour(num_envs=1).spec
    assert np.asarray(env.reset(0).obs["board"]).sum() == 5


@pytest.mark.parametrize(
    ("env_id", "kwargs", "words"),
    [
        ("conect_four", {}, "unknown env 'conect_four'; did you mean connect_four"),
        ("zzz", {}, r"known are connect_four, .* \(an id is a built-in id, pettingzoo:ID"),
        ("connect_four", {"opening": 2}, "unknown kwarg 'opening'; did you mean opening_plies"),
        ("connect_four", {"num_envs": 2}, "unknown kwarg 'num_envs'"),
        ("own_games.py:bord", {}, "own_games.py has no 'bord'; did you mean board"),
        ("own_games.py:constant", {}, "is a int; name a function that makes the game"),
        ("other.py:board", {}, "there is no file other.py; paths are relative to"),
        ("no_such_module:make", {}, "there is no module 'no_such_module'"),
        ("petingzoo:classic/chess_v6", {}, "there is no module 'petingzoo'; did you mean pettingzoo:"),
        ("lacking:make", {}, "needs the package 'no_such_package', which is not installed"),
        ("lacking.py:make", {}, "needs the package 'no_such_package', which is not installed"),
        ("own_games.py:number", {}, "takes num_envs and returned a int; return a BatchedEnv"),
        ("own_games.py:nothing", {}, "returned a NoneType; return a PettingZoo AEC or parallel env"),
        ("own_games.py:needs", {"count": 1}, "the kwargs size must be given"),
        ("own_games.py:crooked", {}, "raised ValueError: bent"),
        ("own_games.py:single", {"name": "Nope-v0"}, "making it raised NameNotFound"),
        ("own_games.py:", {}, "own_games.py has no ''"),
        ("bad_syntax.py:make", {}, "reading .*bad_syntax.py raised SyntaxError"),
    ],
)
def test_a_wrong_id_is_one_clear_sentence(own: Path, env_id: str, kwargs: dict[str, object], words: str) -> None:
    with pytest.raises(EnvError, match=words) as caught:
        make(EnvConfig(env_id, kwargs), num_envs=2)
    assert "\n" not in str(caught.value)


def test_a_missing_package_of_pettingzoo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pettingzoo.classic.chess")]:
        monkeypatch.delitem(sys.modules, name)  # another test of this process may have imported the game
    spec._load_env_creator.cache_clear()  # and PettingZoo remembers it
    monkeypatch.setitem(sys.modules, "chess", None)
    with pytest.raises(EnvError, match=r"package is missing.*chess.*extra `classic`: pip install .*'\.\[classic\]'"):
        make(EnvConfig("pettingzoo:classic/chess_v6"), num_envs=1)


def test_no_games_are_refused() -> None:
    with pytest.raises(EnvError, match="num_envs is 0; it must be at least 1"):
        make(EnvConfig("connect_four"), num_envs=0)
