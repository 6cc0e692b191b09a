"""The page beside a real run for ten minutes: what its reader holds stays, and no click is lost in a game."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Row
from benchmarks.watch.rows_page import served
from league.store.run_folder import RunFolder

LIVE_S, LOOK_S, CLICK_S = 600.0, 0.5, 4.0
HELD_S = 0.4
"""Seconds for which the button of the mouse is held: the page may be drawn again meanwhile."""
SCROLLED, WAIT_MS = 200, 60_000
BEGUN_S = 180.0


@dataclass
class Seen:
    """A page as a reader saw it. places: of the overview, every half second. heap: bytes of the overview's scripts."""

    places: list[float] = field(default_factory=list)
    clicks: int = 0
    lost: int = 0
    games: int = 0
    pictures: int = 0
    heap: list[float] = field(default_factory=list)


def live_page(folder: Path) -> list[Row]:
    """A run of Connect Four trains; one page shows its overview, and in another a game is played by the mouse."""
    report = Report()
    if shutil.which("chromium") is None:
        report.add("clicks that were lost", None, "", at_most=0)
        return report.rows
    with _trained(folder / "live") as run, served(run) as (address, _, _):
        seen = _watched(address.url)
    moved = sum(place != SCROLLED for place in seen.places)
    report.add("pictures of the overview while it was watched", seen.pictures, "")
    report.add("positions read, one every half second", len(seen.places), "")
    report.add("positions that had moved", moved, "", at_most=0)
    report.add("clicks in games beside it", seen.clicks, "")
    report.add("clicks that were lost", seen.lost, "", at_most=0)
    report.add("games played to their end by the mouse", seen.games, "")
    report.add("memory of the overview's scripts, last against first", seen.heap[-1] / seen.heap[0], "x")
    return report.rows


@contextlib.contextmanager
def _trained(path: Path) -> Iterator[RunFolder]:
    """A run that trains, once it has a journal."""
    settings = [f"budget.seconds={LIVE_S + BEGUN_S:g}", "wandb.mode=disabled", "runtime.kind=inprocess"]
    words = [word for setting in settings for word in ("-s", setting)]
    command = [sys.executable, "-m", "league", "train", "connect_four", "--run-dir", str(path), *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + BEGUN_S
        while not (path / "metrics.jsonl").is_file() and time.monotonic() < until:
            time.sleep(LOOK_S)
        yield RunFolder(path)
    finally:
        process.terminate()
        process.wait(60.0)


def _watched(url: str) -> Seen:
    from playwright.sync_api import sync_playwright

    seen = Seen()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(WAIT_MS)
        overview, play = context.new_page(), context.new_page()
        overview.goto(url)
        overview.wait_for_selector("main[data-shown=overview] canvas")
        play.goto(url.partition("#")[0])
        play.wait_for_selector("main[data-shown]")
        play.click("#nav-play")
        overview.bring_to_front()
        overview.evaluate(f"scrollTo(0, {SCROLLED})")
        until, next_click = time.monotonic() + LIVE_S, 0.0
        while time.monotonic() < until:
            overview.wait_for_timeout(1e3 * LOOK_S)
            seen.places.append(overview.evaluate("scrollY"))
            if time.monotonic() > next_click:
                next_click = time.monotonic() + CLICK_S
                play.bring_to_front()
                _click(play, seen)
                overview.bring_to_front()
                seen.heap.append(overview.evaluate("performance.memory.usedJSHeapSize"))
        seen.pictures = overview.evaluate("performance.getEntriesByName('shown').length")
        browser.close()
    return seen


def _click(page: Any, seen: Seen) -> None:
    """A move by the mouse, whose button is held for a while; a game that is over gives way to another."""
    if page.locator("#play-end").count() and not page.locator(".options button").count():
        seen.games += 1
        page.click("#play-end")
    if not page.locator("#play-end").count():
        page.select_option("#play-policy", "bot:random")
        page.click("main button[type=submit]")
        page.wait_for_selector(".target")
    target, moves = page.locator(".target").first, page.locator(".moves li").count()
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(1e3 * HELD_S)
    page.mouse.up()
    seen.clicks += 1
    try:
        page.wait_for_function(
            "before => document.querySelectorAll('.moves li').length > before", arg=moves, timeout=15_000
        )
    except Exception:  # boundary: Playwright's own error of a click that had no effect
        seen.lost += 1


ROWS: dict[str, Callable[[Path], list[Row]]] = {"live_page": live_page}
"""Name -> function that measures in an empty folder."""
