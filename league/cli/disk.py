"""The commands that look after the files of a run: `league backup`, `gc`, `delete` and `wandb sync`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Reason, RunArgument


def backup(
    run: RunArgument,
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="Folder of the backup: new, or an earlier one.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Copy a run, which may be live, or bring its backup up to date; exit 1 where a file of the run is damaged."""
    from league.operate.history.backup import back_up
    from league.progress import ProgressLine

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


def delete(
    run: RunArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the folder of a stopped run for good, after saying what goes and what that frees."""
    from league.operate.history.deletion import delete_run, plan_deletion

    report = plan_deletion(run)
    if not dry_run:
        if not yes:
            typer.confirm(f"Remove {report.words}?", abort=True, err=True)
        report = delete_run(run)
    typer.echo(report.to_json() if as_json else report.text())


def sync(run: RunArgument) -> None:
    """Upload what a stopped run has kept on the disk: offline runs, and the rows that wait."""
    from league.see.trackers.wandb_sync import sync_run
    from league.wording import counted

    sent = sync_run(run, say=typer.echo)
    typer.echo(f"{run}: {counted(sent, 'offline run')} and the waiting rows are at wandb.")
