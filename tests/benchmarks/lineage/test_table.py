"""The table of the whole lineage: what is in it, and that a cell that is done is never measured again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.lineage import table
from benchmarks.lineage.cell import measured
from benchmarks.lineage.systems import GAMES, MODES, Cell, cells
from league.agents.learner.algorithms.algorithms import OBJECTIVES, UPDATERS
from league.envs.component_choice import kind_of


def test_every_registered_algorithm_and_update_mode_is_in_it() -> None:
    choices = [
        sections.get("learner", {}).get("algorithm", "vtrace")
        for game in GAMES.values()
        for sections in game.systems.values()
    ]
    assert {kind_of(choice, "vtrace") for choice in choices} == {*OBJECTIVES, *UPDATERS}  # type: ignore[arg-type]
    assert {cell.mode for cell in cells(GAMES, (0,))} == set(MODES)


def test_two_cells_are_measured_once_and_a_refused_one_leaves_its_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [Cell("kuhn_poker", name, "one learner", 0) for name in ("vtrace", "dqn")]
    refused = Cell("connect_four", "es", "hogwild", 0)
    monkeypatch.setattr(table, "cells", lambda games, seeds: [*wanted, refused])
    assert table.missing([*wanted, refused], tmp_path) == [*wanted, refused]
    for cell in (*wanted, refused):
        table.main(["--results", str(tmp_path), "--core-seconds", "0.3", "--cell", cell.name])
    monkeypatch.setattr(table, "_measured_in_a_process", lambda cell, options: pytest.fail(f"{cell} is done"))
    assert table.main(["--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed.splitlines()[-1])
    assert [(row["system"], row["seeds"]) for row in found["rows"]] == [("vtrace", 1), ("dqn", 1)]
    for row in found["rows"]:
        assert row["decisions_per_core_s"] > 100 and row["row_bytes_per_decision"] > 1
        assert 0.0 < row["nash_conv"][0] <= 2.0
    assert found["rows"][0]["beside_vtrace"] == 0.0 and "| vtrace | one learner |" in printed
    assert "es computes no gradients" in json.loads(table.file_of(refused, tmp_path).read_text())["refused"]


def test_a_cell_that_failed_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table, measured.__name__, interrupted)
    cell = Cell("kuhn_poker", "vtrace", "one learner", 0)
    with pytest.raises(KeyboardInterrupt):
        table.measure_one(cell, tmp_path, core_seconds=1.0, games=1)
    assert table.missing([cell], tmp_path) == [cell]
