"""The benchmark scripts import each other by file name, as Python finds them when one is run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
