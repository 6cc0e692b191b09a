"""A game that ends the process in native code, or does not return: one sentence names the game and the call."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from league.envs.calls import Watch
from league.envs.guard.witness import sentence
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from tests.envs.guard import wild_games
from tests.envs.guard.guarded_play import play
from tests.envs.guard.wild_games import NATIVE

ROOT = Path(__file__).parents[3]
MAKING = "the making of it"
CALLS = {"constructor": MAKING, "reset": MAKING, "step": "step", "render": "render", "close": "close"}
"""Where a game behaves -> how the call is named. A game is reset once when it is made, to see its masks."""

WATCHED = """
import faulthandler, sys
from league.envs.guard.witness import witness
from tests.envs.guard.guarded_play import play
faulthandler.disable()
with witness.watching():
    play(*sys.argv[1:])
print("it went on")
"""


def ended(how: str, when: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a process in which a game has ended it."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, how, when], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("how", "call"), [*(("segmentation fault", call) for call in CALLS), (("abort of a library", "step"))]
)
def test_a_game_that_ends_the_process_in_native_code_is_named_with_its_call(how: str, call: str) -> None:
    code, out, err = ended(how, call)
    assert code < 0 and out == ""
    (line,) = [line for line in err.splitlines() if line.startswith("league: ")]
    assert f"wild_games:make: {CALLS[call]} ended this process in native code" in line
    assert "wild_games.py" in line and "`env.workers: 1`" in line


@pytest.mark.parametrize("how", ["folder", "process", "fork that leaves", "error"])
def test_the_witness_says_nothing_of_a_process_that_ends_otherwise(how: str) -> None:
    code, out, err = ended(how, "step")
    assert (code, out, err) == (0, "it went on\n", "")


def test_a_process_that_a_game_forks_ends_by_sigterm_whatever_handler_is_ours() -> None:
    """As in a worker of Ray, which has a handler of its own; the game terminates its process and waits for it."""
    code = """
import signal
from tests.envs.guard.guarded_play import play
signal.signal(signal.SIGTERM, lambda *_: None)
play("process waited for", "step")
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)


def test_the_last_words_are_one_sentence_also_outside_of_a_game() -> None:
    words = (
        'Fatal Python error: Bus error\n\nCurrent thread 0x1 (most recent call first):\n  File "a.py", line 3 in f\n'
    )
    assert sentence(words, "") == (
        'this process ended in native code outside of any game (Bus error; it was in File "a.py", line 3 in f).'
    )
    assert sentence("", "nim.py:make: step") == ""


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_does_not_return_is_named(call: str) -> None:
    wild_games.RELEASED.clear()
    thread = threading.Thread(target=play, args=("block", call))
    thread.start()
    watch, text, end = Watch(), "", time.monotonic() + 60
    try:
        while not text and time.monotonic() < end:
            seconds, said = watch.look(thread.ident, now=time.monotonic())
            text = said if seconds > 0.2 and said.endswith(f"has been in {CALLS[call]}") else ""
    finally:
        wild_games.RELEASED.set()
        thread.join(timeout=60)
    assert "wild_games:make" in text


@pytest.mark.parametrize("how", NATIVE)
def test_a_native_end_in_a_child_process_is_an_error_like_any_other(how: str) -> None:
    kwargs = {"how": how, "when": "step"}
    env = make(EnvConfig("tests.envs.guard.wild_games:make", kwargs, workers=1), num_envs=1)
    try:
        env.reset(0)
        with pytest.raises(EnvError, match=r"wild_games:make: step ended its process \(SIG(SEGV|ABRT)"):
            env.step(np.zeros(2, np.int64))
    finally:
        env.close()
