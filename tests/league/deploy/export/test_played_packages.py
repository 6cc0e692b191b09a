"""A package is played with what its game shows: every kind of game, with and without the game, trusted or not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.agents.nets.config import NetworkConfig
from league.deploy.export.exporter import export_policy
from league.deploy.export.importer import verify_package
from league.envs.adapters.bare import Chooser, Loop, loop_over
from league.envs.adapters.external import ExternalEnv
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.errors import CorruptSnapshot, LeagueError
from league.policies.exact.load_policy import load_policy
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.trust import MARK_FILE, trust_places
from tests.league.commands import league
from tests.league.deploy.export import strangers
from tests.league.deploy.export.test_package import rewritten
from tests.league.judge.matches.eval_runs import TINY, TINY_LSTM, MadeRun, network_of

PICTURES = NetworkConfig(encoder="conv", hidden=(8,), channels=(2,))
SPLIT: dict[str, tuple[str, ...]] = {"group_red": ("red",), "group_blue": ("blue",)}
MIXED = "main-0-s0*2+main-0-s1"


@dataclass(frozen=True)
class Case:
    """A kind of game, and what is made of it."""

    game: str
    network: NetworkConfig = TINY
    policies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    player: str = "main-0-s1"


CASES = {
    "equal seats": Case("duel"),
    "seats split by hand or by auto": Case("duel", policies=tuple(SPLIT.items())),
    "split, with memory": Case("duel", TINY_LSTM, tuple(SPLIT.items())),
    "split, a mixture": Case("duel", policies=tuple(SPLIT.items()), player=MIXED),
    "masks in infos": Case("masks_in_infos"),
    "three kinds of seats": Case("market"),
    "three kinds, a mixture with memory": Case("market", TINY_LSTM, player=MIXED),
    "actions of parts": Case("composite"),
    "pictures": Case("pictures", PICTURES),
    "boxes": Case("boxes"),
    "numbers": Case("frozen"),
}


@dataclass(frozen=True)
class Made:
    """A run and its package."""

    case: Case
    run: Path
    package: Path
    game: EnvConfig


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the games, and a user with a key of their own."""
    folder = tmp_path_factory.mktemp("stranger")
    shutil.copy(strangers.__file__, folder / "strangers.py")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield folder


@pytest.fixture(scope="module")
def made(home: Path) -> dict[str, Made]:
    """Every case as a run of two snapshots and its package."""
    return {name: made_of(case, home / f"case-{number}") for number, (name, case) in enumerate(CASES.items())}


def made_of(case: Case, folder: Path) -> Made:
    env = EnvConfig(f"{folder.parent / 'strangers.py'}:{case.game}", policies=dict(case.policies))
    run = MadeRun(folder / "run", env=env, network=case.network)
    run.snapshot("main-0", network_of(run.config, seed=1))
    run.snapshot("main-exploiter-0", network_of(run.config, seed=3))
    run.snapshot("main-0", network_of(run.config, seed=2), version=4, trained_steps=900)
    path = run.close()
    trust_places([path])
    return Made(case, path, export_policy(path, folder / "package", player=case.player).path, env)


def actions_of(policy: LoadedPolicy | LoadedMixture, game: str) -> list[str]:
    """What a policy answers to what a game shows, over two episodes; the game refuses what is not an action of it."""
    answers: list[str] = []

    def choose(seat: Any, observation: Any, mask: Any) -> Any:
        answers.append(repr(action := policy.act(observation, mask, seat=seat)))
        return action

    loop = loop_of(game, choose)
    for episode in range(2):
        loop.reset(episode)
        policy.reset(episode)
        while (actions := loop.choose()[0]) is not None:
            loop.step(actions)
    return answers


def loop_of(game: str, choose: Chooser) -> Loop:
    env = make(EnvConfig(f"tests.league.deploy.export.strangers:{game}"), num_envs=1)
    assert isinstance(env, ExternalEnv) and env.make_bare is not None
    return loop_over(env, env.make_bare(), choose)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trust", [False, True])
def test_a_package_plays_what_the_game_shows_as_its_run_does(made: dict[str, Made], name: str, trust: bool) -> None:
    found = made[name]
    own = actions_of(load_policy(found.run, found.case.player, seed=5, trust=True), found.case.game)
    assert own == actions_of(load_policy(found.package, seed=5, trust=trust), found.case.game)


@pytest.mark.parametrize("name", CASES)
def test_a_package_is_played_without_its_game(made: dict[str, Made], name: str, tmp_path: Path) -> None:
    found = made[name]
    own = actions_of(load_policy(found.run, found.case.player, seed=5, trust=True), found.case.game)
    away = Path(found.game.id.partition(":")[0])
    away.rename(away.with_suffix(".away"))
    try:
        for trust in (False, True):
            assert own == actions_of(load_policy(found.package, seed=5, trust=trust), found.case.game)
    finally:
        away.with_suffix(".away").rename(away)


FRESH = """
import json, sys
sys.path.append({repository!r})
import league
from league.envs.plugins import is_admitted
from tests.league.deploy.export.test_played_packages import actions_of
for package, game, trust in json.loads(sys.argv[1]):
    policy = league.load_policy(package, seed=5, trust=trust)
    print(json.dumps([actions_of(policy, game), policy.spec.user_format is not None]))
"""


@pytest.mark.parametrize("is_own", [True, False])
def test_a_fresh_process_in_another_folder_plays_every_package(
    made: dict[str, Made], tmp_path: Path, is_own: bool
) -> None:
    asked = [(str(one.package), one.case.game, trust) for one in made.values() for trust in (False, True)]
    repository = str(Path(__file__).parents[4])
    state = os.environ["XDG_STATE_HOME"] if is_own else str(tmp_path / "another")
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(repository=repository), json.dumps(asked)],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": state, "PYTHONPATH": repository},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for one, line in zip((one for one in made.values() for _ in range(2)), done.stdout.splitlines(), strict=True):
        own = actions_of(load_policy(one.run, one.case.player, seed=5, trust=True), one.case.game)
        assert json.loads(line) == [own, True]


def test_ones_own_package_needs_no_trust(made: dict[str, Made], monkeypatch: pytest.MonkeyPatch) -> None:
    found = made["seats split by hand or by auto"]
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    assert "is here, and it fits" in verify_package(found.package).game_note
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    assert league("eval", found.package, "--bots", "random", "--games", "2").code == 0
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    assert league("match", found.package, "bot:random", "--games", "2").code == 0


def test_the_package_of_another_user_is_played_but_its_game_is_not_loaded(
    made: dict[str, Made], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = made["three kinds of seats"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    assert "is code of others" in verify_package(found.package).game_note
    refused = league("eval", found.package, "--bots", "random", "--games", "2")
    assert refused.code != 0 and "--trust" in refused.err
    assert league("eval", found.package, "--bots", "random", "--games", "2", "--trust").code == 0


def test_a_mark_does_not_admit_another_game(
    made: dict[str, Made], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = shutil.copytree(made["three kinds of seats"].package, tmp_path / "copy")
    shutil.copy(made["boxes"].package / MARK_FILE, copy / MARK_FILE)
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    assert "is code of others" in verify_package(copy).game_note


def test_what_cannot_be_played_is_not_exported(
    made: dict[str, Made], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = made["three kinds of seats"]
    monkeypatch.setattr("league.policies.stored_game.StoredFormat.of", classmethod(lambda cls, own: None))
    trust_places([found.run])
    with pytest.raises(LeagueError, match=r"^Nothing was exported: the policy was tried on .*market itself") as raised:
        export_policy(found.run, tmp_path / "package", player="main-0-s1")
    assert "\n" not in str(raised.value) and not (tmp_path / "package").exists()


@pytest.mark.parametrize("name", ["three kinds of seats", "actions of parts", "seats split by hand or by auto"])
def test_the_card_shows_what_each_kind_of_seat_is_given_and_answers(made: dict[str, Made], name: str) -> None:
    card = (made[name].package / "README.md").read_text()
    wanted = {
        "three kinds of seats": ["| seller | float32 [4] | 1 to 5 |", "| novice | float32 [3] | 0 or 1 |"],
        "actions of parts": [
            "| scout | dict: `own.speed` float32 [2], `place` whole numbers [2] |",
            "dict: `aim` whole numbers [2], `move` -1 to 1 |",
            "| smith | tuple: `0` 0 to 2, `1` float32 [2] | tuple: `0` 0 or 1, `1` whole numbers [2] |",
        ],
        "seats split by hand or by auto": ["| red, blue | dict: `observation` float32 [6] | 0 to 4 |"],
    }[name]
    assert all(text in card for text in wanted), card
    assert "policy.act(observation, mask, seat=" in card


@pytest.mark.parametrize("given", ["id", "function", "class", "config", "mapping"])
def test_a_game_is_given_by_id_function_class_or_config(made: dict[str, Made], given: str, home: Path) -> None:
    found = made["seats split by hand or by auto"]
    name = f"{home / 'strangers.py'}:duel"
    env: Any = {
        "id": name,
        "function": strangers.duel,
        "class": type(
            "Duel", (strangers.Together,), {"__init__": lambda self: vars(self).update(vars(strangers.duel()))}
        ),
        "config": EnvConfig(name),
        "mapping": {"id": name},
    }[given]
    for source, player in ((found.run, "main-0-s1"), (found.package, "auto")):
        policy = load_policy(source, player, env=env)
        shown = {"observation": np.zeros(6, np.float32), "action_mask": np.array([0, 0, 1, 0, 0])}
        assert policy.act(shown, seat="blue") == 2


def test_a_game_that_is_none_is_refused_in_one_sentence(made: dict[str, Made]) -> None:
    for env in (3, {"kwargs": {}}, {"id": "connect_four", "colour": 1}):
        with pytest.raises((LeagueError, EnvError), match="env=") as raised:
            load_policy(made["numbers"].package, env=env)  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)


def _of_form(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda game: change(game["format"]["forms"][0])


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "a seat of no form": lambda game: game["format"].update(seats=[0, 9]),
    "too few seats": lambda game: game["format"].update(seats=[0]),
    "a large field": _of_form(lambda form: form["fields"][0]["spec"].update(shape=[1 << 40])),
    "an unknown field": _of_form(lambda form: form["fields"][0].update(name="other")),
    "many actions": _of_form(lambda form: form["code"]["spec"].update(num_actions=1 << 40)),
    "many choices": _of_form(lambda form: form["code"]["spec"].update(nvec=[1 << 40])),
    "a block outside": _of_form(lambda form: form["fields"][1].update(one_hot_at=[-1, 3])),
    "objects": _of_form(lambda form: form["code"].update(starts={"dtype": "object", "values": ["os"]})),
    "words": _of_form(lambda form: form["code"].update(starts={"dtype": "int64", "values": ["os"]})),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_format_that_is_not_of_the_game_is_refused(made: dict[str, Made], tmp_path: Path, what: str) -> None:
    copy = shutil.copytree(made["actions of parts"].package, tmp_path / "copy")
    rewritten(copy, lambda plain: HOSTILE[what](plain["game"]))
    with pytest.raises(CorruptSnapshot) as raised:
        load_policy(copy)
    assert "\n" not in str(raised.value)


def test_a_package_from_before_formats_were_kept_is_read(made: dict[str, Made], tmp_path: Path) -> None:
    copy = shutil.copytree(made["three kinds of seats"].package, tmp_path / "copy")

    def as_before(plain: dict[str, Any]) -> None:
        plain["schema_version"] = 1
        del plain["game"]["format"]

    rewritten(copy, as_before)
    (copy / MARK_FILE).unlink()
    fields = {"observation": np.zeros(6, np.float32), "seat_group": np.array([True, False, False])}
    assert load_policy(copy).act(fields) in range(5)
