"""One made run for all tests that only read it, and a client that has entered its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from league.see.page.guard import App
from tests.league.see.page.page_runs import OPERATOR, page_of, write_run

BASE = "http://127.0.0.1:8420"


@pytest.fixture(scope="package")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with 60 leases, which no test changes."""
    return write_run(tmp_path_factory.mktemp("page") / "made").path


@pytest.fixture(scope="package")
def page_app(made_run: Path) -> Iterator[App]:
    """The page of that run."""
    library, page = page_of(made_run)
    yield page
    library.close()


@pytest.fixture
def stranger(page_app: App) -> TestClient:
    """A client without a session."""
    return TestClient(page_app, base_url=BASE)  # type: ignore[arg-type]


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """A client that has entered."""
    answer = stranger.post("/api/v1/session", json={"token": OPERATOR.token})
    assert answer.status_code == 200
    return stranger
