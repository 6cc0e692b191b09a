"""The commands that read a run: status, ratings, payoff, lineage, verify, doctor and bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Model, RunArgument, games_line, with_trust


def status(
    run: RunArgument,
    settings: Annotated[
        bool, typer.Option("--settings", help="Also the settings that were chosen for it, with the reasons.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the state of a run on one screen: its daemon, its progress and its players."""
    import shutil

    from league.see.reports.status.status_report import read_status

    report, width = read_status(run), shutil.get_terminal_size().columns
    if as_json:
        typer.echo(report.to_json())
    else:
        typer.echo(f"{report.text()}\n{report.settings_text()}".rstrip() if settings else report.screen(width=width))


def ratings(run: RunArgument, model: Model = "bradley-terry", as_json: Json = False) -> None:
    """Ratings of all snapshots, strongest first: Elo with 95 % intervals, skills by openskill, or the meta-game."""
    from league.see.reports.rating_models import read_rating_model

    report = read_rating_model(run, model)
    typer.echo(report.to_json() if as_json else report.text())


def payoff(
    run: RunArgument,
    homes: Annotated[
        list[str] | None, typer.Option("--home", metavar="POLICY", help="Its row; repeatable (default: every player).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show win rates as matchmaking and gates see them, games, and scores by seat; hardest opponents first."""
    from league.see.reports.payoff import read_payoff

    report = read_payoff(run, homes=tuple(homes or ()))
    typer.echo(report.to_json() if as_json else report.text())


def probes(run: RunArgument, as_json: Json = False) -> None:
    """Show what the probes of a run have measured: its snapshots by fixed yardsticks, and the cost."""
    from league.see.reports.probes import read_probes

    report = read_probes(run)
    typer.echo(report.to_json() if as_json else report.text())


@with_trust("left", "right")
def diff(
    left: Annotated[str, typer.Argument(metavar="RUN1[,...]", help="A run, or several of the same settings.")],
    right: Annotated[str, typer.Argument(metavar="RUN2[,...]", help="Those to compare with it.")],
    games: Annotated[int, typer.Option(min=2, help="Games of each match.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    seed_spread: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="ELO", help="Known standard deviation between seeds, for one run on each side."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs, or two groups of runs: settings, strength, cost, and whether seeds explain the difference."""
    from league.agents.torch_runtime import prepare_process
    from league.lab.diff.diff_report import compare_runs

    prepare_process()
    with games_line("matches") as progress:
        report = compare_runs(left, right, games=games, seed=seed, seed_spread=seed_spread, progress=progress)
    typer.echo(report.to_json() if as_json else report.text())


def lineage(
    run: RunArgument,
    as_json: Json = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print a Graphviz graph.")] = False,
    of: Annotated[
        str | None, typer.Option("--of", metavar="SNAPSHOT", help="Only its ancestors, and whom they met in all.")
    ] = None,
) -> None:
    """Show the lineage of snapshots: parents, resets, transplants, the gates' evidence, and the opponents met."""
    from league.see.reports.lineage import read_lineage

    report = read_lineage(run, of=of)
    typer.echo(report.to_json() if as_json else report.to_dot() if dot else report.text())


def verify(run: RunArgument, as_json: Json = False) -> None:
    """Check that the journal replays to the stored state and that every stored digest holds; exit 1 if not."""
    from league.see.reports.verify import verify_run

    report = verify_run(run)
    typer.echo(report.to_json() if as_json else report.text())
    if report.problems:
        raise typer.Exit(1)


def doctor(run: RunArgument, as_json: Json = False) -> None:
    """Diagnose a league: likely faults with their evidence, and the setting to change."""
    from league.see.reports.doctor import examine_run

    report = examine_run(run)
    typer.echo(report.to_json() if as_json else report.text())


def bundle(
    run: RunArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A .tar.gz to make; by default in this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make an archive for whoever helps with a run: status, configuration, events, logs; no weights, no secrets."""
    from datetime import datetime

    from league.operate.support.bundle import bundle_run

    report = bundle_run(run, file, now=datetime.now())
    typer.echo(report.to_json() if as_json else report.text())
