"""The static report in Chromium: from the disk, without a network, by keyboard; and the payoff of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from league.see.reports.figures.figures_page import Report, read_report
from tests.browser.conftest import OpenPage, check_axe
from tests.league.commands import league
from tests.league.see.page.page_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that no test changes."""
    return write_run(tmp_path_factory.mktemp("static") / "made", leases=40).path


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return read_report([run], now=0.0)


@pytest.fixture(scope="module")
def file(run: Path) -> Path:
    """The report of that run as HTML."""
    path = run.parent / "report.html"
    assert league("report", run, "--html", path).out == f"wrote {path}\n"
    return path


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that reaches no network."""
    context = chromium.new_context(viewport={"width": 1_200, "height": 900}, offline=True)
    yield context.new_page()
    context.close()


def test_the_html_opens_without_a_network_and_without_a_fault(file: Path, report: Report, page: Page) -> None:
    faults: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert page.locator("h1").inner_text() == "made"
    assert page.locator("canvas").count() >= 2
    assert page.locator(".lineage-node").count() == len(report.runs[0].lineage.nodes)
    page.locator("details.player > summary").first.click()
    page.locator("details.player[open] .plot-frame").first.wait_for()
    assert faults == [] and asked == [file.as_uri()]
    check_axe(page)
    page.emulate_media(color_scheme="dark")
    check_axe(page)


def test_arrow_keys_read_the_plots_aloud(file: Path, report: Report, page: Page) -> None:
    page.goto(file.as_uri())
    (run,) = report.runs
    heatmap = page.locator(".heatmap")
    heatmap.focus()
    page.keyboard.press("ArrowRight")
    frame = page.locator(".plot-frame", has=heatmap)
    one, other = run.payoff.policies[:2]
    assert frame.locator(".plot-readout").inner_text().startswith(f"{one.policy} against {other.policy}: ")
    frame.locator(".plot-table summary").click()
    expect(frame.locator("tbody tr")).to_have_count(min(len(run.payoff.cells), 400))
    lineage = page.locator(".lineage")
    lineage.focus()
    page.keyboard.press("ArrowRight")
    first, *others = run.lineage.nodes
    following = next(node for node in others if node.lane == first.lane)
    told = page.locator(".plot-frame", has=lineage).locator(".plot-readout").inner_text()
    assert told.startswith(f"{following.snapshot}, ")


def test_a_cell_of_the_page_opens_the_games_of_its_pair(browser_page: OpenPage) -> None:
    page = browser_page("payoff")
    page.wait_for_function("() => !document.querySelector('main').innerText.includes('being computed')")
    page.locator(".heatmap").focus()
    page.keyboard.press("ArrowRight")
    told = page.locator(".plot-readout").inner_text()
    page.keyboard.press("Enter")
    heading = page.locator(".card h2", has_text=" against ").first.inner_text()
    assert told.startswith(f"{heading}: ")
    home, away = heading.split(" against ")
    asked = "() => ['home', 'away'].map(key => new URLSearchParams(location.hash.split('?')[1]).get(key))"
    assert page.evaluate(asked) == [home, away]
