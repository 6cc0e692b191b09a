"""A live page keeps what its reader holds while its numbers change: scroll, focus, text, zoom and clicks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from league.run.monitor import names
from league.store.run_folder import RunFolder
from tests.browser.conftest import OpenPage, check_axe, show
from tests.league.commands import wait_until
from tests.league.see.page.live_page import Served, served
from tests.league.see.page.page_runs import write_run

MOST_LOOKS = 120
HALF_SECOND_MS = 500
LOADED_MS = 60_000

_OVERHANG = "(() => { const box = document.querySelector('.scroll'); return box.scrollWidth - box.clientWidth; })()"

Report = Callable[[], None]


@pytest.fixture
def report(live_page: tuple[Path, Served]) -> Iterator[Report]:
    """Appends a row of metrics to the run's file, as its daemon does; the file is as before in the end."""
    path = live_page[0] / "metrics.jsonl"
    before = path.read_text()
    row = json.loads(before.splitlines()[-1])

    def append() -> None:
        row["step"] += 400
        row["time"] += 1.0
        row["values"][names.STEPS_PER_S.name] += 1.0
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    yield append
    path.write_text(before)


def test_a_live_page_keeps_what_its_reader_holds(browser_page: OpenPage, report: Report) -> None:
    page = browser_page()
    page.evaluate("document.querySelector('.figure').mark = 'kept'")
    page.click("#overview-checks summary")
    _zoom(page, meanwhile=lambda: _wait_for_pictures(page, 2, report))
    page.evaluate("scrollTo(0, 200)")
    shown, pictures, places = page.inner_text("#plot-env-steps-per-second-legend"), _pictures(page), []
    while len(places) < 9 or _pictures(page) < pictures + 2:
        assert len(places) < MOST_LOOKS, "the page is drawn no more"
        report()
        page.wait_for_timeout(HALF_SECOND_MS)
        places.append(page.evaluate("scrollY"))
    assert places == [200] * len(places)
    assert page.evaluate("document.querySelector('.figure').mark") == "kept"
    assert page.evaluate("document.querySelector('#overview-checks').open")
    assert page.get_attribute("#plot-env-steps-per-second-lines", "data-range")
    assert page.inner_text("#plot-env-steps-per-second-legend") != shown


def test_half_typed_text_and_the_caret_stay(browser_page: OpenPage, report: Report) -> None:
    page = browser_page("operations", name="pause")
    page.fill("#field-what", "main-expl")
    page.evaluate("document.querySelector('#field-what').setSelectionRange(2, 5)")
    _wait_for_pictures(page, 2, report)
    page.keyboard.type("n")
    assert page.input_value("#field-what") == "manexpl"
    show(page, "player", player="main-0")
    page.focus("#player-choice")
    _wait_for_pictures(page, 1, report)
    assert page.evaluate("document.activeElement.id") == "player-choice"


def test_no_click_is_lost_in_a_game_beside_a_live_run(browser_page: OpenPage, report: Report) -> None:
    page = browser_page("play")
    page.select_option("#play-policy", "bot:random")
    page.click("text=Start")
    page.wait_for_selector(".target", timeout=LOADED_MS)
    for square, moves in (("4", 2), ("0", 4)):
        box = page.locator(f".target[data-action='{square}'], .target >> nth=0").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        _wait_for_pictures(page, 1, report)  # the board is drawn again while the button is held
        page.mouse.up()
        expect(page.locator(".moves li")).to_have_count(moves)


def test_without_its_server_the_last_picture_stays_under_a_banner(
    chromium: Browser, live_page: tuple[Path, Served]
) -> None:
    _beat(live_page[0])
    with served(live_page[0]) as address:
        page = chromium.new_context().new_page()
        page.goto(address.url)
        page.wait_for_selector("main[data-shown=overview]")
        assert not page.is_visible("#banner")
    banner = page.locator("#banner")
    expect(banner).to_contain_text("No answer from this page's server since")
    expect(banner).to_contain_text(f"league serve {live_page[0]}")
    assert page.locator(".figure").count() > 4
    check_axe(page)
    page.context.close()


def test_a_silent_daemon_is_named_above_its_last_state(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    _beat(live_page[0], ago_s=3600.0)
    page = browser_page()
    expect(page.locator("#banner")).to_contain_text("The daemon of this run is silent since")
    _beat(live_page[0])
    expect(page.locator("#banner")).to_be_hidden()


def test_plots_share_axis_smoothing_and_zoom_over_sections_and_reloads(browser_page: OpenPage) -> None:
    page = browser_page()
    page.select_option("#plots-x", "wall")
    _zoom(page)
    zoomed = page.get_attribute("#plot-env-steps-per-second-lines", "data-range")
    show(page, "fleet")
    assert page.input_value("#plots-x") == "wall"
    page.reload()
    page.wait_for_selector("#plot-env-steps-per-second-lines")
    assert page.get_attribute("#plot-env-steps-per-second-lines", "data-range") == zoomed
    page.click("#plots-all")
    assert not page.get_attribute("#plot-env-steps-per-second-lines", "data-range")


@pytest.mark.parametrize("kind", ["png", "svg", "csv"])
def test_a_plot_is_saved_as_a_file(browser_page: OpenPage, kind: str) -> None:
    page = browser_page("fleet")
    page.click("#plot-env-steps-per-second-save summary")
    with page.expect_download() as waiting:
        page.click(f"#plot-env-steps-per-second-{kind}")
    content = Path(waiting.value.path()).read_bytes()
    assert waiting.value.suggested_filename == f"env-steps-per-second.{kind}"
    if kind == "csv":
        lines = content.decode().splitlines()
        assert lines[0] == "series,env steps,value,low,high" and lines[1] == "Env steps per second,0,900,,"
        assert len(lines) == 31
    else:
        assert content.startswith({"png": b"\x89PNG", "svg": b"<svg"}[kind]) and len(content) > 2_000
        assert b"var(--" not in content


@pytest.mark.parametrize("shown", ["players", "policies"])
def test_the_league_table_fits_and_keeps_the_elo(browser_page: OpenPage, shown: str) -> None:
    page = browser_page("table", show=shown)
    page.wait_for_selector("tbody tr")
    for width in (1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(lambda: page.evaluate(_OVERHANG) <= 0, f"the table to fit into {width}")
        assert page.locator("tbody tr td:nth-child(2)").first.is_visible()
    assert not page.locator("tbody .rank-1").first.is_visible()


def test_runs_are_filtered_sorted_and_compared(chromium: Browser, tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        write_run(tmp_path / name, leases=4 + 4 * number)
    with served(tmp_path) as address:
        page = chromium.new_context().new_page()
        page.goto(address.url)
        page.wait_for_selector("main[data-shown=runs]")
        names_shown = page.locator("tbody th a")
        page.click("#runs-all-by-size_bytes")
        expect(names_shown).to_have_text(["two", "one"])
        page.fill("#runs-text", "on")
        expect(names_shown).to_have_text(["one"])
        page.fill("#runs-text", "")
        page.check("#choose-one")
        page.check("#choose-two")
        page.fill("#runs-labels", "wide net, seed 3")
        page.click("#runs-label")
        expect(page.locator("tbody .badge", has_text="wide net")).to_have_count(2)
        expect(page.locator("#deeds .deed", has_text="done label")).to_have_count(2)
        check_axe(page)
        page.uncheck("#choose-two")
        expect(page.get_by_text("one is ticked.")).to_be_visible()
        page.fill("#runs-labels", "")
        page.click("#runs-label")
        expect(page.locator("tbody .badge", has_text="wide net")).to_have_count(1)
        page.fill("#runs-text", "seed 3")
        expect(names_shown).to_have_text(["two"])
        page.fill("#runs-text", "")
        page.check("#choose-two")
        page.click("#runs-compare")
        page.wait_for_selector("main[data-shown=compare]")
        expect(page.locator("canvas").first).to_be_visible()
        page.context.close()


def _beat(path: Path, *, ago_s: float = -60.0) -> None:
    """A heartbeat of the made run, by default one that stays young for the length of a test."""
    folder = RunFolder(path)
    status = folder.read_status()
    assert status is not None
    folder.write_status(replace(status, heartbeat_at=time.time() - ago_s))


def _zoom(page: Page, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Drag over a part of the plot of the speed. meanwhile: called before the button is let go."""
    lines = page.locator("#plot-env-steps-per-second-lines .u-over")
    lines.scroll_into_view_if_needed()
    box, before = lines.bounding_box(), None
    while box != before:  # until what was opened above it has pushed it down
        page.wait_for_timeout(100)
        box, before = lines.bounding_box(), box
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 60, steps=4)
    meanwhile()
    page.mouse.up()
    expect(page.locator("#plot-env-steps-per-second-lines")).to_have_attribute("data-range", re.compile(r"\d"))


def _pictures(page: Page) -> int:
    return int(page.evaluate("performance.getEntriesByName('shown').length"))


def _wait_for_pictures(page: Page, more: int, report: Report) -> None:
    wanted = _pictures(page) + more
    while _pictures(page) < wanted:
        report()
        page.wait_for_timeout(HALF_SECOND_MS)
