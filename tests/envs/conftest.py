"""Puts the slow twins of the games (oracles/) where the tests of this folder can import them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "oracles"))
