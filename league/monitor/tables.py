"""Finished results on a terminal."""

from __future__ import annotations

import sys

from rich.console import Console

from league.eval.report import EvalReport


def print_report(report: EvalReport) -> None:
    """Print an evaluation: its table, who stood for which name and why, and what was left out."""
    console = Console(file=sys.stdout, highlight=False)
    console.print(report.table())
    for player in report.players:
        console.print(f"  {player.player}: {player.reason}", markup=False)
    for note in report.notes:
        console.print(f"  {note}", markup=False)
