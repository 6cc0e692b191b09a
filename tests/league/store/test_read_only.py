"""Whatever only reads a run works where nothing can be written, and says so in a sentence where it cannot."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from league.errors import StorageError
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

ROOT = Path(__file__).parents[3]
MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
READS = """
import sys
from pathlib import Path
import league
from league.see.reports.ratings import read_ratings
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.see.reports.lineage import read_lineage
from league.see.reports.payoff import read_payoff
for run in map(Path, sys.argv[1:]):
    print("RUN", run.name)
    try:
        (run / "written").touch()
    except OSError:
        print("nothing can be written")
    print("games", read_status(run).league.games)
    print("problems", verify_run(run).problems)
    read_ratings(run), read_payoff(run), read_lineage(run)
    print("policy", league.load_policy(run).__class__.__name__)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=600)
    return folder / "run"


def on_a_read_only_mount(run: Path, *command: str) -> str:
    """What a command prints while nothing can be written in `run`, not even by root."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare here")
    wrapped = [unshare, "-rm", "sh", "-c", MOUNTED, str(run)]
    if subprocess.run([*wrapped, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mounts")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [*wrapped, *command], capture_output=True, text=True, check=False, cwd=ROOT, timeout=120, env=environment
    )
    return ran.stdout + ran.stderr


MODES = ("as it was left", "wal", "killed")


@pytest.fixture(scope="module")
def told(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Mode -> what a reader of a run that was left like that prints; one process reads all of them."""
    folder, writers = tmp_path_factory.mktemp("runs"), []
    for mode in MODES:
        run = folder / mode
        if mode == "killed":  # as the end of the process leaves it
            run = tmp_path_factory.mktemp("killed") / mode
        shutil.copytree(made, run)
        if mode == "as it was left":
            continue
        writers.append(sqlite3.connect(run / "journal.db", isolation_level=None))
        writers[-1].execute("PRAGMA journal_mode = WAL")
        if mode == "wal":  # as a reader that stayed open leaves it
            continue
        writers[-1].execute("BEGIN IMMEDIATE")
        writers[-1].execute("UPDATE events SET wall_time = 1.0 WHERE seq = 1")
        writers[-1].execute("COMMIT")
        shutil.copytree(run, folder / mode)
        assert (folder / mode / "journal.db-wal").stat().st_size
    for writer in writers:
        writer.close()
    said = on_a_read_only_mount(folder, sys.executable, "-c", READS, *(str(folder / mode) for mode in MODES))
    return {part.partition("\n")[0]: part for part in said.split("RUN ")}


@pytest.mark.parametrize("mode", MODES)
def test_a_run_on_a_read_only_file_system_is_read(told: dict[str, str], mode: str) -> None:
    assert mode in told, told
    assert "nothing can be written" in told[mode]
    assert "problems ()" in told[mode] and "policy LoadedPolicy" in told[mode], told


def test_events_that_only_a_write_ahead_log_holds_are_never_passed_over(made: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(made, run)
    with sqlite3.connect(run / "journal.db") as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE events SET wall_time = 1.0 WHERE seq = 1")
        writer.commit()
        shutil.copytree(run, tmp_path / "copy")
    writer.close()
    (tmp_path / "copy" / "journal.db-shm").unlink()
    status = "from league.cli.main import main; import sys; sys.argv = ['league', 'status', sys.argv[1]]; main()"
    told = on_a_read_only_mount(tmp_path / "copy", sys.executable, "-c", status, str(tmp_path / "copy"))
    assert "Traceback" not in told
    assert "games" in told or "Copy the run folder to where it may be written" in " ".join(told.split()), told


def test_a_stopped_run_is_one_file_that_any_copy_can_be_read_from(made: Path) -> None:
    assert not list(made.glob("journal.db-*"))
    with sqlite3.connect(made / "journal.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_a_configuration_that_is_not_utf_8_is_reported_in_a_sentence(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    path.write_bytes(path.read_bytes()[:40] + b"\xff" + path.read_bytes()[41:])
    with pytest.raises(StorageError, match=r"config\.yaml is not text in UTF-8 \(byte 40\)"):
        RunFolder.open(tmp_path / "run").read_config()
