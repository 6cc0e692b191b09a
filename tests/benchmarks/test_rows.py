"""Rows of benchmarks: what is kept is not measured again, and a missed bound fails the command."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.report import Report
from benchmarks.rows import add_row_options, chosen_rows, measure_rows


def test_kept_rows_are_skipped_and_a_missed_bound_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []

    def measure(name: str, folder: Path) -> Report:
        assert list(folder.iterdir()) == []
        measured.append(name)
        report = Report()
        report.add(name, 1.0, "s", at_most=2.0 if name == "sound" else 0.5)
        return report

    for names, status in ((["sound"], 0), (["sound", "slow"], 1), (["sound", "slow"], 0)):
        found = measure_rows(names, measure, results=tmp_path, as_json=True, conditions={"seed": 3})
        assert found == status
    assert measured == ["sound", "slow"]
    kept = json.loads((tmp_path / "slow.json").read_text())
    assert (kept["seed"], kept["rows"][0]["met"]) == (3, False)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"rows": []}


def test_rows_that_there_are_none_of_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_row_options(parser, ("kills", "soak"))
    assert chosen_rows(parser, parser.parse_args([]), ("kills", "soak")) == ["kills", "soak"]
    with pytest.raises(SystemExit):
        chosen_rows(parser, parser.parse_args(["--rows", "kills,sok"]), ("kills", "soak"))
    assert "no rows sok; there are kills, soak" in capsys.readouterr().err
