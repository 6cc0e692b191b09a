"""Names that become objects: by module, by file, and what each wrong one is told."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from league.envs.bots import make_bot
from league.envs.own_code.places import absolute
from league.envs.plugins import PluginError, admit, is_admitted, load, load_admitted, resolve
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

ROOT = Path(__file__).parents[2]

CODE = """
from dataclasses import dataclass
from pathlib import Path
import beside

@dataclass
class Thing:
    seed: int = 0
    def act(self, env, turn, slots):
        return [self.seed] * len(slots)

def answer():
    return beside.VALUE

class Mute:
    def __init__(self, seed): ...

def crooked(seed):
    raise ValueError("bent")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_things.py").write_text(CODE)
    (tmp_path / "beside.py").write_text("VALUE = 42\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('first line\\nsecond line')\n")
    monkeypatch.chdir(tmp_path)
    for name in ("own_things", "beside"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_file_may_import_what_lies_beside_it_and_is_read_once(folder: Path) -> None:
    answer = load("own_things.py:answer")
    assert answer() == 42
    assert load(f"{folder}/own_things.py:answer") is answer
    assert load("own_things:Thing.act")


def test_two_files_of_one_name_are_two_modules(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "own_things.py").write_text("answer = 7\n")
    assert load("other/own_things.py:answer") == 7
    assert load("own_things.py:answer")() == 42


def test_a_file_that_changed_is_read_again(folder: Path) -> None:
    assert load("beside.py:VALUE") == 42
    (folder / "beside.py").write_text("VALUE = 4321\n")
    assert load("beside.py:VALUE") == 4321


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_things", "is not of the form module:attribute"),
        (":x", "is not of the form"),
        ("own_things.py:Pat", "has no 'Pat'; did you mean Thing or answer or Mute|has no 'Pat'; did you mean"),
        ("own_things.py:anser", "has no 'anser'; did you mean answer"),
        ("nowhere.py:x", "there is no file nowhere.py; paths are relative to"),
        ("no_such_package.games:x", "there is no module 'no_such_package.games'"),
        ("broken.py:x", "raised RuntimeError: first line"),
        ("..:x", "importing"),
    ],
)
def test_a_name_that_cannot_be_loaded_is_one_clause(folder: Path, name: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        load(name)
    assert "\n" not in str(caught.value)
    assert "Path" not in str(caught.value).partition("did you mean")[2]  # what a file imports is no answer


def test_a_module_named_as_an_attribute_is_answered_with_its_name_and_what_it_lists(folder: Path) -> None:
    (folder / "a_package").mkdir()
    (folder / "a_package" / "__init__.py").touch()
    (folder / "a_package" / "games.py").write_text("__all__ = ['board', 'SIZE']\nSIZE = 3\ndef board(): ...\n")
    (folder / "a_package" / "broken.py").write_text("raise RuntimeError\n")
    with pytest.raises(PluginError, match=r"a module: .* as in a_package\.games:NAME \(it has board\)"):
        load("a_package:games")
    with pytest.raises(PluginError, match=r"as in a_package\.broken:NAME$"):
        load("a_package:broken")


def test_an_unknown_name_is_answered_with_the_nearest_and_the_forms() -> None:
    with pytest.raises(PluginError, match=r"'psterior' \(did you mean 'posterior'\?\): there are posterior"):
        resolve("psterior", {"posterior": "x:y"}, what="gate")
    with pytest.raises(PluginError, match=r"did you mean 'gate\.py:NAME'"):
        resolve("gate.py", {"posterior": "x:y"}, what="gate")


def test_a_name_brought_along_is_loaded_only_where_it_was_admitted(folder: Path) -> None:
    name = f"{folder}/own_things.py:answer"
    with pytest.raises(PluginError, match="nobody here has trusted"):
        load_admitted(name)
    admit([name])
    assert load_admitted(name)() == 42


def test_a_name_that_is_admitted_with_options_is_loaded_and_other_options_are_not_admitted(folder: Path) -> None:
    (folder / "gate.py").write_text("class Gate: ...")
    name = f"{folder / 'gate.py'}:Gate"
    admit([f'{name} {{"patience": 3}}'])
    assert load_admitted(name).__name__ == "Gate"
    assert is_admitted(f'{name} {{"patience": 3}}') and not is_admitted(f'{name} {{"patience": 4}}')
    with pytest.raises(PluginError, match="nobody here has trusted"):
        load_admitted(name.removesuffix("te"))


def test_names_beside_a_configuration_get_absolute_paths(folder: Path, tmp_path: Path) -> None:
    places = [tmp_path / "nowhere", folder]
    assert absolute("own_things.py:Thing", places) == f"{folder}/own_things.py:Thing"
    assert absolute("own_things:Thing", places) == f"{folder}/own_things.py:Thing"
    assert absolute("json:loads", places) == "json:loads"
    assert absolute("absent.py:x", places) == "absent.py:x"
    assert absolute("posterior", places) == "posterior"


PACKAGES = ("plays", "json", "numpy")
"""Names of a user's package: free, of the standard library, and of a package that is imported already."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_of_a_package_is_found_as_a_file_is(package: str, folder: Path) -> None:
    inner = folder / "project" / package / "small"
    inner.mkdir(parents=True)
    (inner / "duel.py").write_text("def make():\n    return 'duel'\n")
    name = f"{package}.small.duel:make"
    assert absolute(name, [folder / "nowhere", folder / "project"]) == f"{folder}/project/{name}"
    assert load(f"{folder}/project/{name}")() == "duel"
    assert load(f"project/{name}")() == "duel"
    assert absolute(f"project/{name}", [folder]) == f"{folder}/project/{name}"


def test_packages_of_one_name_in_two_projects_are_two_and_import_their_own(folder: Path) -> None:
    for project in ("one", "two"):
        (folder / project / "plays").mkdir(parents=True)
        (folder / project / "plays" / "rules.py").write_text(f"NAME = {project!r}\n")
        (folder / project / "plays" / "duel.py").write_text("from plays.rules import NAME\nfrom . import rules\n")
    for project in ("one", "two", "one"):
        assert load(f"{folder / project}/plays.duel:NAME") == project
        assert load(f"{folder / project}/plays.duel:rules.NAME") == project
    (folder / "one" / "plays" / "rules.py").write_text("NAME = 'one, edited'\n")
    assert load(f"{folder / 'one'}/plays.duel:NAME") == "one, edited"


def test_a_module_that_python_finds_stays_where_no_file_of_the_user_has_its_name(folder: Path) -> None:
    assert absolute("json.decoder:JSONDecoder", [folder]) == "json.decoder:JSONDecoder"
    with pytest.raises(PluginError, match=r"there is no file .*nothing; it was looked for"):
        load(f"{folder}/nothing:make")


def test_a_module_of_this_package_is_imported_once_by_whatever_path_the_package_came() -> None:
    """As from a checkout that is installed: the current folder has the package too, and Python found it by a link."""
    code = """
from league.envs import bots, plugins
assert plugins.load("league.envs.bots:make_bot") is bots.make_bot
"""
    path = os.pathsep.join([str(ROOT / "editable"), *sys.path[1:]])
    subprocess.run([sys.executable, "-Pc", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True)


def test_a_bot_may_be_the_users_own(folder: Path) -> None:
    env = make(EnvConfig("tic_tac_toe"), num_envs=2)
    actions = make_bot("own_things.py:Thing", seed=5).act(env, env.reset(0), np.arange(2))
    assert actions.tolist() == [5, 5]
    for name, words in (
        ("own_things.py:Ting", "has no 'Ting'"),
        ("own_things.py:Mute", "is a Mute without act"),
        ("own_things.py:crooked", "cannot be made with seed=0: ValueError: bent"),
    ):
        with pytest.raises(EnvError, match=words):
            make_bot(name, seed=0)


def test_one_file_alone_imports_by_name() -> None:
    users = set()
    for package in ("envs", "agents", "league"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
                if name in ("import_module", "module_from_spec", "exec_module", "__import__"):
                    users.add(path.relative_to(ROOT).as_posix())
    assert users == {"envs/plugins.py"}
