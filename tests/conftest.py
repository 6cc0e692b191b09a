"""Makes `tests.oracles` importable however pytest was started, and keeps every test to one thread of torch."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read once, when torch loads
_STATE = tempfile.TemporaryDirectory(prefix="league-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name  # the user's own key stays out of the tests, and the tests' out of theirs

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


def pytest_collection_finish() -> None:
    """Take what was imported, a million objects that stay out of every search for garbage."""
    gc.collect()
    gc.freeze()
