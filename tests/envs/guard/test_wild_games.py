"""The table of docs/games-in-your-process.md: what a game does to its process, in every call, here and in a child."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from tests.envs.guard.wild_games import BLOCKING, FAILING, HARMLESS, NATIVE

pytestmark = pytest.mark.xdist_group("wild games")  # one process of `guarded_play`, not one in each worker

ROOT = Path(__file__).parents[3]
CALLS = ("constructor", "reset", "step", "render", "close")
TABLE = ROOT / "docs" / "games-in-your-process.md"
IGNORED = ("render", "close")
"""Calls whose failure is a line in the log: the game is played all the same."""


@functools.cache
def all_played() -> list[dict[str, Any]]:
    """The lines of the process of `guarded_play`."""
    with tempfile.TemporaryFile("w+") as written:  # a pipe would be held open by what a game leaves behind
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.envs.guard.guarded_play", ",".join(CALLS), *HARMLESS, *FAILING],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout=120)
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing is left
                os.killpg(process.pid, signal.SIGKILL)
            written.seek(0)
            out = written.read()
    assert process.returncode == 0, out[-2000:]
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"call"')]


def played(call: str) -> dict[str, dict[str, Any]]:
    """Behaviour -> what was said of it in a call."""
    return {line["how"]: line for line in all_played() if line["call"] == call}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", HARMLESS)
def test_what_a_game_changes_does_not_reach_us(how: str, call: str) -> None:
    line = played(call)[how]
    assert (line["changed"], line["sentence"]) == ([], "")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", FAILING)
def test_a_game_that_ends_the_process_fails_as_one_that_raises(how: str, call: str) -> None:
    line = played(call)[how]
    assert line["changed"] == []
    if call in IGNORED:
        assert line["sentence"] == ""
    else:
        assert "wild_games:make" in line["sentence"] and "\n" not in line["sentence"]
        assert ("making it" if call == "constructor" else f"{call} raised") in line["sentence"]


def test_neither_a_process_nor_its_guard_imports_the_compiler_of_torch_which_takes_seconds() -> None:
    assert not any(line["compiler"] for line in played("step").values())


def test_no_process_that_is_a_copy_of_ours_plays_on() -> None:
    told = [(line["call"], line["how"]) for line in all_played()]
    assert told == [(call, how) for call in CALLS for how in (*HARMLESS, *FAILING)], "each behaviour is told once"


@pytest.mark.parametrize(("how", "call"), [("exit at once", "step"), ("kill", "reset"), ("folder", "step")])
def test_a_game_in_a_child_process_costs_its_own_episodes(how: str, call: str) -> None:
    config = EnvConfig("tests.envs.guard.wild_games:make", {"how": how, "when": call}, workers=1)
    if call == "reset":  # a game is reset once to see its masks
        with pytest.raises(EnvError, match=r"wild_games:make: making it ended its process \(SIGKILL\)"):
            make(config, num_envs=1)
        return
    env = make(config, num_envs=1)
    try:
        if how in HARMLESS:
            turn = env.reset(0)
            assert not env.step(np.zeros(len(turn.seat), np.int64)).ended.any()
            return
        with pytest.raises(EnvError, match=rf"wild_games:make: {call} ended its process"):
            env.reset(0)
            env.step(np.zeros(2, np.int64))
    finally:
        env.close()


def test_the_page_names_every_behaviour() -> None:
    text = TABLE.read_text()
    assert not [how for how in (*HARMLESS, *FAILING, *NATIVE, *BLOCKING) if f"| {how} |" not in text]
