"""The commands that try something before it is trained: `league check-env` and `league simulate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from league.commands.options import Json, Overrides, seconds_of
from league.errors import LeagueError


def add_trial(app: typer.Typer) -> None:
    """Adds the commands to the `league` command."""
    app.command("check-env")(check_env)
    app.command("simulate")(simulate)


def check_env(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="As in env.id of a configuration.", show_default=False)],
    kwargs: Annotated[
        list[str] | None, typer.Option("-k", "--kwarg", metavar="NAME=VALUE", help="Option of the env; repeatable.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Turns to play at random; more where episodes are long.")] = 200,
    as_json: Json = False,
) -> None:
    """Try an environment against the contract; exit 1 where it breaks it."""
    from league.reports.env_check import check_environment

    report = check_environment(env_id, kwargs or [], steps=steps)
    typer.echo(report.to_json() if as_json else report.text())
    if report.problems:
        raise typer.Exit(1)


def simulate(
    config: Annotated[Path, typer.Argument(help="YAML configuration.", show_default=False)],
    for_time: Annotated[str, typer.Option("--for", metavar="TIME", help="Virtual time, as 12h or 90d.")] = "1d",
    overrides: Overrides = None,
    world: Annotated[str, typer.Option(help="Simulated learners: skill, disc or matrix.")] = "disc",
    as_json: Json = False,
) -> None:
    """Predict days of a configuration's league in seconds or minutes, with simulated learners."""
    from league.config.loading import load_config
    from league.monitor.progress import ProgressLine
    from league.simulation.simulate import simulate as try_out

    if world not in ("skill", "disc", "matrix"):
        raise LeagueError(f"there is no simulated world {world!r}: use skill, disc or matrix.")
    seconds = seconds_of(for_time)
    if seconds <= 0:
        raise LeagueError("there is nothing to simulate in no time: give --for 12h, 7d or the like.")
    settings = load_config(config, overrides=overrides or [])
    line = ProgressLine(sys.stderr)

    def elapsed(done_s: float, total_s: float) -> None:
        line.show(f"{done_s / total_s:.0%} of the simulated time")

    report = try_out(settings, seconds, world=world, progress=elapsed)
    line.close()
    typer.echo(report.to_json() if as_json else report.text())
