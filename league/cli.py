"""The `league` command, put together from the groups of `league.commands`."""

from __future__ import annotations

from typing import NoReturn

import typer

from league.commands.chaos import add_chaos
from league.commands.command_line import run_command
from league.commands.control import add_control
from league.commands.disk import add_disk
from league.commands.evaluation import add_evaluation
from league.commands.history import add_history
from league.commands.judging import add_judging
from league.commands.operating import add_operating
from league.commands.packages import add_packages
from league.commands.page import add_page
from league.commands.pool import add_pool
from league.commands.reference import add_reference
from league.commands.replaying import add_replaying
from league.commands.reports import add_reports
from league.commands.static_report import add_static_report
from league.commands.sweep import add_sweep
from league.commands.trackers import add_trackers
from league.commands.training import add_training
from league.commands.trial import add_trial

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
    add_trackers,
    add_disk,
    add_trial,
    add_chaos,
    add_reference,
):
    add(app)


def main() -> NoReturn:
    """Run the command; a user's mistake is one sentence and exit code 2, never a traceback."""
    run_command(app)
