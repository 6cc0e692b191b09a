"""Rating pools on the page: their ratings, the tests of one policy against another, and the workers at play."""

from __future__ import annotations

import threading

import msgspec
from fastapi import APIRouter, Response

from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool
from league.judge.pools.table import PoolTable, pool_table
from league.judge.pools.tests_table import PoolTestRow, test_rows
from league.run.operations.catalogue import Argument
from league.see.page.guard import Keys
from league.see.page.runs.deeds import POOL_DEEDS
from league.see.page.runs.library import Library

MAX_KEPT = 16


class BatchInHand(msgspec.Struct, frozen=True):
    """A batch that a worker plays. test: its number, 0 for the ratings alone."""

    worker: str
    first: str
    second: str
    games: int
    test: int


class PoolPicture(msgspec.Struct, frozen=True):
    """A pool. tests: newest first. hands: being played. arguments: of the form that begins a test."""

    name: str
    path: str
    table: PoolTable
    tests: list[PoolTestRow]
    hands: list[BatchInHand]
    arguments: tuple[Argument, ...]


class PoolPictures:
    """Pictures of pools, each made again once its journal has changed; may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, bytes]] = {}

    def get(self, name: str, folder: PoolFolder) -> bytes:
        """The picture of a pool, as JSON.

        Raises:
          MissingRun, JournalError: it cannot be read.
        """
        with self._lock:
            mark = _mark_of(folder)
            known = self._kept.get(name)
            if known is None or known[0] != mark:
                known = self._kept[name] = (mark, msgspec.json.encode(_picture(name, folder)))
                if len(self._kept) > MAX_KEPT:
                    self._kept.pop(next(iter(self._kept)))
            return known[1]


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    del keys
    pictures = PoolPictures()

    @router.get("/pools/{name}")
    def pool(name: str) -> Response:
        return Response(pictures.get(name, library.pool(name)), media_type="application/json")


def _mark_of(folder: PoolFolder) -> object:
    """Sizes and times of the files of the journal."""
    found = sorted(folder.path.glob("journal-*.db*"))
    return [(path.name, stat.st_size, stat.st_mtime_ns) for path in found for stat in (path.stat(),)]


def _picture(name: str, folder: PoolFolder) -> PoolPicture:
    state = read_pool(folder)
    names = [policy.name for policy in state.policies]
    hands = [
        BatchInHand(lease.worker, names[lease.home], names[lease.away], lease.games, lease.test)
        for lease in state.leases.values()
        if lease.token == state.token
    ]
    arguments = POOL_DEEDS["test"].arguments
    return PoolPicture(name, str(folder.path), pool_table(state), test_rows(state), hands, arguments)
