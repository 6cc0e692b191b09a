"""From an empty folder to a run that is started, stopped, continued, forked and deleted, without a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from league.http.address import Listening
from league.http.token_file import token_in
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool
from league.judge.pools.pool import open_pool
from league.judge.pools.service.client import PoolClient
from league.judge.pools.service.run_command import serving, work
from league.run.control.lifecycle import row_of, take_down
from league.store.run_folder import RunFolder
from tests.browser.conftest import SIZES, check_axe
from tests.league.commands import league
from tests.league.see.page.live_page import served

DEED_MS = 90_000


@pytest.fixture
def runs_page(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Page]]:
    """The page of an empty folder; what it started is down in the end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = tmp_path / "runs"
    home.mkdir()
    troubles: list[str] = []
    with served(home) as page_server:
        context = chromium.new_context(viewport={"width": SIZES["desktop"][0], "height": SIZES["desktop"][1]})
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(page_server.url)
        yield home, page
        context.close()
    for path in home.glob("*/config.yaml"):
        take_down(path.parent, now=True, wait_s=60.0)
    assert troubles == []


def test_a_run_is_started_stopped_continued_forked_and_deleted(runs_page: tuple[Path, Page]) -> None:
    home, page = runs_page
    expect(page.get_by_text("There is no run here yet.")).to_be_visible()
    page.fill("#start-source", "tic_tac_toe")
    page.fill("#start-amount", "30")
    page.fill("#start-settings", "runtime.kind=inprocess\nwandb.mode=disabled")
    page.click("#start-fit")
    page.wait_for_selector("#start-name", timeout=DEED_MS)
    assert page.locator(".choices-made dt").count() > 15
    check_axe(page)
    page.fill("#start-name", "first")
    page.click("#start-do")
    page.wait_for_selector("#start-outcome .deed-began", timeout=DEED_MS)
    page.wait_for_selector("#choose-first")
    assert row_of(RunFolder(home / "first")).live
    check_axe(page)

    page.check("#choose-first")
    _deed(page, "stop", "games in hand end")
    assert not row_of(RunFolder(home / "first")).live
    _deed(page, "continue", "trains again")
    assert row_of(RunFolder(home / "first")).live

    page.click("#runs-fork")
    page.fill("#field-new", "second")
    page.click("#op-plan")
    expect(page.locator("#op-outcome")).to_contain_text("second begins as its past up to latest")
    page.click("#op-confirm")
    page.locator("#op-outcome .deed-began").click(timeout=DEED_MS)
    page.wait_for_selector("main[data-shown=overview]")
    assert page.inner_text("#run-name") == "second"

    page.click("#brand")
    page.uncheck("#choose-first")
    page.check("#choose-second")
    _deed(page, "delete", "for good")
    expect(page.locator("#choose-second")).to_have_count(0)
    assert sorted(path.name for path in home.iterdir()) == ["first"]


def test_a_test_is_asked_for_watched_and_decided_with_two_workers(runs_page: tuple[Path, Page]) -> None:
    """The workers join a served pool by its address and token, as on other machines."""
    home, page = runs_page
    path = home / "ttt"
    assert league("pool", "init", path, "--game", "tic_tac_toe").code == 0
    assert league("pool", "add", path, "bot:tactical", "bot:mcts:5").code == 0
    page.locator(".pool-link").click()
    page.wait_for_selector("main[data-shown=pool]")
    expect(page.get_by_text("Nobody plays.")).to_be_visible()
    page.fill("#ask-first", "bot:tactical")
    page.fill("#ask-second", "bot:random")
    page.fill("#ask-sprt", "elo0=0 elo1=100")
    page.fill("#ask-reason", "is it stronger?")
    page.click("#ask-do")
    page.locator("#test-1").click(timeout=DEED_MS)
    expect(page.locator("#pool-test")).to_contain_text("playing stronger by 100 Elo rather than 0")
    check_axe(page)
    token, stop = token_in(path / "token", make=True), threading.Event()

    def join(url: str, name: str) -> None:
        with PoolClient(url, token, worker=name, still=lambda: not stop.is_set(), pause=stop.wait) as client:
            work(client, still=lambda: not stop.is_set(), idle=stop.wait)

    with open_pool(PoolFolder(path)) as pool, serving(pool, token, Listening()) as url:
        workers = [threading.Thread(target=join, args=(url, name)) for name in ("ann", "bob")]
        for worker in workers:
            worker.start()
        try:
            expect(page.locator("#pool-test")).to_contain_text("H1 accepted", timeout=DEED_MS)
        finally:
            stop.set()
            for worker in workers:
                worker.join(30.0)
    account = read_pool(PoolFolder(path)).tests[1]
    assert (account.outcome, account.test.reason) == ("H1", "is it stronger?") and account.games >= 8
    check_axe(page)


def _deed(page: Page, name: str, words: str) -> None:
    """Do a deed to the ticked runs, after what it would do is read, and wait for its end."""
    before = page.locator(".deed").count()
    page.click(f"#runs-{name}")
    expect(page.locator(".asked")).to_contain_text(words, timeout=DEED_MS)
    page.click("#runs-confirm")
    expect(page.locator(".deed")).to_have_count(before + 1)
    expect(page.locator("#deeds .deed").first).to_contain_text(f"done {name}", timeout=DEED_MS)
