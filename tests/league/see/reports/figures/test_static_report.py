"""`league report`: the four forms of one report, of one run and of several, and the HTML in a real browser."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import msgspec
import pytest

from league.see.reports.figures.comparison import Comparison, SettingValues
from league.see.reports.figures.figures_page import Report, read_report
from league.see.reports.figures.report_csv import LONG, report_files, report_long
from league.see.reports.figures.report_html import report_html
from league.see.reports.figures.report_markdown import report_markdown
from tests.league.commands import league
from tests.league.see.page.page_runs import write_run
from tests.league.tiny_runs import state_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that no test changes."""
    return write_run(tmp_path_factory.mktemp("made") / "run", leases=40).path


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return read_report([run], now=1_700_000_000.0)


def test_the_json_is_the_report(run: Path) -> None:
    printed = league("report", run, "--json").json
    found = msgspec.convert(printed, Report, strict=False)
    assert found.schema == 1 and found.comparison is None
    state = state_of(run)
    assert found.runs[0].games == state.totals.games and found.runs[0].snapshots == len(state.snapshots)
    assert {node.snapshot for node in found.runs[0].lineage.nodes} == set(state.snapshots)


def test_markdown_is_the_default_and_its_tables_are_whole(run: Path, report: Report) -> None:
    text = league("report", run).out
    assert text.startswith("# run\n") and "## Ratings" in text and "## Payoff" in text and "## Lineage" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count(" | ") for line in table.splitlines() if "---" not in line}) == 1, table
    best = max(
        (point for curve in report.runs[0].ratings.curves for point in curve.points), key=lambda point: point.elo
    )
    assert f"| {best.policy} |" in text.partition("## Ratings")[2].splitlines()[4]


def test_a_bar_or_a_tag_in_a_name_breaks_no_table(report: Report) -> None:
    (figures,) = report.runs
    curve = figures.ratings.curves[0]
    point = msgspec.structs.replace(curve.points[0], policy="a|b<script>")
    ratings = msgspec.structs.replace(figures.ratings, curves=(msgspec.structs.replace(curve, points=(point,)),))
    hostile = msgspec.structs.replace(report, runs=(msgspec.structs.replace(figures, ratings=ratings),))
    assert "| a\\|b&lt;script> |" in report_markdown(hostile)
    assert "<section>of a study</section>\n<main" in report_html(report, before="<section>of a study</section>")
    assert "<script>" not in report_html(hostile).partition('id="report-data">')[2].partition("</script>")[0]


def test_a_bar_in_the_name_of_a_run_breaks_no_table_and_past_and_table_are_apart(report: Report) -> None:
    (figures,) = report.runs
    lineage = msgspec.structs.replace(figures.lineage, past=("taken back to event 7",))
    settings = (SettingValues("seed", ("0", "1")),)
    hostile = msgspec.structs.replace(
        report,
        runs=(msgspec.structs.replace(figures, lineage=lineage),),
        comparison=Comparison(("a|b", "c"), settings, 1, ()),
    )
    text = report_markdown(hostile)
    assert "| setting | a\\|b | c |" in text
    assert "The league was taken back to event 7.\n\n| snapshot |" in text


def test_csv_files_hold_a_row_for_each_number(run: Path, report: Report, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    assert league("report", run, "--csv", tables).out == f"wrote {tables}\n"
    assert {path.name: path.read_text() for path in (tmp_path / "tables").iterdir()} == report_files(report)
    (figures,) = report.runs
    payoff = list(csv.DictReader((tmp_path / "tables" / "payoff.csv").open()))
    assert len(payoff) == len(figures.payoff.cells)
    cell, row = figures.payoff.cells[0], payoff[0]
    assert row["home"] == figures.payoff.policies[cell.row].policy and float(row["win_rate"]) == cell.win_rate


def test_one_csv_file_holds_all_figures_in_one_table(run: Path, report: Report, tmp_path: Path) -> None:
    league("report", run, "--csv", tmp_path / "all.csv")
    text = (tmp_path / "all.csv").read_text()
    assert text == report_long(report)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == LONG
    assert {row["figure"] for row in rows} == {"rating", "payoff", "meta_game", "yardstick", "curve", "opponent_mix"}
    nash = sum(float(row["value"]) for row in rows if row["metric"] == "nash")
    assert nash == pytest.approx(1.0)


def test_a_cell_is_never_a_formula(report: Report) -> None:
    (figures,) = report.runs
    node = msgspec.structs.replace(figures.lineage.nodes[0], snapshot="=1+1")
    lineage = msgspec.structs.replace(figures.lineage, nodes=(node,))
    hostile = msgspec.structs.replace(report, runs=(msgspec.structs.replace(figures, lineage=lineage),))
    assert "'=1+1" in report_files(hostile)["lineage.csv"]


def test_several_runs_stand_side_by_side(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other"
    copy.mkdir()
    for name in ("config.yaml", "journal.db", "metrics.jsonl", "status.json"):
        (copy / name).write_bytes((run / name).read_bytes())
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace("seed: 0", "seed: 6"))
    both = read_report([run, copy], now=0.0)
    assert both.comparison is not None
    assert [(one.key, one.values) for one in both.comparison.settings] == [("seed", ("0", "6"))]
    assert {curve.metric for curve in both.comparison.curves} >= {"league/best_rating_elo"}
    assert all([one.run for one in curve.runs] == ["run", "other"] for curve in both.comparison.curves)
    assert "| seed | 0 | 6 |" in report_markdown(both)


def test_a_live_run_is_reported_as_it_is_now(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "live", leases=10, live=True)
    (found,) = read_report([folder.path], now=0.0).runs
    assert (found.live, found.phase) == (True, "running")
    assert "\nRunning: " in report_markdown(read_report([folder.path], now=0.0))


def test_two_forms_on_one_screen_are_refused(run: Path, tmp_path: Path) -> None:
    ran = league("report", run, "--md", "--json")
    assert ran.code == 2 and "--md and --json" in ran.err
    ran = league("report", tmp_path / "nothing")
    assert ran.code == 2 and "does not exist" in ran.err
