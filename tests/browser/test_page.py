"""The page in Chromium: every section at three sizes, by keyboard, and an operation through to the journal."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from league.core.state.probe_events import ProbeBegun, ProbeEnded
from league.core.state.records import ProbeOutcome, ProbeReading, ProbeTask
from league.see.page.page_parts import SECTIONS
from league.store.run_folder import RunFolder
from tests.browser.conftest import SIZES, WAIT_MS, OpenPage, check_axe, show, shown
from tests.league.commands import wait_until
from tests.league.see.page.live_page import Served
from tests.league.see.page.page_runs import write_part
from tests.league.tiny_runs import events_of, state_of


def test_every_section_fits_three_sizes_and_has_no_axe_violation(browser_page: OpenPage) -> None:
    """Every section at each size; axe-core at one of them in turn, by light and by dark."""
    page = browser_page()
    for number, section in enumerate(SECTIONS):
        show(page, section)
        page.emulate_media(color_scheme="dark" if number % 2 else "light")
        for turn, (name, (width, height)) in enumerate(SIZES.items()):
            page.set_viewport_size({"width": width, "height": height})
            wait_until(lambda width=width: _width_of(page) <= width, f"{section} to fit a {name}")  # type: ignore[misc]
            if turn == number % len(SIZES):
                check_axe(page)


def test_an_operation_is_said_first_done_and_taken_back(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    run, _ = live_page
    before = len(events_of(run))
    page = browser_page("operations", name="pause")
    page.fill("#field-what", "main-exploiter-0")
    page.fill("#op-reason", "from the page")
    page.click("#op-plan")
    page.wait_for_selector("#op-confirm")
    assert "pauses main-exploiter-0" in page.inner_text("#op-outcome")
    assert len(events_of(run)) == before

    page.click("#op-confirm")
    page.wait_for_selector("#op-event")
    assert state_of(run).players["main-exploiter-0"].paused
    page.click("#op-event")
    shown(page, "events")
    page.locator(".events summary").first.click()
    assert "from the page" in page.inner_text(".events pre >> nth=0")

    show(page, "operations", name="undo", value=str(before + 1))
    page.click("#op-plan")
    page.click("#op-confirm")
    page.wait_for_selector("#op-event")
    assert "takes back" in page.inner_text("#op-outcome")
    assert not state_of(run).players["main-exploiter-0"].paused


def test_a_refusal_is_shown_as_its_sentence(browser_page: OpenPage) -> None:
    page = browser_page("operations", name="set")
    page.fill("#field-key", "learner.batch_rows")
    page.fill("#field-value", "32")
    page.click("#op-plan")
    page.wait_for_selector(".refused")
    assert "hosts are built with it" in page.inner_text(".refused")


def test_the_page_works_by_keyboard(browser_page: OpenPage) -> None:
    page = browser_page()
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to content"
    page.focus("#nav-table")
    page.keyboard.press("Enter")
    shown(page, "table")
    assert page.evaluate("document.activeElement.id") == "heading"
    page.wait_for_selector("tbody tr")
    page.focus("#table-players-by-steps")
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Steps trained")
    steps = page.locator("tbody tr td:nth-child(7)").all_inner_texts()
    page.keyboard.press("Space")
    expect(page.locator("tbody tr td:nth-child(7)")).to_have_text(steps[::-1])


def test_an_open_section_follows_the_journal(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    """A change from elsewhere appears without a touch, and the focus stays where it was."""
    page = browser_page("operations")
    page.focus("#op-tag-link")
    page.evaluate(
        """async () => {
          const session = await (await fetch('/api/v1/session')).json();
          await fetch('/api/v1/runs/made/operations/pause', {method: 'POST',
            headers: {'content-type': 'application/json', [session.header]: session.csrf},
            body: JSON.stringify({arguments: {what: 'rating'}, reason: 'seen elsewhere'})});
        }"""
    )
    page.wait_for_selector("text=seen elsewhere")
    assert page.evaluate("document.activeElement.id") == "op-tag-link"


def test_events_are_searched(browser_page: OpenPage) -> None:
    page = browser_page("events")
    page.fill("#events-text", "main-0-s1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/made/events?text=main-0-s1")
    others = page.locator(".events li").filter(has_not_text="main-0-s1")
    expect(others).to_have_count(0, timeout=WAIT_MS)
    page.locator(".events summary").first.click()
    assert '"main-0-s1"' in page.inner_text(".events pre >> nth=0")


def test_without_its_token_the_page_asks_for_it(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    page = browser_page()
    context = page.context
    context.clear_cookies()
    url = live_page[1].url
    fresh = context.new_page()
    fresh.goto(url.partition("#")[0])
    fresh.wait_for_selector("#token")
    check_axe(fresh)
    fresh.fill("#token", url)
    fresh.keyboard.press("Enter")
    shown(fresh, "overview")
    assert "token" not in fresh.url


def test_a_readers_page_shows_everything_and_draws_no_operation(
    browser_page: OpenPage, live_page: tuple[Path, Served]
) -> None:
    page = browser_page("operations", name="pause")
    assert page.locator("#op-form").count() == 1 and not page.locator("#read-only").is_visible()
    page.context.clear_cookies()
    page.goto("about:blank")
    page.goto(live_page[1].reader_url)
    shown(page, "overview")
    expect(page.locator("#read-only")).to_have_text("read-only")
    check_axe(page)
    show(page, "operations", name="pause")
    expect(page.locator("#op-read-only")).to_contain_text("changes nothing")
    assert page.locator("#op-form, #op-pause-link").count() == page.get_by_role("link", name="Take back").count() == 0
    show(page, "fleet")
    expect(page.locator("tbody tr")).not_to_have_count(0)
    assert page.get_by_role("link", name="Park").count() == 0


def test_a_reading_of_a_probe_is_listed_with_its_cost(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    run, _ = live_page
    task = ProbeTask(1, "yardsticks", next(iter(state_of(run).snapshots)), ())
    reading = ProbeReading("bot:random", 0.75, 0.7, 0.8, 40, "score", "a note")
    write_part(RunFolder(run), [ProbeBegun(task), ProbeEnded(ProbeOutcome(1, (reading,), 4.0))])
    page = browser_page("probes")
    expect(page.locator("main tbody tr:has-text('a note')")).to_have_count(1)
    row = page.inner_text("main tbody tr:has-text('a note')")
    assert all(part in row for part in ("1: yardsticks", "bot:random", "0.75", "a note"))
    assert "4" in page.inner_text("dl.figures") and page.locator("canvas").count() == 2
    check_axe(page)


def _width_of(page: Page) -> int:
    return int(page.evaluate("() => document.documentElement.scrollWidth"))


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent"))
