"""The run that the reports on a stopped run are tested with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.league.tiny_runs import ONE_PLAYER, start, tiny


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only; a test that changes anything takes the fixture `run`."""
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=1_200)
    return folder / "run"
