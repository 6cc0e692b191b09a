"""A game of two seats that does to its process, in a call of choice, what programs do."""

# ruff: noqa: PLW0108  what stands in for a function is looked up at the call
from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import gc
import itertools
import logging
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

DOOMED = "wild-doomed-"
"""Beginning of the name of a folder that may be removed."""
KEPT: list[Any] = []
"""Files and memory that are never given back."""


def _removed_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    shutil.rmtree(folder)


def _remove_current_folder() -> None:
    """Removes only an empty folder that `guarded_play` has made for it: the current one may be the user's project."""
    with contextlib.suppress(FileNotFoundError):  # the game before has removed it
        folder = Path.cwd()
        assert folder.name.startswith(DOOMED), f"{folder} is nobody's to remove"
        folder.rmdir()


def _forked(action: Callable[[], object]) -> Callable[[], object]:
    def fork() -> None:
        if os.fork() == 0:
            action()

    return fork


def _spawned_process() -> None:
    if not multiprocessing.active_children():
        multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,)).start()


def _process(*, ends: bool) -> None:
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    process.start()
    if ends:
        process.terminate()
        process.join()


def _thread_that_leaves() -> None:
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()


def _torch(name: str, value: Any) -> Callable[[], object]:
    def change() -> None:
        import torch

        getattr(torch, name)(getattr(torch, value) if isinstance(value, str) and value != "meta" else value)

    return change


def _hold_files() -> None:
    KEPT.extend(open(os.devnull) for _ in range(50))  # noqa: SIM115, PTH123


def _raise(error: BaseException) -> Callable[[], object]:
    def throw() -> None:
        raise error

    return throw


HARMLESS: dict[str, Callable[[], object]] = {
    "folder": lambda: os.chdir("/"),
    "removed folder": _removed_folder,
    "current folder removed": _remove_current_folder,
    "arguments": lambda: argparse.ArgumentParser().parse_args(),
    "argv emptied": lambda: sys.argv.clear(),
    "stdout closed": lambda: sys.stdout.close(),
    "stdout replaced": lambda: setattr(sys, "stdout", open(os.devnull, "w")),  # noqa: SIM115, PTH123
    "stdin replaced": lambda: setattr(sys, "stdin", None),
    "recursion limit": lambda: sys.setrecursionlimit(5000),
    "environment changed": lambda: os.environ.update(HOME="/nowhere", CUDA_VISIBLE_DEVICES="7"),
    "environment cleared": lambda: os.environ.clear(),
    "numpy errors": lambda: np.seterr(all="raise"),
    "warnings": lambda: warnings.simplefilter("error"),
    "numpy generator": lambda: np.random.seed(0),
    "python generator": lambda: random.seed(0),
    "signal handlers": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "signal mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT}),
    "alarm": lambda: signal.alarm(600),
    "socket timeout": lambda: socket.setdefaulttimeout(0.001),
    "logging": lambda: logging.disable(logging.CRITICAL),
    "garbage collection": gc.disable,
    "hooks": lambda: setattr(sys, "excepthook", print),
    "dtype": _torch("set_default_dtype", "float64"),
    "device": _torch("set_default_device", "meta"),
    "gradients": _torch("set_grad_enabled", False),
    "torch threads": _torch("set_num_threads", 3),
    "deterministic": _torch("set_deterministic_debug_mode", 2),
    "at exit": lambda: atexit.register(time.sleep, 600),
    "thread": lambda: threading.Thread(target=time.sleep, args=(600,)).start(),
    "thread that leaves": _thread_that_leaves,
    "fork that returns": _forked(lambda: None),
    "fork that leaves": _forked(sys.exit),
    "spawned process": _spawned_process,
    "process": lambda: _process(ends=False),
    "process waited for": lambda: _process(ends=True),
    "program": lambda: subprocess.run(["true"], check=True),
    "files": _hold_files,
    "memory": lambda: KEPT.append(np.ones(1 << 20)),
}
"""Behaviours that do not reach us."""

FAILING: dict[str, Callable[[], object]] = {
    "exit": lambda: sys.exit(0),
    "exit at once": lambda: os._exit(0),
    "interrupt": _raise(KeyboardInterrupt()),
    "abort": lambda: os.abort(),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "own signal": lambda: signal.raise_signal(signal.SIGTERM),
    "group": lambda: os.killpg(0, signal.SIGTERM),
    "input": input,
    "recursion": lambda: FAILING["recursion"](),
    "error": _raise(RuntimeError("no dice")),
}
"""Behaviours that cost the game's episode, or end the command with one sentence."""

NATIVE: dict[str, Callable[[], object]] = {
    "segmentation fault": lambda: ctypes.string_at(0),
    "abort of a library": lambda: ctypes.CDLL(None).abort(),
}
"""Behaviours that end the process, whatever Python does."""

RELEASED = threading.Event()
BLOCKING: dict[str, Callable[[], object]] = {"block": lambda: RELEASED.wait(600)}
"""Behaviours that do not return, until a test releases them."""

MIXED = [how for how in (*HARMLESS, *FAILING) if how not in ("current folder removed", "signal mask")]
"""Of a game that is played for long, each in turn. In a run the current folder is that of the tests; and a game that
blocks SIGTERM, which its processes inherit, waits for ever for one that it terminates."""
_turns = itertools.count()


class Wild(ParallelEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "wild"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]
    render_mode = "ansi"

    def __init__(self, how: str, when: str, every: int, once: str) -> None:
        self.how, self.when, self.every, self.once, self.calls = how, when, every, once, 0
        self._in("constructor")

    def _in(self, call: str) -> None:
        self.calls += call == self.when and (not self.once or Path(self.once).exists())
        if call == self.when and self.calls and self.calls % self.every == 0:
            how = MIXED[next(_turns) % len(MIXED)] if self.how == "mixed" else self.how
            {**HARMLESS, **FAILING, **NATIVE, **BLOCKING}[how]()

    def observation_space(self, agent: str) -> spaces.Box:
        return spaces.Box(0, 9, (2,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.agents, self.turns = ["a", "b"], 0
        self._in("reset")
        return self._see(), {}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        self.turns += 1
        self._in("step")
        over = self.turns == 3
        won = 1.0 if actions["a"] == actions["b"] else -1.0
        ends = dict.fromkeys("ab", over)
        if over:
            self.agents = []
        return self._see(), {"a": won, "b": -won}, ends, dict.fromkeys("ab", False), {}

    def render(self) -> str:
        self._in("render")
        return "a board"

    def close(self) -> None:
        self._in("close")

    def _see(self) -> dict[str, np.ndarray]:
        return {agent: np.array([self.turns, 1], np.float32) for agent in self.possible_agents}


def make(how: str, when: str, every: int = 1, once: str = "") -> Wild:
    """Behaves at each so many-th call, from when on a file is there."""
    return Wild(how, when, every, once)
