"""The commands `league wandb ...`."""

from __future__ import annotations

import typer

from league.cli.options import RunArgument


def add_trackers(app: typer.Typer) -> None:
    """Adds the commands to the `league` command."""
    wandb = typer.Typer(no_args_is_help=True, help="The runs of a league at wandb.")
    wandb.command("sync")(sync)
    app.add_typer(wandb, name="wandb")


def sync(run: RunArgument) -> None:
    """Upload what a stopped run has kept on the disk: offline runs, and the rows that wait."""
    from league.see.trackers.wandb_sync import sync_run
    from league.wording import counted

    sent = sync_run(run, say=typer.echo)
    typer.echo(f"{run}: {counted(sent, 'offline run')} and the waiting rows are at wandb.")
