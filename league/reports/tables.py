"""Finished results on a terminal, or in a file where output goes to one."""

from __future__ import annotations

import shutil
import sys

from league.eval.report import EvalReport
from league.eval.report_table import report_lines


def print_report(report: EvalReport) -> None:
    """Print an evaluation: its table, who stood for which name and why, and what was left out."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = report_lines(report, width=width)
    lines += [f"  {player.player}: {player.reason}" for player in report.players]
    lines += [f"  {note}" for note in report.notes]
    print("\n".join(lines))
