"""One Chromium for all tests of the page, and the pages that they open in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.league.see.page.live_page import Served, live_run, served

SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desktop": (1280, 860)}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell first: it has the same engine and no window, whose drawing takes as much processor time again."""
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
REQUIRED = "LEAGUE_BROWSER_REQUIRED"
"""Set where a missing Chromium is a failure and not a reason to skip: `.ci/run` does so."""
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)

OpenPage = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder run in one process, one after the other, as they share one browser."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless; it ends with this folder, as Playwright keeps the thread's event loop running."""
    if CHROMIUM is None:
        said = "the browser tests need Chromium: `apt-get install -y --no-install-recommends chromium-headless-shell`"
        if os.environ.get(REQUIRED):
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Served]]:
    """A live run of simulated games, and its page."""
    with live_run(tmp_path_factory.mktemp("browser") / "made") as folder, served(folder.path) as page:
        yield folder.path, page


@pytest.fixture
def browser_page(chromium: Browser, live_page: tuple[Path, Served]) -> Iterator[OpenPage]:
    """Opens a section of the run's page: `browser_page("table", size="phone", scheme="dark", player="main-0")`.

    A message of the console that is an error, and a script that raises, fail the test.
    """
    contexts, troubles = [], []

    def opened(section: str = "overview", *, size: str = "desktop", scheme: str = "light", **query: str) -> Page:
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text) if _is_trouble(said) else None)
        page.goto(live_page[1].url)
        shown(page, "overview")
        if section != "overview" or query:
            show(page, section, **query)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def _is_trouble(said: ConsoleMessage) -> bool:
    """True for an error, a breach of the content policy among them; a refused request is the test's own matter."""
    return said.type == "error" and not said.text.startswith("Failed to load resource")


def show(page: Page, section: str, **query: str) -> None:
    """Go to a section and wait until it is drawn."""
    tail = "&".join(f"{key}={value}" for key, value in query.items())
    page.evaluate(
        "hash => { document.querySelector('main').dataset.shown = ''; location.hash = hash }",
        f"#/made/{section}" + (f"?{tail}" if tail else ""),
    )
    shown(page, section)


def shown(page: Page, section: str) -> None:
    """Wait until a section is drawn."""
    page.wait_for_selector(f"main[data-shown={section}]")


def check_axe(page: Page) -> None:
    """No violation of the rules of axe-core, those of WCAG AA among them."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    answer = page.evaluate("() => axe.run({resultTypes: ['violations']})")
    found = [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in answer["violations"]]
    assert not found, found
