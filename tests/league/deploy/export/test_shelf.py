"""The zoo: packages that are played by name, which shelf comes first, and those that come with the installation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.strength.zoo import CORE_SECONDS, MAX_BYTES
from league.config.contender_names import SHIPPED, ZOO_VARIABLE
from league.deploy.export.exporter import export_policy
from league.deploy.export.importer import verify_package
from league.deploy.export.shelf import read_shelf, shelf_bytes
from league.envs.registry import BUILT_IN
from league.errors import LeagueError
from tests.league.commands import league
from tests.league.tiny_runs import start

SHIPPED_ROWS = read_shelf([SHIPPED]).rows if SHIPPED.is_dir() else ()


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of packages, both with one called `mine`, and a damaged one."""
    folder = tmp_path_factory.mktemp("zoo")
    run = start(folder, env_steps=256).folder.path
    for place in ("one", "two"):
        (folder / place).mkdir()
        export_policy(run, folder / place / "mine", player="last")
    (folder / "one" / "broken").mkdir()
    (folder / "one" / "broken" / "manifest.json").write_text("{}")
    return folder / "one", folder / "two"


def test_a_name_stands_for_the_package_of_the_first_shelf(
    shelves: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ZOO_VARIABLE, os.pathsep.join(map(str, shelves)))
    played = league("match", "zoo:mine", "bot:random", "--games", 2)
    assert (played.code, "zoo:mine" in played.out) == (0, True), played.err
    listed = league("zoo", "--json").json
    rows = {row["name"]: row for row in listed["rows"]}
    assert rows["zoo:mine"]["folder"] == str(shelves[0] / "mine") and rows["zoo:mine"]["game"] == "tic_tac_toe"
    assert "cannot be read" in rows["zoo:broken"]["trouble"] and "cannot be read" in league("zoo").out
    unknown = league("match", "zoo:mind", "bot:random")
    assert unknown.code == 2 and "did you mean mine?" in unknown.err
    assert league("match", "zoo:../one/mine", "bot:random").code == 2


def test_a_folder_may_be_listed_without_the_variable(shelves: tuple[Path, Path], tmp_path: Path) -> None:
    assert [row.name for row in read_shelf(shelves).rows] == ["zoo:broken", "zoo:mine"]
    assert "`make zoo` trains some" in league("zoo", tmp_path).out
    with pytest.raises(LeagueError, match="is no folder"):
        read_shelf([tmp_path / "nowhere"])


def test_what_is_shipped_is_small_and_of_the_games_that_are_made() -> None:
    assert shelf_bytes(SHIPPED_ROWS) <= MAX_BYTES
    assert {row.game for row in SHIPPED_ROWS} <= set(CORE_SECONDS) <= set(BUILT_IN)


@pytest.mark.parametrize("row", SHIPPED_ROWS, ids=lambda row: row.name)
def test_what_is_shipped_is_whole_and_plays(row) -> None:  # type: ignore[no-untyped-def]
    verify_package(Path(row.folder))
    played = league("match", row.name, "bot:random", "--games", 2)
    assert played.code == 0 and not row.trouble, played.err
    assert row.scores and row.trained_steps > 0
