"""The table of runs: a row of each folder by what it holds, and a size that is not counted at every look."""

from __future__ import annotations

import json
from pathlib import Path

from league.run.control.run_labels import read_labels
from league.run.monitor import names
from league.see.page.runs.run_rows import SIZE_STAYS_S, SIZES_S, ListedRuns
from league.see.reports.status.run_size import disk_bytes
from league.store.run_folder import RunFolder
from tests.league.commands import league
from tests.league.see.page.page_runs import write_run, write_status


def test_a_row_says_what_the_folder_holds(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", leases=4, live=True)
    values = {
        names.PROBE_VALUE.of_yardstick("yardsticks.random"): 0.9,
        names.PROBE_VALUE.of_yardstick("past.worst"): 0.4,
    }
    row = {"step": 1, "time": 2.0, "values": {**values, names.BEST_RATING.name: 70.0}}
    with folder.metrics_path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    (found,) = ListedRuns().rows({"one": folder})
    assert (found.id, found.game, found.name, found.phase, found.is_live) == (
        "one",
        "tic_tac_toe",
        "made",
        "running",
        True,
    )
    assert found.scores == {"random": 0.9} and found.rating == 70.0
    assert found.budget_spent == 0.25 and found.left_s == 55.0 * 3
    assert found.size_bytes == disk_bytes(folder.path)
    write_status(folder, live=False)
    (ended,) = ListedRuns().rows({"one": folder})
    assert (ended.phase, ended.left_s) == ("stopped", None)


def test_labels_are_given_shown_and_taken_away(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", leases=2)
    assert league("label", folder.path).out == "no label\n"
    assert league("label", folder.path, "wide net, seed=3,wide net").out == "wide net, seed=3\n"
    assert ListedRuns().rows({"one": folder})[0].labels == ("wide net", "seed=3")
    for bad, sentence in (("<b>", "is no label"), (",".join(map(str, range(13))), "at most 12 labels, not 13")):
        refused = league("label", folder.path, bad)
        assert refused.code == 2 and sentence in refused.err
    (folder.path / "labels.json").write_text('{"no": "list"}')
    assert read_labels(folder.path) == ()
    assert league("label", folder.path, "").out == "no label\n"


def test_sizes_are_counted_seldom_and_within_their_time(tmp_path: Path) -> None:
    now = [0.0]
    table, folder = ListedRuns(monotonic=lambda: now[0]), write_run(tmp_path / "one", leases=2)
    before = table.rows({"one": folder})[0].size_bytes
    (folder.path / "more").write_bytes(b"x" * 1000)
    assert table.rows({"one": folder})[0].size_bytes == before
    now[0] = SIZE_STAYS_S + 1.0
    assert table.rows({"one": folder})[0].size_bytes == disk_bytes(folder.path) > (before or 0)
    ticks = iter([0.0, 1.0])
    slow = ListedRuns(monotonic=lambda: next(ticks) * 2 * SIZES_S)
    assert slow.rows({"one": folder})[0].size_bytes is None


def test_a_folder_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.mkdir()
    (path / "config.yaml").write_text("env: [")
    (found,) = ListedRuns().rows({"one": RunFolder(path)})
    assert (found.phase, found.game, found.scores) == ("stopped", "", {})
