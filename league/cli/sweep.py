"""The commands that train and compare runs with several settings: `league sweep` and `league study`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Overrides, names_in
from league.errors import LeagueError

OBJECTIVES = ("yardsticks", "exploiter", "exact")


def sweep(
    source: Annotated[
        str, typer.Argument(metavar="CONFIG", help="YAML configuration, or the id of a game.", show_default=False)
    ],
    space: Annotated[
        Path, typer.Option(help="YAML of dotted keys, each with low, high and log, or choices.", show_default=False)
    ],
    core_seconds: Annotated[
        float, typer.Option("--core-seconds", min=1.0, help="Budget of each trial.", show_default=False)
    ],
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, earlier ones in the folder included.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Trials at a time.")] = 1,
    objective: Annotated[str, typer.Option(help="yardsticks, exploiter or exact (minus NashConv).")] = "yardsticks",
    rungs: Annotated[
        int,
        typer.Option(min=1, max=8, help="Measurements of a trial; at each but the last the weaker end (ASHA)."),
    ] = 1,
    reduction: Annotated[int, typer.Option(min=2, help="Of so many trials one passes a rung.")] = 3,
    bots: Annotated[str, typer.Option(help="Yardsticks, comma-separated.")] = "random,tactical,mcts:25",
    games: Annotated[int, typer.Option(min=2, help="Games of each match.")] = 200,
    exploiter_core_seconds: Annotated[float, typer.Option(min=1.0, help="Budget of each exploiter.")] = 10.0,
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the sweep; one that is there is continued.")] = Path(
        "sweeps/sweep"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of draws and games.")] = 0,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Train runs with different settings and equal budgets and report the strongest; repeat the command to continue."""
    if objective not in OBJECTIVES:
        raise LeagueError(f"--objective {objective}: give {', '.join(OBJECTIVES)}.")
    from league.lab.sweep.plan import SweepPlan
    from league.lab.sweep.sweep import open_sweep
    from league.lab.trials.objective import TrialObjective
    from league.lab.trials.process_runner import ProcessRunner

    measured = TrialObjective(objective, names_in(bots), games, exploiter_core_seconds)  # type: ignore[arg-type]  # checked above
    path = Path(source)
    plan = SweepPlan(
        source=str(path.absolute()) if path.is_file() else source,
        space=space.read_text(encoding="utf-8"),
        core_seconds=core_seconds,
        overrides=tuple(overrides or []),
        objective=measured,
        rungs=rungs,
        reduction=reduction,
        seed=seed,
    )
    say = (lambda sentence: None) if as_json else typer.echo
    report = open_sweep(folder, plan, space, runner=ProcessRunner(folder / "logs"), say=say).run(
        num_trials=trials, jobs=jobs
    )
    typer.echo(report.to_json() if as_json else report.text())


def study(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML of arms, seeds and budget.", show_default=False)],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Folder of the study; one that is there is continued.",
            show_default="studies/ and FILE without .yaml",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Runs at a time, and processes of their matches.")] = 1,
    as_json: Json = False,
) -> None:
    """Compare arms over paired seeds and say what is settled; repeat the command to continue.

    DIR holds every run, and at the end report.json and report.html.
    """
    from league.agents.torch_runtime import prepare_process
    from league.lab.study.referee import TournamentReferee
    from league.lab.study.study import Study
    from league.lab.study.study_config import read_study
    from league.lab.trials.process_runner import ProcessRunner
    from league.progress import ProgressLine
    from league.see.reports.figures.figures_page import read_report
    from league.see.reports.figures.report_html import report_html
    from league.store.storage import Storage

    prepare_process()
    config, folder = read_study(file), folder or Path("studies") / file.stem
    with ProgressLine(sys.stderr) as line:
        report = Study(
            folder,
            config,
            runner=ProcessRunner(folder / "logs"),
            referee=TournamentReferee(config.compare, jobs=jobs),
            show=lambda text, fraction: line.show(text, fraction=fraction),
        ).run(jobs=jobs)
    runs = [Path(row.run) for arm in report.arms for row in arm.runs if not row.error]
    storage = Storage()
    storage.atomic_write_bytes(folder / "report.json", f"{report.to_json()}\n".encode())
    if runs:
        page = report_html(read_report(runs, now=time.time()), before=report.html())
        storage.atomic_write_bytes(folder / "report.html", page.encode())
    typer.echo(report.to_json() if as_json else f"{report.text()}\n\n{folder / 'report.html'} has every curve.")


def sweep_report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the sweep.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show the trials of a sweep so far, also of one at work: the best, and which settings mattered."""
    from league.lab.sweep.sweep_report import read_sweep

    report = read_sweep(folder)
    typer.echo(report.to_json() if as_json else report.text())
