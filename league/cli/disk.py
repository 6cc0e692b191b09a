"""The commands that look after the files of a run: `league backup` and `league gc`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Reason, RunArgument


def add_disk(app: typer.Typer) -> None:
    """Adds the commands to the `league` command."""
    app.command()(backup)
    app.command()(gc)


def backup(
    run: RunArgument,
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="Folder of the backup: new, or an earlier one.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Copy a run, which may be live, or bring its backup up to date; exit 1 where a file of the run is damaged."""
    from league.operate.history.backup import back_up
    from league.run.monitor.progress import ProgressLine

    with ProgressLine(sys.stderr) as line:
        report = back_up(run, destination, progress=line.show)
    typer.echo(report.to_json() if as_json else report.text())
    if report.left_out:
        raise typer.Exit(1)


def gc(
    run: RunArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and why the others stay.")] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", min=1, help="Snapshots that may keep their weights; by default the limits of retention."
        ),
    ] = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Remove the weights of the snapshots that a run needs least; records, games and ratings stay."""
    from league.operate.history.snapshot_gc import collect_stopped, plan_gc
    from league.run.control.client import operate
    from league.store.known_runs import this_user

    report = plan_gc(run, keep=keep)
    if not dry_run and not report.live:
        report = collect_stopped(run, keep=keep, by=this_user(), reason=reason)
    elif not dry_run and report.retired:
        operate(run, "gc", {"keep": report.keep}, reason=reason)
        report.done = True
    typer.echo(report.to_json() if as_json else report.text())
