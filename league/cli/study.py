"""The command `league study`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json


def add_study(app: typer.Typer) -> None:
    """Adds the command to the `league` command."""
    app.command("study")(study)


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
