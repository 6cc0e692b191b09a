"""The page over a league of a thousand players and a million results: its requests, its first picture, its cost.

The last row runs the production daemon over simulated hosts, with an open page beside it and without one, in turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np

from benchmarks.durability.daemon_loop import carry
from benchmarks.report import Report, Row
from benchmarks.watch.rows_views import PLAYERS, RESULTS, large_league, meet, take_snapshots
from league.config.loading import parse_config
from league.config.run_config import dump_config
from league.core.state.events import EVENTS, LeaseFinished
from league.core.state.records import AssignmentOutcome
from league.core.state.state import to_plain
from league.http.token_file import Tokens
from league.run.monitor import names
from league.see.page.page_file import PageAddress
from league.see.page.page_parts import SECTIONS
from league.store.journal import Journal
from league.store.lock import this_process
from league.store.run_folder import RunFolder, RunStatus

ROUTINE_EVENTS = 200_000
METRIC_ROWS = 40
TIMES = 40
REQUIRED_MS, REQUIRED_PICTURE_S = 100.0, 1.0
WAIT_S = 600.0
LOOP_HOSTS, LOOP_LEASE_S, LOOP_S, LOOP_TURNS = 200, 2.0, 15.0, 4
QUERIES = {
    "table": ({}, {"show": "policies"}, {"text": "main-agent-1"}),
    "player": ({}, {"player": "main-7"}),
    "events": ({}, {"kind": "all"}, {"text": "main-7-s1"}, {"kind": "SnapshotAdded", "before": "5000"}),
}
"""Section -> queries beside the plain one that are asked in turn."""


def requests(folder: Path) -> list[Row]:
    """Time of every section's request, all sections mixed, as a client on this machine sees it."""
    report = Report()
    run = large_run(folder / "large")
    with served(run) as (address, server, began):
        report.add("time until the page answers", time.monotonic() - began, "s")
        with entered(address) as client:
            taken = {name: list[float]() for name in SECTIONS if name != "compare"}
            wait_for_ratings(client)
            size = f"{PLAYERS:,} players, {RESULTS:,} results"
            picture = first_picture(address)
            report.add(f"first picture in Chromium, {size}", picture, "s", at_most=REQUIRED_PICTURE_S)
            cpu_s = processor_s(server)
            for _ in range(TIMES):
                for name, times in taken.items():
                    for query in QUERIES.get(name, ({},)):
                        times.append(timed(client, f"/api/v1/runs/large/sections/{name}", query))
            cost = (processor_s(server) - cpu_s) / sum(map(len, taken.values()))
            report.add(f"processor time of the server for a request, {size}", 1e3 * cost, "ms")
            for name, times in taken.items():
                for part, label in ((50, "p50"), (95, "p95"), (99, "p99")):
                    at_most = REQUIRED_MS if part == 95 else None
                    report.add(f"{name}, {label}, {size}", quantile(times, part), "ms", at_most=at_most)
            everything = [each for times in taken.values() for each in times]
            report.add(f"all requests, p95, {size}", quantile(everything, 95), "ms", at_most=REQUIRED_MS)
    return report.rows


def large_run(path: Path) -> RunFolder:
    """A run folder with that many players and results, routine events, and metrics of every player."""
    config = parse_config("env: {id: connect_four}\nwandb: {mode: disabled}", source="the benchmark")
    run = RunFolder.create(path, config_yaml=dump_config(config))
    league = large_league(run.journal_path)
    take_snapshots(league)
    meet(league.state, np.random.default_rng(0))
    players = list(league.state.players)
    league.close()
    journal = Journal.open(run.journal_path, events=EVENTS, at_least_seq=0)
    filler = [_finished(number) for number in range(1_000)]
    for _ in range(ROUTINE_EVENTS // len(filler)):
        journal.append(filler, wall_time=1.0)
        journal.commit()
        journal.compact()
    # The state is stored as of the last event; the results stand in it alone.
    journal.save_state(json.dumps(to_plain(league.state), separators=(",", ":")).encode())
    journal.close()
    now = time.time()
    run.write_status(RunStatus(this_process(), "running", now, now, 1))
    with run.metrics_path.open("w") as file:
        metrics = (names.LOSS_POLICY, names.LOSS_VALUE, names.ENTROPY, names.LAG_MEAN, names.RATING, names.SCORE)
        for row in range(METRIC_ROWS):
            values = {metric.of(player): float(row) for player in players for metric in metrics}
            values |= {names.STEPS_PER_S.name: 1e3, names.BEST_RATING.name: float(row)}
            file.write(json.dumps({"step": 1_000 * row, "time": float(row), "values": values}) + "\n")
    return run


def _finished(number: int) -> LeaseFinished:
    policies = (f"main-{number % 300}", f"main-{number % 300}-s0")
    zero = ((0, 0), (0, 0))
    outcome = AssignmentOutcome(policies, 20, 0, 400, zero, zero, (0.0, 0.0))
    return LeaseFinished(number + 1, 1, 400, (outcome,))


@contextlib.contextmanager
def served(run: RunFolder) -> Iterator[tuple[PageAddress, int, float]]:
    """The page of a run in a process of its own, the number of that, and when it was started."""
    began = time.monotonic()
    command = [sys.executable, "-m", "league", "serve", str(run.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        base, _, token = line.partition("/#token=")
        yield PageAddress(base, Tokens(token, "")), process.pid, began
    finally:
        process.terminate()
        process.wait(30.0)


@contextlib.contextmanager
def entered(address: PageAddress) -> Iterator[httpx.Client]:
    """A client with a session."""
    with httpx.Client(base_url=address.base, timeout=WAIT_S) as client:
        client.post("/api/v1/session", json={"token": address.tokens.operator}).raise_for_status()
        yield client


def processor_s(pid: int) -> float:
    """Processor seconds that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_ratings(client: httpx.Client) -> None:
    """Wait until what is computed beside the requests is there."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = client.get("/api/v1/runs/large/sections/table").json()
        if found["as_of"] and client.get("/api/v1/runs/large/sections/player").json()["is_whole"]:
            return
        time.sleep(0.5)
    raise TimeoutError(f"no ratings within {WAIT_S:g} s")


def timed(client: httpx.Client, path: str, query: dict[str, str]) -> float:
    """Milliseconds of one request."""
    began = time.perf_counter()
    answer = client.get(path, params=query)
    took = 1e3 * (time.perf_counter() - began)
    answer.raise_for_status()
    return took


def quantile(values: list[float], part: int) -> float:
    """That percentile of some values."""
    return statistics.quantiles(values, n=100)[part - 1]


def first_picture(address: PageAddress) -> float | None:
    """Median seconds in Chromium from the navigation to the drawn overview, by its own clock; None without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    taken: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(5):
            page = browser.new_context().new_page()
            page.goto(address.url, wait_until="commit")
            page.wait_for_selector("main[data-shown=overview]", timeout=1e3 * WAIT_S)
            taken.append(page.evaluate("() => performance.getEntriesByName('shown')[0].startTime") / 1e3)
            page.close()
        browser.close()
    return statistics.median(taken)


def daemon_loop(folder: Path) -> list[Row]:
    """Processor time of the daemon's loop for one lease, with an open page beside it against without one."""
    report = Report()
    costs: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * LOOP_TURNS):
        is_watched = turn % 4 in (1, 2)  # without, with, with, without: a machine that warms up favours neither
        place = folder / f"run-{turn}"
        with looked_at(place) if is_watched else contextlib.nullcontext():
            found = carry(place, hosts=LOOP_HOSTS, lease_s=LOOP_LEASE_S, seconds=LOOP_S, seed=turn)
        costs[is_watched].append(found.cpu_share / found.leases)
    alone, watched = (statistics.median(costs[is_watched]) for is_watched in (False, True))
    report.add("daemon's loop, processor time of a lease without a page", 1e3 * alone, "ms")
    report.add("daemon's loop with the page open, against without", watched / alone, "x", at_most=1.01)
    return report.rows


@contextlib.contextmanager
def looked_at(path: Path) -> Iterator[None]:
    """An open page of a run that is about to begin: it follows the news and reads a section every other second."""
    over = threading.Event()

    def look() -> None:
        while not (path / "journal.db").exists() and not over.is_set():
            time.sleep(0.05)
        with contextlib.ExitStack() as stack:
            address, _, _ = stack.enter_context(served(RunFolder(path)))
            client, listener = stack.enter_context(entered(address)), stack.enter_context(entered(address))
            stack.enter_context(listener.stream("GET", f"/api/v1/runs/{path.name}/news"))
            while not over.wait(2.0):
                client.get(f"/api/v1/runs/{path.name}/sections/overview").raise_for_status()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join(WAIT_S)


ROWS: dict[str, Callable[[Path], list[Row]]] = {"requests": requests, "page_and_daemon": daemon_loop}
"""Name -> function that measures in an empty folder."""
