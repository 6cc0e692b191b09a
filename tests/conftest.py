"""The start of every test: `tests.oracles` is importable, torch has one thread, modules are compiled once."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

gc.disable()  # until all is imported: a third of the time of a collection went into searches for garbage
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read once, when torch loads
_STATE = tempfile.TemporaryDirectory(prefix="league-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name  # the user's own key stays out of the tests, and the tests' out of theirs

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import tests.envs.probe_ids  # noqa: E402, F401 - as soon as the path is there
from tests.forked_python import look_briefly, start_servers  # noqa: E402

MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 << 30
"""The place of the folders of tests, and its least room: a run syncs each file, and a disk takes eight milliseconds."""


@pytest.hookimpl(tryfirst=True)  # before pytest makes its folder
def pytest_configure(config: pytest.Config) -> None:
    """If tests run in several processes: they share servers of forks, and folders in memory where it has room."""
    if not config.getoption("numprocesses", None):
        return
    start_servers()
    if config.option.basetemp or not MEMORY.is_dir():
        return
    if shutil.disk_usage(MEMORY).free > ROOM_BYTES:
        config.option.basetemp = tempfile.mkdtemp(prefix="league-tests-", dir=MEMORY)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Of several processes the first compiles the modules while the others wait: each would compile all of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with Path(__file__).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(tryfirst=True)  # before their names take the group up
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what a fixture makes run in one process: in several, each would make it for itself."""
    for item in items:
        places = sorted(shared_by(item), key=len)
        if places and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(places[0]))


def shared_by(item: pytest.Item) -> Iterator[str]:
    """The files and folders in which fixtures of a test are shared with others."""
    if isinstance(item, pytest.Function):
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            yield from (one.baseid for one in fixtures if one.baseid and one.scope != "function")


def pytest_collection_finish() -> None:
    """Take what was imported, a million objects that stay out of every search for garbage; runs look briefly."""
    from tests.known_games import remember_games

    look_briefly()
    remember_games()
    gc.collect()
    gc.freeze()
    gc.enable()
