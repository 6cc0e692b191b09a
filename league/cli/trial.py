"""The commands that try something before it is trained: `league check-env` and `league simulate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.cli.options import Json, Overrides, seconds_of
from league.errors import LeagueError

if TYPE_CHECKING:
    from league.config.run_config import BudgetConfig


BudgetTime = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="Budget of time, as 10m or 2h, if none is configured.")
]
BudgetCores = Annotated[
    float | None, typer.Option("--core-seconds", min=1.0, help="Budget of processor seconds, if none is configured.")
]


def init(
    env_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a game, or a YAML configuration.", show_default=False)
    ],
    overrides: Overrides = None,
    for_time: BudgetTime = None,
    core_seconds: BudgetCores = None,
) -> None:
    """Print a whole configuration fitted to a game and a budget, with the reason of every choice as a comment."""
    from league.config.auto.resolve import resolve
    from league.config.commented import dump_commented

    found = resolve(env_id, overrides=overrides or [], limit=_budget(for_time, core_seconds))
    typer.echo(dump_commented(found.config, found.reasons).rstrip())


def explain(
    source: Annotated[
        str, typer.Argument(metavar="CONFIG|RUN|ID", help="YAML file, run folder or game.", show_default=False)
    ],
    key: Annotated[str, typer.Argument(metavar="KEY", help="Setting or section.", show_default=False)],
    for_time: BudgetTime = None,
    core_seconds: BudgetCores = None,
    as_json: Json = False,
) -> None:
    """Explain the value of a setting: given, chosen for the game and the budget (with the reason), or the default."""
    from league.see.reports.explain import explain_setting

    report = explain_setting(Path(source), key, limit=_budget(for_time, core_seconds))
    typer.echo(report.to_json() if as_json else report.text())


def _budget(for_time: str | None, core_seconds: float | None) -> BudgetConfig:
    from league.config.run_config import BudgetConfig

    return BudgetConfig(None if for_time is None else seconds_of(for_time), core_seconds)


def check_env(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="As in env.id of a configuration.", show_default=False)],
    kwargs: Annotated[
        list[str] | None, typer.Option("-k", "--kwarg", metavar="NAME=VALUE", help="Option of the env; repeatable.")
    ] = None,
    teams: Annotated[
        str, typer.Option(metavar="YAML", help="""As in env.teams, such as '[["red_*"], ["blue_*"]]'.""")
    ] = "[]",
    steps: Annotated[int, typer.Option(min=1, help="Turns to play at random; more where episodes are long.")] = 200,
    seconds: Annotated[float, typer.Option(min=0, help="Processor time for the measures; 0 for none.")] = 6.0,
    as_json: Json = False,
) -> None:
    """Try an environment against the contract; exit 1 where it breaks it."""
    from league.see.reports.env_check import check_environment

    report = check_environment(env_id, kwargs or [], teams=teams, steps=steps, seconds=seconds)
    typer.echo(report.to_json() if as_json else report.text())
    if report.problems:
        raise typer.Exit(1)


def simulate(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="YAML configuration, or the id of a game.", show_default=False)
    ],
    for_time: Annotated[str, typer.Option("--for", metavar="TIME", help="Virtual time, as 12h or 90d.")] = "1d",
    overrides: Overrides = None,
    world: Annotated[str, typer.Option(help="Simulated learners: skill, disc or matrix.")] = "disc",
    as_json: Json = False,
) -> None:
    """Predict days of a configuration's league in seconds or minutes, with simulated learners."""
    from league.config.auto.resolve import resolve
    from league.config.run_config import BudgetConfig
    from league.lab.simulation.simulate import simulate as try_out
    from league.progress import ProgressLine

    if world not in ("skill", "disc", "matrix"):
        raise LeagueError(f"there is no simulated world {world!r}: use skill, disc or matrix.")
    seconds = seconds_of(for_time)
    if seconds <= 0:
        raise LeagueError("there is nothing to simulate in no time: give --for 12h, 7d or the like.")
    settings = resolve(config, overrides=overrides or [], limit=BudgetConfig(seconds=seconds)).config
    with ProgressLine(sys.stderr) as line:

        def elapsed(done_s: float, total_s: float) -> None:
            line.show(f"{done_s / total_s:.0%} of the simulated time", fraction=done_s / total_s)

        report = try_out(settings, seconds, world=world, progress=elapsed)
    typer.echo(report.to_json() if as_json else report.text())
