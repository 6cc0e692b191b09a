"""`league wandb sync` beside a stand-in for wandb's own command, which never ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.see.trackers import wandb_sync
from league.store.lock import start_ticks
from league.store.run_folder import RunFolder
from tests.league.commands import ROOT, wait_until

HANGS = """
import os, pathlib, time
pathlib.Path(os.environ["MARK"] + ".new").write_text(str(os.getpid()))
os.rename(os.environ["MARK"] + ".new", os.environ["MARK"])
time.sleep(600)
"""


def waiting_run(tmp_path: Path) -> RunFolder:
    """A run with one offline run, and the stand-in beside it."""
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: tic_tac_toe}")
    (folder.wandb_path / "offline-run-20260101_000000-abc").mkdir(parents=True)
    (tmp_path / "stand_in" / "wandb").mkdir(parents=True)
    (tmp_path / "stand_in" / "wandb" / "__init__.py").touch()
    (tmp_path / "stand_in" / "wandb" / "__main__.py").write_text(HANGS)
    return folder


def test_a_silent_server_is_named_and_the_wait_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, said = waiting_run(tmp_path), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there once it is closed
    for name, value in {
        "PYTHONPATH": str(tmp_path / "stand_in"),
        "WANDB_API_KEY": "0" * 40,
        "WANDB_BASE_URL": f"http://127.0.0.1:{port}",
        "MARK": str(tmp_path / "pid"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(wandb_sync, "SAY_EVERY_S", 0.1)
    monkeypatch.setattr(wandb_sync, "DEADLINE_S", 0.3)
    with pytest.raises(LeagueError, match="try again later"):
        wandb_sync.sync_run(folder.path, say=said.append)
    assert "does not answer" in said[0] and "refused" in said[0]
    assert [line for line in said if line.startswith("still uploading")] != []


def test_an_upload_ends_with_the_command_that_started_it(tmp_path: Path) -> None:
    folder = waiting_run(tmp_path)
    mark = tmp_path / "pid"
    command = subprocess.Popen(
        [sys.executable, "-c", "from league.cli.main import main; main()", "wandb", "sync", str(folder.path)],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path / 'stand_in'}:{ROOT}",
            "WANDB_API_KEY": "0" * 40,
            "MARK": str(mark),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(mark.exists, "the upload")
        command.terminate()
        command.wait(60.0)
        wait_until(lambda: not start_ticks(int(mark.read_text())), "the end of the upload")
    finally:
        command.kill()
        command.wait()
