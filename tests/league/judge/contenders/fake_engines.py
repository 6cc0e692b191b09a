"""Programs that speak UCI and GTP, made for the tests, and fail when they are told to."""

from __future__ import annotations

import sys
from pathlib import Path

GTP = """#!{python} -IS
import os, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
mode = options.get("--fail", "")
with open({log!r}, "a") as log:
    log.write(f"{{os.getpid()}}\\n")
if mode == "start":
    sys.exit(1)
played = 0
for line in sys.stdin:
    word, *rest = line.split()
    answer = ""
    if word == "name":
        answer = "Fake Go"
    elif word == "version":
        answer = options.get("--version", "1")
    elif word == "clear_board":
        played = 0
    elif word == "play":
        played += 1
    elif word == "genmove":
        if mode == "crash" and played >= 4:
            sys.exit(1)
        if mode == "hang" and played >= 4:
            time.sleep(60)
        answer = "A1" if mode == "illegal" and played >= 4 else "resign" if mode == "resign" else "PASS"
        played += 1
    elif word not in ("boardsize", "komi"):
        print("? unknown command\\n", flush=True)
        continue
    print(f"= {{answer}}\\n", flush=True)
"""

UCI = """#!{python}
import os, sys
with open({log!r}, "a") as log:
    log.write(f"{{os.getpid()}}\\n")
moves, fail = [], False
for line in sys.stdin:
    words = line.split()
    if words[0] == "uci":
        print("id name Fake Chess\\noption name Fail type check default false\\nuciok", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
    elif words[0] == "setoption":
        fail = words[-1] == "true"
    elif words[0] == "position":
        moves = words[3:]
    elif words[0] == "go":
        if fail and len(moves) >= 4:
            sys.exit(1)
        import chess
        board = chess.Board()
        for move in moves:
            board.push_uci(move)
        print("bestmove", min(move.uci() for move in board.legal_moves), flush=True)
    elif words[0] == "quit":
        break
"""


def made(folder: Path, source: str) -> tuple[Path, Path]:
    """The program, and the file to which each of its processes adds its pid."""
    log = folder / "pids"
    log.touch()
    program = folder / "fake-engine"
    program.write_text(source.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    return program, log
