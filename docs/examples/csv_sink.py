"""A metric sink that appends some metrics to a CSV file in the run folder."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from league.run.monitor.sink import SinkContext


@dataclass(frozen=True)
class CsvConfig:
    """Its options: the metrics to write."""

    names: tuple[str, ...] = ("league/games",)


class CsvSink:
    """One line per call: env steps, then the named metrics; empty where there is no value yet."""

    def __init__(self, context: SinkContext, options: CsvConfig) -> None:
        self._path = context.run_path / "metrics.csv"
        self._names = options.names

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Must return at once: training waits for it."""
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerow([step, *(values.get(name, "") for name in self._names)])

    def close(self) -> None:
        """Nothing is kept open."""
