"""A sweep on the page: its trials over parallel axes, by mouse and by keyboard, and the run of the best."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from league.lab.sweep.sweep import open_sweep
from tests.browser.conftest import SIZES, check_axe
from tests.league.lab.sweep.test_sweep import SPACE, FakeTraining, sweep_plan
from tests.league.see.page.live_page import served
from tests.league.see.page.page_runs import write_run

READ_MS = 90_000


@pytest.fixture
def sweep_page(chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of a folder with a sweep, whose best trial has a run folder."""
    (tmp_path / "space.yaml").write_text(SPACE)
    folder = tmp_path / "runs" / "tried"
    sweep = open_sweep(
        folder, sweep_plan(rungs=2), tmp_path / "space.yaml", runner=FakeTraining(), say=lambda said: None
    )
    best = sweep.run(num_trials=8, jobs=1).best
    write_run(folder / "trials" / f"{best:04d}", leases=4)
    troubles: list[str] = []
    with served(tmp_path / "runs") as address:
        context = chromium.new_context(viewport={"width": SIZES["phone"][0], "height": SIZES["phone"][1]})
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(address.url)
        yield page
        context.close()
    assert troubles == []


def test_trials_are_read_filtered_and_opened(sweep_page: Page) -> None:
    page = sweep_page
    page.locator(".sweep-link").click()
    page.wait_for_selector("#sweep-best", timeout=READ_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]
    check_axe(page)
    page.set_viewport_size({"width": SIZES["desktop"][0], "height": SIZES["desktop"][1]})
    lines, told = page.locator(".parallel-line"), page.locator("#plot-settings-and-strength-readout")
    complete = page.locator(".badge.good", has_text="complete").count()
    assert lines.count() == complete < page.locator("#main tbody tr").count()
    page.focus("#plot-settings-and-strength-lines")
    page.keyboard.press("ArrowDown")
    best = page.inner_text("#sweep-best h2").rpartition(" ")[2]
    expect(told).to_contain_text(f"Trial {best}: ")
    axis = page.locator(".parallel-axis[data-axis=yardsticks]").bounding_box()
    assert axis is not None
    page.mouse.move(axis["x"] + 14, axis["y"] + 2)
    page.mouse.down()
    page.mouse.move(axis["x"] + 14, axis["y"] + 20)
    page.mouse.up()
    expect(told).to_contain_text(f"1 of {complete} trials")
    page.click("#sweep-best-run")
    page.wait_for_selector("main[data-shown=overview]")
    assert page.inner_text("#run-name") == f"tried~{int(best):04d}"
