"""`league serve-policy` as a process: the clients of the documents play by it, and a signal ends it in order."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from league.agents.nets.config import NetworkConfig
from tests.docs.pages import ROOT
from tests.league.commands import DEADLINE_S, league, spawn
from tests.league.judge.matches.eval_runs import FOUR, MadeRun, constant_network

EXAMPLES = ROOT / "docs" / "examples" / "serving"


def ran(*command: str) -> str:
    found = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_both_clients_play_and_a_signal_ends_the_server(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR, network=NetworkConfig(hidden=(8,)))
    made.snapshot("main-0", constant_network(made.config, action=5))
    server = spawn("serve-policy", made.close(), "--listen", "127.0.0.1:0")
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"served at (\S+) \(token (\S+)\)", said)
        assert found, said
        assert ran(sys.executable, str(EXAMPLES / "play.py"), *found.groups()) == "5"
        if shutil.which("node"):
            assert ran("node", str(EXAMPLES / "play.mjs"), *found.groups()) == "5"
    finally:
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=DEADLINE_S)
    assert server.returncode in (0, -signal.SIGTERM), errors
    assert "Traceback" not in errors


def test_an_address_that_cannot_be_listened_on_is_one_sentence(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR, network=NetworkConfig(hidden=(8,)))
    made.snapshot("main-0", constant_network(made.config, action=5))
    run = league("serve-policy", made.close(), "--listen", f"unix:{tmp_path}/no/such/folder.sock")
    assert run.code == 2 and "--listen" in run.err
