"""A live run without hosts: a real journal, operator and control door, whose loop a thread turns; and its page."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from league.config.loading import parse_config
from league.config.run_config import ControlConfig
from league.http.address import Listening
from league.http.token_file import Tokens
from league.run.control.door import open_door
from league.run.operations.operator import Operator
from league.see.page.guard import Keys
from league.see.page.runs.library import Library
from league.see.page.server import listen, page_server
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from tests.league.see.page.page_runs import write_run, write_status


@dataclass(frozen=True)
class TwoActorHosts:
    """The hosts of a run that has no daemon."""

    actor_hosts: tuple[str, ...] = ("actor-0", "actor-1")
    learner_hosts: tuple[str, ...] = ()


@contextlib.contextmanager
def live_run(path: Path, *, leases: int = 60) -> Iterator[RunFolder]:
    """A run whose operations are carried out as by its daemon."""
    folder = write_run(path, leases=leases, live=True)
    league = JournaledLeague.open(folder.journal_path, at_least_seq=0, wall_time=time.time)
    config = parse_config(folder.read_config(), source="made")
    operator = Operator(folder, league, config, TwoActorHosts())
    stop = threading.Event()

    def turn() -> None:
        while not stop.wait(0.01):
            operator.carry_out(league.execute_all)
            league.commit()
            operator.confirm()

    loop = threading.Thread(target=turn)
    with open_door(folder, operator, ControlConfig(), say=lambda words: None):
        loop.start()
        try:
            yield folder
        finally:
            stop.set()
            loop.join()
            league.close()
            write_status(folder, live=False)


@dataclass(frozen=True)
class Served:
    """A page that is being served. url, reader_url: with the token of an operator, and of a reader."""

    url: str
    reader_url: str
    port: int


@contextlib.contextmanager
def served(path: Path) -> Iterator[Served]:
    """The page of a run or of a folder, on a free port."""
    library = Library(path)
    where = Listening()
    listener = listen(where)
    port = listener.getsockname()[1]
    server = page_server(library, Keys(Tokens("the-token", "the-reader"), port), where)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        base = f"http://127.0.0.1:{port}/#token="
        yield Served(f"{base}the-token", f"{base}the-reader", port)
    finally:
        server.should_exit = True
        thread.join(10.0)
        library.close()
