"""Every writer of a run's files under every fault at every point: what is acknowledged stays, what is torn is found."""

from __future__ import annotations

import ast
import contextlib
import errno
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.store.storage import FAULT_POINTS, Storage
from tests.league.store.power_cut import PowerCut
from tests.league.store.store_faults import DieAt, Died, FailAt, Recorder
from tests.league.store.write_sites import SITES, Site

ROOT = Path(__file__).parents[3]
each_site = pytest.mark.parametrize("name", SITES)


@pytest.fixture(autouse=True)
def own_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "set by `prepared`")


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder in memory where there is one: what is synced is counted here, and need not be waited for."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def prepared(site: Site, root: Path) -> Iterator[Path]:
    """Folders in which the writer has something to write over, one after the other."""
    for number in range(1_000):
        folder = root / str(number)
        folder.mkdir(parents=True)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        site.prepare(folder)
        yield folder


def points_of(site: Site, folder: Path) -> list[str]:
    recorder = Recorder()
    site.write(folder, Storage(hook=recorder))
    assert site.read(folder) == "new"
    return recorder.passed


def check_healed(site: Site, folder: Path) -> None:
    """The same write succeeds once the fault is over."""
    with contextlib.suppress(LeagueError):  # it is there already
        site.write(folder, Storage())
    assert site.read(folder) == "new"


@each_site
def test_death_at_any_point_leaves_the_old_or_the_new(name: str, root: Path) -> None:
    site = SITES[name]
    folders = prepared(site, root)
    for index in range(len(points_of(site, next(folders)))):
        folder = next(folders)
        with pytest.raises(Died):
            site.write(folder, Storage(hook=DieAt(index)))
        assert site.read(folder) in ("old", "new")
        check_healed(site, folder)


@each_site
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["disk full", "input or output error"])
def test_an_error_at_any_point_is_named_and_loses_nothing(name: str, code: int, root: Path) -> None:
    site = SITES[name]
    folders = prepared(site, root)
    for index in range(len(points_of(site, next(folders)))):
        storage = Storage(hook=FailAt(index, code))
        check_error(site, next(folders), functools.partial(site.write, storage=storage))


@each_site
def test_a_failing_sync_is_named_and_loses_nothing(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = SITES[name]
    folders = prepared(site, root)
    for index in range(1_000):
        left = iter(range(index + 1))

        def sync(descriptor: int, left: Iterator[int] = left, index: int = index) -> None:
            if next(left, None) == index:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        def write(folder: Path, sync: Callable[[int], None] = sync) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", sync)
                patch.setattr(os, "fdatasync", sync)
                site.write(folder, Storage())

        check_error(site, next(folders), write)
        if next(left, None) is not None:  # fewer syncs than that
            break


def check_error(site: Site, folder: Path, write: Callable[[Path], object]) -> None:
    try:
        write(folder)
    except LeagueError:
        assert site.read(folder) in ("old", "new")
    else:
        assert site.read(folder) == "new" or not site.durable
    check_healed(site, folder)


@each_site
def test_a_loss_of_power_keeps_what_is_acknowledged_and_what_is_torn_is_found(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = SITES[name]
    folders = prepared(site, root)
    num_points = len(points_of(site, next(folders)))
    for index in range(num_points + 1):
        folder, power = next(folders), PowerCut()
        with power.watching(monkeypatch), contextlib.suppress(Died):
            site.write(folder, Storage(hook=DieAt(index)))
        power.strike(folder)
        assert site.read(folder) in site.outcomes
        if site.durable and index == num_points:
            assert site.read(folder) == "new"
        check_healed(site, folder)


RAW_WRITES = {
    "league/store/storage.py": "the home of raw writes",
    "league/store/lock.py": "a lock is held by an open file",
    "league/store/journal.py": "sqlite makes the journal under a temporary name",
    "league/policies/trust.py": "the key of a user is made once, and a link decides between two that make it",
    "league/http/listeners.py": "a socket is removed",
    "agents/nets/kernels/compiled.py": "compiled code in the cache of the user, made again where it is not whole",
    "agents/acting/central/socket_client.py": "rows in shared memory, which is no file",
    "league/run/control/door_file.py": "the private folder of sockets",
    "league/run/control/lifecycle.py": "the console log is the output of the run",
    "league/run/control/page_process.py": "the log of the page is the output of its process",
    "league/run/control/supervisor.py": "a long console log is moved aside",
    "league/cli/evaluation.py": "a file that the user names and can have written again",
    "league/cli/judging.py": "a file that the user names and can have written again",
    "league/cli/replaying.py": "a file that the user names and can have written again",
    "league/deploy/export/numpy_file.py": "a file is tried in a folder of its own, gone with it",
    "league/policies/fetched/zoo_index.py": "a cache: a package gets its name once all of its digests are right",
    "league/see/page/runs/command_output.py": "the file of a command in a folder of its own, read back",
    "league/see/page/runs/deeds.py": "a configuration for a command that copies it, gone with it",
    "league/see/games/video.py": "a film is made in a folder of its own, and read back",
    "league/cli/static_report.py": "a file that the user names and can have written again",
    "league/operate/history/backup.py": "a backup that was cut off between two renames gets its name again",
    "agents/learner/replicas/asynchronous_gossip.py": "a lock between replicas is held by an open file",
    "agents/learner/replicas/shard_link.py": "a socket is removed",
    "agents/learner/replicas/shared_vector.py": "memory shared by replicas, gone with them",
    "agents/learner/workers/free_group.py": "the folder of memory shared by replicas, gone with them",
    "agents/learner/workers/row_memory.py": "rows in memory shared with a replica, gone with it",
    "agents/learner/workers/worker_process.py": "memory shared by replicas, whose owner is gone",
    "agents/learner/workers/worker_group.py": "the meeting place of workers, gone with them",
    "agents/replay/row_files.py": "rows of a replay, each with a checksum of its own; a torn one is dropped",
    "envs/workers/child.py": "memory shared with whoever started the games, which is no file",
    "envs/workers/process.py": "memory shared with a game",
    "envs/workers/sleeping_fork.py": "standard output and error of a fork",
    "league/operate/chaos/faults.py": "a run is broken on purpose, from outside",
    "league/operate/chaos/follower.py": "the log of a command that is watched",
    "league/cli/chaos.py": "a report that can be made again",
    "league/judge/probes/worker.py": "answers go to the process that asked",
    "league/lab/trials/process_runner.py": "the log of a trial is the output of its process",
    "league/see/trackers/uploading.py": "prints go nowhere",
    "league/hosts/on_ray/cluster.py": "the folder of Ray",
    "league/hosts/on_ray/fork_server.py": "a setting of the kernel, which is no file",
    "league/hosts/on_ray/idle_agent.py": "the folder of Ray, whose raylet waits for these files",
    "league/hosts/on_ray/nodes/shipped_files.py": "copies that travel to the machines of a cluster",
    "league/processes/reaper.py": "the folder of Ray",
}
"""Files with writes of their own, and why they need no fault points. A new one belongs into the storage module."""

WRITES = {"write_text", "write_bytes", "unlink", "rename", "mkdir", "rmdir", "touch", "symlink_to", "hardlink_to"}
MODULES = {
    "os": {"pwrite", "replace", "rename", "remove", "unlink", "truncate", "ftruncate", "link", "mkdir", "fdopen"},
    "shutil": {"copyfile", "copy", "copy2", "copytree", "rmtree", "move", "copyfileobj"},
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory"},
}
WORDS = re.compile(r"open\(|" + "|".join(rf"{name}\(" for name in sorted(WRITES.union(*MODULES.values()))))
"""A file without one of these is not looked at further."""


def raw_writes(path: Path) -> Iterator[int]:
    """Lines of a file that write to the disk."""
    text = path.read_text()
    if not WORDS.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Attribute):
            module = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr in MODULES.get(module, WRITES):
                yield node.lineno
        is_open = (isinstance(function, ast.Name) and function.id == "open") or (
            isinstance(function, ast.Attribute) and function.attr in ("open", "fdopen")
        )
        given = [*node.args, *(word.value for word in node.keywords)]
        modes = [item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if is_open and any(len(mode) <= 3 and set(mode) & set("wax+") for mode in modes):
            yield node.lineno


def test_every_raw_write_is_in_the_storage_module_or_has_its_reason() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): list(raw_writes(path))
        for package in ("league", "agents", "envs")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    strange = {name: lines for name, lines in found.items() if lines and name not in RAW_WRITES}
    assert not strange, "a write outside the storage module has no fault points"
    assert set(RAW_WRITES) == {name for name, lines in found.items() if lines}


def test_the_sites_pass_every_point_but_those_of_whole_folders(root: Path) -> None:
    passed: set[str] = set()
    for name, site in SITES.items():
        passed.update(points_of(site, next(prepared(site, root / name.replace(" ", "-")))))
    assert set(FAULT_POINTS) - passed == {"swap.before_exchange", "swap.before_fsync", "sweep.before_remove"}
