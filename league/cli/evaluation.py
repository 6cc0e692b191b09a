"""The commands that play or train against frozen policies: `league eval` and `league exploit`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import (
    Overrides,
    Replays,
    RunArgument,
    SearchOption,
    games_line,
    names_in,
    seconds_of,
    with_trust,
)
from league.errors import LeagueError


@with_trust("run", "players")
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or that of a snapshot.", show_default=False)],
    players: Annotated[
        str,
        typer.Option(
            help="Comma-separated: auto, ema, last, best, mixture, average, exact, a player, a snapshot or a tag."
        ),
    ] = "auto,last",
    bots: Annotated[
        str | None,
        typer.Option(help="Comma-separated; empty for none.", show_default="evaluation.bots of RUN, if they fit"),
    ] = None,
    games: Annotated[
        int | None,
        typer.Option(min=2, help="Games of each match, half from either seat.", show_default="evaluation.games of RUN"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    greedy: Annotated[
        bool | None,
        typer.Option(
            "--greedy/--sample",
            help="Take the likeliest action, or draw one.",
            show_default="--sample where play must stay mixed",
        ),
    ] = None,
    search: SearchOption = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write a line for each match here.")] = None,
    replays: Replays = None,
) -> None:
    """Play policies of a run against bots and each other, seats paired, with intervals."""
    from league.judge.matches.evaluation import evaluate_run
    from league.judge.matches.export_match import ASK_S, keep_export_matches
    from league.judge.matches.report_table import print_report, report_csv
    from league.policies.auto_export import AUTO
    from league.policies.loading import open_run
    from league.policies.package import is_frozen_folder

    if AUTO in names_in(players) and not is_frozen_folder(run):
        keep_export_matches(open_run(run), limit_s=ASK_S)
    with games_line() as progress:
        report = evaluate_run(
            run,
            players=names_in(players),
            bots=None if bots is None else names_in(bots),
            games=games,
            seed=seed,
            greedy=greedy,
            simulations=search,
            progress=progress,
            replays=replays,
            say=functools.partial(typer.echo, err=True),
        )
    print_report(report)
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")
    if csv_file is not None:
        csv_file.write_text(report_csv(report))


@with_trust("run")
def exploit(
    run: RunArgument,
    player: Annotated[
        str, typer.Option(help="The prey: auto, ema, last, best, mixture, average, exact, a player or a snapshot.")
    ] = "auto",
    for_time: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Train so long; by default a fifth of the run's budget.")
    ] = None,
    env_steps: Annotated[int | None, typer.Option("--env-steps", min=1, help="Train so many env steps.")] = None,
    core_seconds: Annotated[
        float | None, typer.Option("--core-seconds", min=0.0, help="Train so many processor seconds.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Run folder of the exploiter; by default one beside RUN.")
    ] = None,
    overrides: Overrides = None,
    from_prey: Annotated[
        bool, typer.Option("--from-prey", help="Begin with the weights of the prey, not with random ones.")
    ] = False,
    games: Annotated[int, typer.Option(min=2, help="Games of the match after the training.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the match.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
) -> None:
    """Train a new player only against a frozen policy and report its score; repeat the command to continue."""
    from league.config.run_config import BudgetConfig
    from league.lab.exploit.exploit import exploit_run

    budget = BudgetConfig(
        seconds=None if for_time is None else seconds_of(for_time), core_seconds=core_seconds, env_steps=env_steps
    )
    with games_line() as progress:
        report = exploit_run(
            run,
            player=player,
            run_dir=run_dir,
            budget=budget,
            overrides=overrides or [],
            from_prey=from_prey,
            games=games,
            seed=seed,
            progress=progress,
        )
    if report is None:
        raise LeagueError("the training was interrupted: give the same command again to continue it.")
    typer.echo(report.text())
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")
