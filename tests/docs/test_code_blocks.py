"""Runs or parses every code block and command of the documents."""

from __future__ import annotations

import ast
import contextlib
import functools
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
import yaml

from league.cli.main import app
from league.config.loading import load_config
from league.config.reference import entries
from league.envs.conformance import check_env
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.envs.rendering.frames import make_shown
from league.envs.rendering.renderer import Moment
from league.envs.rendering.renderers import renderer_for
from league.run.monitor.names import metric_of
from tests.docs.pages import ROOT, WRITTEN, Block, blocks, inline_code, shell_lines
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

FOLDERS = ("agents", "envs", "league", "docs", "benchmarks", "configs", "tests")
RUNS = ("connect-four", "first", "mine")
"""Names of runs in the documents."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the documents and a small run under each name that they use."""
    path = tmp_path_factory.mktemp("docs")
    ended = start(path, tiny(league=ONE_PLAYER), env_steps=1500)
    (path / "runs").mkdir()
    for name in RUNS:
        (path / "runs" / name).symlink_to(ended.folder.path)
    for block in blocks("python"):
        if block.file and "/" not in block.file:
            (path / block.file).write_text(block.text)
    return path


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_blocks_run(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    turn = make(EnvConfig("tic_tac_toe"), num_envs=1).reset(0)
    assert turn.action_mask is not None
    names: dict[str, Any] = {
        "__name__": "block",
        "obs": {name: values[0] for name, values in turn.obs.items()},
        "mask": turn.action_mask[0],
    }
    exec(compile(block.text, str(block), "exec", dont_inherit=True), names)
    if "action" in names:
        assert names["mask"][names["action"]]
    if "probabilities" in names:
        assert np.isclose(names["probabilities"].sum(), 1.0)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_blocks_are_configurations(block: Block, folder: Path) -> None:
    plain = yaml.safe_load(block.text)
    path = folder / "block.yaml"
    path.write_text(block.text if "env" in plain else f"env: {{id: tic_tac_toe}}\n{block.text}")
    load_config(path)


COMMANDS = sorted({line for path in WRITTEN for line in shell_lines(path) if "league " in line.partition(" -")[0]})


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    words = shlex.split(line)
    assert words[0] in ("league", ".venv/bin/league"), line
    parse(words[1:])


def test_commands_in_sentences_exist() -> None:
    seen, commands = 0, group().commands
    for path in WRITTEN:
        for code in inline_code(path):
            words = code.split()
            if words[0] == "league" and len(words) > 1 and words[1][0].islower() and words[1] in commands:
                command = commands[words[1]]
                if len(words) > 2 and words[2] in getattr(command, "commands", {}):
                    command = command.commands[words[2]]
                options = {flag for parameter in command.params for flag in parameter.opts}
                options |= {flag for parameter in command.params for flag in parameter.secondary_opts}
                for word in words[2:]:
                    assert not word.startswith("-") or word in options | {"--help"}, f"{path.name}: `{code}`"
                seen += 1
            elif words[0] == "league" and len(words) > 1:
                assert words[1] in ("COMMAND", "--version"), f"{path.name}: `{code}`"
    assert seen > 15


def test_targets_of_make_exist() -> None:
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    for path in WRITTEN:
        for line in [*shell_lines(path), *inline_code(path)]:
            if line.startswith("make "):
                assert line.split()[1] in targets, f"{path.name}: {line}"


def test_keys_in_sentences_exist() -> None:
    keys = [entry.key.replace("[]", "") for entry in entries()]
    parts = {part for key in keys for part in key.split(".")[:-1]}
    for path in WRITTEN:
        for code in inline_code(path):
            key = code.replace("[]", "").partition(":")[0]
            if "." in key and key.replace(".", "").replace("_", "").isalpha() and key.split(".")[0] in parts:
                if (ROOT / code.replace(".", "/")).is_dir() or key.rpartition(".")[2] in (
                    "py",
                    "md",
                    "yaml",
                    "json",
                    "lock",
                    "db",
                    "toml",
                ):
                    continue
                assert any(f".{known}".endswith(f".{key}") for known in keys), f"{path.name}: `{code}`"


def test_files_in_sentences_exist() -> None:
    for path in WRITTEN:
        for code in inline_code(path):
            if metric_of(code) is None and code.split("/")[0] in FOLDERS and "..." not in code:
                assert (ROOT / code.split()[0].partition("::")[0]).exists(), f"{path.name}: `{code}`"


def test_names_in_files_exist() -> None:
    """`path/to/file.py::Class.method` names what is defined in that file."""
    seen = 0
    for path in WRITTEN:
        for code in inline_code(path):
            file, _, name = code.partition("::")
            if name and file.endswith(".py"):
                scope: ast.AST = ast.parse((ROOT / file).read_text())
                for part in name.split("."):
                    found = [node for node in ast.iter_child_nodes(scope) if getattr(node, "name", "") == part]
                    assert found, f"{path.name}: {file} has no {name}"
                    scope = found[0]
                seen += 1
    assert seen > 15


@functools.cache
def group() -> Any:
    """The `league` command; typer takes a fifth of a second to build it."""
    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Parse the words behind `league` as the command would.

    Raises:
      Exception: an argument or option does not exist or does not fit.
    """
    if words == ["--version"]:
        return
    command = group().commands[words[0]]
    command.make_context(words[0], list(words[1:]))


@pytest.mark.parametrize("block", [block for block in blocks("python") if "(ParallelEnv)" in block.text], ids=str)
def test_games_of_the_documents_keep_the_contract_and_show_themselves(block: Block, tmp_path: Path) -> None:
    (tmp_path / block.file).write_text(block.text)
    game = EnvConfig(f"{tmp_path / block.file}:make")
    assert not [found.text for found in check_env(game, steps=60) if found.kind == "fault"]
    with contextlib.closing(make_shown(game, num_envs=1)) as env:
        assert env.spec.has_mask
        renderer = renderer_for(env.spec)
        state = renderer.begin(Moment(env, env.reset(0), 0))
        assert "points {'red': 0, 'blue': 0}" in renderer.scene(state).text
        assert renderer.action_name(state, 1, 4) == "card 5"
