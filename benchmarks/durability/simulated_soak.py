"""24 hours of a league on simulated learners, through the production core: its state replays, its books are right."""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from benchmarks.report import Report
from league.config.loading import parse_config
from league.lab.simulation.simulate import simulate

HOURS = 24.0
ROLES = {
    "env": {"id": "connect_four"},
    "name": "soak",
    "league": {"players": [{"role": role} for role in ("main_agent", "main_exploiter", "league_exploiter")]},
}
"""Three roles with the gates that a run has by default."""


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of 24 hours."""
    seconds = 3600.0 * HOURS * scale
    config = parse_config(yaml.safe_dump({**ROLES, "seed": seed % 2**31}), source="the soak")
    found = simulate(config, seconds, clock=time.process_time)
    report.add("simulated soak, virtual", found.done_s / 3600.0, "h", at_least=seconds / 3600.0)
    report.add("simulated soak, processor time", found.real_s, "s", at_most=90.0)
    report.add("simulated soak, virtual over processor time", found.done_s / found.real_s, "x", at_least=960.0)
    report.add("players that took no snapshot", sum(row.snapshots < 2 for row in found.players), "players", at_most=0)
