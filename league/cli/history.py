"""The commands that take a run to an earlier event: `league fork` and `league rewind`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import At, Json, Overrides, RunArgument, with_trust
from league.errors import LeagueError


@with_trust("run")
def fork(
    run: RunArgument,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the new run.", show_default=False)],
    at: At,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Begin a new run as the past of another, which may be live: its journal, snapshots and restart states."""
    from league.operate.history.fork import fork_run

    report = fork_run(run, new, at=at, overrides=overrides or [])
    typer.echo(report.to_json() if as_json else report.text())


def rewind(
    run: RunArgument,
    at: At,
    as_json: Json = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a run back to an earlier event; what came after is set aside in a folder of the run."""
    from league.operate.history.rewind import RewindReport, rewind_run

    def confirm(plan: RewindReport) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise LeagueError("no terminal to ask on: nothing was changed; add --yes.")
        typer.echo(plan.text(), err=True)
        return typer.confirm("Take it back?", err=True)

    report = rewind_run(run, at=at, confirm=confirm)
    if report is None:
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(1)
    typer.echo(report.to_json() if as_json else report.text())
