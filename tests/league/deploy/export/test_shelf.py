"""The zoo: packages that are played by name, which shelf comes first, and those that come with the installation."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from benchmarks.strength.zoo import CORE_SECONDS, MAX_BYTES
from league.config.contender_names import SHIPPED, ZOO_VARIABLE, fetched_folder, zoo_folder, zoo_places
from league.deploy.export.exporter import export_policy
from league.deploy.export.importer import verify_package
from league.deploy.export.shelf import read_shelf, shelf_bytes
from league.envs.registry import BUILT_IN
from league.errors import LeagueError
from league.policies.fetched.zoo_index import fetch_zoo, index_of
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


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder of packages that this machine serves, and its address; what is fetched goes into the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "offered"
    shutil.copytree(SHIPPED / "tic_tac_toe", folder / "tic_tac_toe")
    assert league("zoo", folder, "--write-index").code == 0
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(10.0)
    server.server_close()


def test_the_packages_of_an_index_are_fetched_once_and_played(
    offered: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = offered
    (row,) = league("zoo", "--index", address, "--json").json["rows"]
    fetched = Path(row["folder"])
    assert row["name"] == "zoo:tic_tac_toe" and verify_package(fetched).num_bytes > 0
    (folder / "tic_tac_toe" / "model.safetensors").unlink()
    assert fetch_zoo(address) == fetched.parent
    monkeypatch.setenv(ZOO_VARIABLE, f"/my own/zoo:{address} {folder}")
    assert zoo_places() == (Path("/my own/zoo"), fetched.parent, folder, SHIPPED)
    assert zoo_folder("zoo:tic_tac_toe") == fetched


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("weights", "is not what SHA256SUMS says"),
        ("sums", "is not what the index says"),
        ("name", "no name with a sha256"),
        ("kind", "holds policy.py"),
        ("long", "has more than"),
        ("late", "takes more than"),
        ("gone", "answers 404"),
    ],
)
def test_what_is_not_as_the_index_says_is_refused_and_nothing_is_kept(
    offered: tuple[Path, str], change: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = offered
    package, index = folder / "tic_tac_toe", folder / "index.json"
    if change == "weights":
        (package / "model.safetensors").write_bytes(b"other")
    elif change == "sums":
        (package / "SHA256SUMS").write_text("")
    elif change == "name":
        index.write_text(json.dumps({"packages": {"../tic_tac_toe": "0" * 64}}))
    elif change == "kind":
        (package / "SHA256SUMS").write_text(f"{'0' * 64}  policy.py\n")
        index.write_bytes(msgspec.json.encode(index_of(folder)))
    elif change == "long":
        monkeypatch.setattr("league.policies.fetched.zoo_index.MAX_BYTES", 2_000)
    elif change == "gone":
        index.unlink()
    seconds = iter([0.0, *[1e6] * 99]) if change == "late" else itertools.repeat(0.0)
    with pytest.raises(LeagueError, match=sentence):
        fetch_zoo(address, clock=lambda: next(seconds))
    assert not list(fetched_folder(address).iterdir())


@pytest.mark.parametrize("address", ["http://example.org/zoo", "ftp://x/zoo", "https://me:word@host/zoo", "https://"])
def test_an_index_comes_by_https_or_from_this_machine(address: str) -> None:
    with pytest.raises(LeagueError, match=r"use https|no address of a zoo"):
        fetch_zoo(address)


def test_what_is_shipped_is_small_and_of_the_games_that_are_made() -> None:
    assert shelf_bytes(SHIPPED_ROWS) <= MAX_BYTES
    assert {row.game for row in SHIPPED_ROWS} <= set(CORE_SECONDS) <= set(BUILT_IN)


@pytest.mark.parametrize("row", SHIPPED_ROWS, ids=lambda row: row.name)
def test_what_is_shipped_is_whole_and_plays(row) -> None:  # type: ignore[no-untyped-def]
    verify_package(Path(row.folder))
    played = league("match", row.name, "bot:random", "--games", 2)
    assert played.code == 0 and not row.trouble, played.err
    assert row.scores and row.trained_steps > 0
