"""`league wandb sync` beside a stand-in for wandb's own command, which never ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from league.store.lock import start_ticks
from league.store.run_folder import RunFolder
from tests.league.commands import ROOT, wait_until

HANGS = """
import os, pathlib, time
pathlib.Path(os.environ["MARK"] + ".new").write_text(str(os.getpid()))
os.rename(os.environ["MARK"] + ".new", os.environ["MARK"])
time.sleep(600)
"""


def test_an_upload_ends_with_the_command_that_started_it(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: tic_tac_toe}")
    (folder.wandb_path / "offline-run-20260101_000000-abc").mkdir(parents=True)
    (tmp_path / "stand_in" / "wandb").mkdir(parents=True)
    (tmp_path / "stand_in" / "wandb" / "__init__.py").touch()
    (tmp_path / "stand_in" / "wandb" / "__main__.py").write_text(HANGS)
    mark = tmp_path / "pid"
    command = subprocess.Popen(
        [sys.executable, "-c", "from league.cli import main; main()", "wandb", "sync", str(folder.path)],
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
        command.wait(10.0)
        wait_until(lambda: not start_ticks(int(mark.read_text())), "the end of the upload", deadline_s=10.0)
    finally:
        command.kill()
        command.wait()
