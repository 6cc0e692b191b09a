"""The `league` command, put together from the groups of `league.cli`."""

from __future__ import annotations

from typing import NoReturn

import typer
from typer.models import CommandInfo, TyperInfo

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


PANELS = {
    "Train": (
        *("train", "resume", "init", "explain", "check-env", "simulate", "config", "presets"),
        *("sweep", "sweep-report", "study"),
    ),
    "Runs in the background": ("up", "down", "restart", "ps", "logs", "top", "serve", "label"),
    "Look at a run": ("status", "ratings", "payoff", "lineage", "probes", "doctor", "diff", "report", "verify"),
    "Play and watch": ("play", "watch", "replay", "replays"),
    "Measure strength": ("eval", "match", "tournament", "exploit", "pool"),
    "Use policies elsewhere": ("export", "import", "serve-policy", "engine", "zoo", "push"),
    "Change a live league": (
        *("set", "extend", "pause", "unpause", "snapshot", "reset", "add", "retire", "freeze", "admit", "tag", "untag"),
        *("pin", "unpin", "hosts", "undo"),
    ),
    "History, disk and support": ("fork", "rewind", "backup", "gc", "delete", "bundle", "chaos", "wandb"),
}
"""Heads of the help -> the commands under each, in order."""


def _into_panels() -> None:
    """Puts every command under its head; one that is under none would stand apart."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    order = {name: place for place, name in enumerate(panel_of)}
    entries: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for entry in entries:
        entry.rich_help_panel = panel_of.get(_name_of(entry))
    app.registered_commands.sort(key=lambda entry: order.get(_name_of(entry), len(order)))


def _name_of(entry: CommandInfo | TyperInfo) -> str:
    if entry.name:
        return entry.name
    assert isinstance(entry, CommandInfo) and entry.callback is not None
    return entry.callback.__name__


_into_panels()


def main() -> NoReturn:
    """Run the command; a user's mistake is one sentence and exit code 2, never a traceback."""
    run_command(app)
