"""Reads what wandb has written offline, by wandb's own reader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


class OfflineRun:
    """The records of one offline run, by kind."""

    def __init__(self, folder: Path) -> None:
        from wandb.util import get_core_path  # what `wandb leet` calls, once it has imported all of wandb

        (file,) = folder.glob("run-*.wandb")
        command = [
            get_core_path(),
            "leet",
            "inspect",
            "--no-observability",
            "--json",
            "--run-file",
            str(file),
            str(folder.parent),
        ]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        self.records: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of a kind, such as "history"."""
        return [record[kind] for record in self.records if record["type"] == kind]

    @property
    def run(self) -> dict[str, Any]:
        """Its head: id, group, job type, config."""
        return self.of("run")[0]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, with its later updates."""
        merged: dict[str, Any] = {}
        for update in [self.run["config"]["update"], *(record["update"] for record in self.of("config"))]:
            merged.update(update)
        return merged

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of metrics."""
        return [record["item"] for record in self.of("history")]

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """Name or pattern -> how it is defined."""
        return {record.get("name") or record["glob_name"]: record for record in self.of("metric")}


def offline_runs(run_path: Path) -> dict[str, OfflineRun]:
    """Display name -> run, of those in a run folder."""
    found = [OfflineRun(folder) for folder in sorted(run_path.glob("wandb/offline-run-*"))]
    return {run.run["display_name"]: run for run in found}
