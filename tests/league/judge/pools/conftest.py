"""A pool on disk for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.judge.pools.folder import PoolFolder
from tests.league.commands import league


@pytest.fixture
def pool_folder(tmp_path: Path) -> PoolFolder:
    """A pool of tic-tac-toe with three bots, of which none has played."""
    folder = PoolFolder(tmp_path / "pool")
    assert league("pool", "init", folder.path, "--game", "tic_tac_toe").code == 0
    assert league("pool", "add", folder.path, "bot:tactical", "bot:mcts:5").code == 0
    return folder
