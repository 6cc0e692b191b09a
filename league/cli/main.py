"""The `league` command, put together from the groups of `league.cli`."""

from __future__ import annotations

from typing import NoReturn

import typer

from league.cli.chaos import add_chaos
from league.cli.command_line import run_command
from league.cli.control import add_control
from league.cli.disk import add_disk
from league.cli.evaluation import add_evaluation
from league.cli.history import add_history
from league.cli.judging import add_judging
from league.cli.operating import add_operating
from league.cli.packages import add_packages
from league.cli.page import add_page
from league.cli.pool import add_pool
from league.cli.reference import add_reference
from league.cli.replaying import add_replaying
from league.cli.reports import add_reports
from league.cli.static_report import add_static_report
from league.cli.sweep import add_sweep
from league.cli.training import add_training
from league.cli.trial import add_trial

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for add in (
    add_training,
    add_operating,
    add_control,
    add_reports,
    add_page,
    add_static_report,
    add_evaluation,
    add_replaying,
    add_judging,
    add_packages,
    add_pool,
    add_history,
    add_sweep,
    add_disk,
    add_trial,
    add_chaos,
    add_reference,
):
    add(app)


def main() -> NoReturn:
    """Run the command; a user's mistake is one sentence and exit code 2, never a traceback."""
    run_command(app)
