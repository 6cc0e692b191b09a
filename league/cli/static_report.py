"""The command that writes a run down: `league report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json
from league.errors import LeagueError


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.", show_default=False)],
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file with every plot in it.")
    ] = None,
    csv_path: Annotated[
        Path | None,
        typer.Option(
            "--csv", metavar="PATH", help="Write a table for each figure into a folder, or one long table into X.csv."
        ),
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--md", help="Print Markdown (the default).")] = False,
    as_json: Json = False,
) -> None:
    """Report on runs, also live ones: ratings, yardsticks, payoff, meta-game, lineage and curves, side by side."""
    import time

    from league.see.reports.figures.figures_page import read_report
    from league.see.reports.figures.report_csv import report_files, report_long
    from league.see.reports.figures.report_markdown import report_markdown

    if as_markdown and as_json:
        raise LeagueError("--md and --json both print the report: give one of them.")
    found = read_report(runs, now=time.time())
    if html_file is not None:
        from league.see.reports.figures.report_html import report_html

        html_file.write_text(report_html(found), encoding="utf-8")
    if csv_path is not None and csv_path.suffix == ".csv":
        csv_path.write_text(report_long(found), encoding="utf-8")
    elif csv_path is not None:
        csv_path.mkdir(parents=True, exist_ok=True)
        for name, text in report_files(found).items():
            (csv_path / name).write_text(text, encoding="utf-8")
    written = " and ".join(str(path) for path in (html_file, csv_path) if path is not None)
    if as_json:
        typer.echo(found.to_json())
    elif as_markdown or (html_file is None and csv_path is None):
        typer.echo(report_markdown(found), nl=False)
    else:
        typer.echo(f"wrote {written}")
