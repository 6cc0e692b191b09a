"""Plays the cells of the table in this process: one line of JSON for each, of what it left or of the error's sentence.

Arguments: calls, then behaviours. A process of its own, for some cells leave threads and processes behind. One that a
game spawns imports this module again, so what is large is imported where it is used.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence


def state() -> dict[str, object]:
    """What must be as before."""
    import numpy as np
    import torch

    return {
        "folder": current_folder(),
        "argv": list(sys.argv),
        "streams": [id(sys.stdin), id(sys.stdout), id(sys.stderr), sys.stdout.closed],
        "recursion": sys.getrecursionlimit(),
        "environment": {name: os.environ.get(name) for name in ("HOME", "PATH", "CUDA_VISIBLE_DEVICES")},
        "numpy": np.geterr(),
        "warnings": [one[0] for one in warnings.filters if one[0] == "error"],
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "alarm": signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        "socket": socket.getdefaulttimeout(),
        "logging": logging.root.manager.disable,
        "collects": gc.isenabled(),
        "hook": str(sys.excepthook),
        "torch": [
            str(torch.get_default_dtype()),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            str(torch.zeros(1).device),
        ],
        "threads": sum(not thread.daemon for thread in threading.enumerate()),
        "process": os.getpid(),
    }


def current_folder() -> int:
    """The current folder by its number, as it may have been removed."""
    return os.stat(".").st_ino  # noqa: PTH116


def play(how: str, when: str) -> str:
    """The whole life of two games; returns the sentence of the error that ended it, "" if none did."""
    import numpy as np

    from league.envs.protocol import EnvConfig, EnvError
    from league.envs.registry import make

    try:
        env = make(EnvConfig("tests.envs.guard.wild_games:make", {"how": how, "when": when}), num_envs=2)
        with contextlib.closing(env):
            env.keep_frames()  # type: ignore[attr-defined]
            env.reset(0)
            env.frame(0, ended=False)  # type: ignore[attr-defined]
            for _ in range(4):
                env.step(np.zeros(4, np.int64))
    except EnvError as error:
        return str(error)
    return ""


def cells(when: str, behaviours: Sequence[str]) -> Iterator[dict[str, object]]:
    """What each behaviour in a call has left changed, and the sentence of its error."""
    from league.agents.torch_runtime import prepare_process
    from league.envs.guard import foreign_code
    from tests.envs.guard.wild_games import DOOMED

    prepare_process()
    for how in behaviours:
        foreign_code._kept.clear()  # each behaviour is a game of its own
        os.chdir(tempfile.mkdtemp(prefix=DOOMED))
        before = state()
        sentence = play(how, when)
        after = state()
        changed = sorted(name for name, value in before.items() if after[name] != value)
        yield {"how": how, "changed": changed, "sentence": sentence, "compiler": "torch._inductor" in sys.modules}


def main() -> None:
    from league.processes.stop_signals import stop_signals

    calls, *behaviours = sys.argv[1:]
    with stop_signals(lambda number, frame: None):
        for call in calls.split(","):
            for cell in cells(call, behaviours):
                print(json.dumps({"call": call, **cell}), flush=True)


if __name__ == "__main__":
    main()
