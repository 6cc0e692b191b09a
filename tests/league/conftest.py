"""The run that a test may harm, of any module that trains one as its fixture `made`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of the module's `made`."""
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"
