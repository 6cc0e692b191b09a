"""`league pool` as its users run it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from league.store.lock import RunLock
from tests.league.commands import league
from tests.league.judge.pools.frozen_copies import snapshot_folder
from tests.league.tiny_runs import ONE_PLAYER, start, tiny


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of two bots and two snapshots after a second of play."""
    folder = tmp_path_factory.mktemp("pools") / "pool"
    assert league("pool", "init", folder, "--game", "tic_tac_toe", "--anchor", "random=100").code == 0
    first = snapshot_folder(folder.parent / "one", 1)
    assert league("pool", "add", folder, "bot:tactical", first).code == 0
    assert league("pool", "push", folder, snapshot_folder(folder.parent / "two", 2)).code == 0
    assert league("pool", "run", folder, "--for", "1").code == 0
    return folder


def test_everyone_is_rated_and_the_stronger_bot_above_its_anchor(played: Path) -> None:
    table = league("pool", "list", played, "--json").json
    rows = {row["name"]: row for row in table["rows"]}
    assert len(rows) == 4
    assert (rows["bot:random"]["elo"], rows["bot:random"]["low"], rows["bot:random"]["status"]) == (
        100.0,
        100.0,
        "anchor",
    )
    assert rows["bot:tactical"]["low"] > 100.0
    assert all(row["games"] >= 8 for row in rows.values())
    assert table["games"] * 2 == sum(row["games"] for row in rows.values())


def test_the_table_is_there_for_people_and_as_csv(played: Path) -> None:
    text = league("pool", "list", played).out
    assert "bot:tactical" in text and "95 % interval" in text
    rows = list(csv.DictReader(io.StringIO(league("pool", "list", played, "--csv").out)))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("add", "{}", "bot:tactcal"), "tactical"),
        (("add", "{}", "nothing"), "no contender"),
        (("add", "{}", "bot:some.module:Bot"), "built-in"),
        (("add", "{}", "bot:tactical"), "already"),
        (("init", "{}", "--game", "tic_tac_toe"), "already"),
        (("init", "{}x", "--game", "tic_tac_toe", "--anchor", "bot:random"), "BOT=ELO"),
        (("init", "{}x", "--game", "tic_tac_to"), "tic_tac_toe"),
        (("init", "{}x", "--game", "cartpole"), ""),
        (("list", "{}x"), "pool init"),
        (("list", "{}", "--json", "--csv"), "not both"),
    ],
)
def test_a_mistake_is_one_sentence(played: Path, arguments: tuple[str, ...], word: str) -> None:
    ran = league("pool", *(text.format(played) for text in arguments))
    assert ran.code == 2 and word in ran.err and "Traceback" not in ran.err


def test_a_policy_of_another_game_is_refused_and_is_not_left_in_the_inbox(played: Path, tmp_path: Path) -> None:
    made = league("pool", "add", played, snapshot_folder(tmp_path / "other", 1, "connect_four"))
    assert made.code == 2
    assert "connect_four" in made.err
    assert list((played / "inbox").iterdir()) == []


def test_policies_for_a_pool_that_somebody_works_on_wait_in_its_inbox(played: Path, tmp_path: Path) -> None:
    with RunLock(played / "run.lock"):
        made = league("pool", "add", played, snapshot_folder(tmp_path / "third", 3))
        assert (made.code, made.out.split()[1:4]) == (0, ["lies", "in", "the"])
        assert league("pool", "add", played, "bot:mcts:25").code == 2
    assert len(list((played / "inbox").iterdir())) == 1


def test_a_game_in_a_file_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text("from pettingzoo.classic import rps_v2\nmake = rps_v2.parallel_env\n")
    monkeypatch.chdir(tmp_path)
    assert league("pool", "init", "pool", "--game", "own.py:make", "--trust").code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    joined = league("pool", "add", "../pool", "bot:mcts:1", "--trust")
    assert (joined.code, joined.out) == (0, "bot:mcts:1 joined.\n")


def test_a_pool_for_a_run_rates_policies_whose_seats_have_groups(tmp_path: Path) -> None:
    groups = {"first": ["player_1"], "second": ["player_2"]}
    seats = {"id": "pettingzoo:classic/tictactoe_v3", "policies": groups}
    start(tmp_path, tiny(league=ONE_PLAYER, env=seats), env_steps=300)
    run, pool = tmp_path / "run", tmp_path / "pool"
    assert league("pool", "init", pool, "--game", run).code == 0
    assert league("pool", "add", pool, f"{run}:main-0-s0").code == 0
    assert league("pool", "run", pool, "--for", "1").code == 0
    rows = {row["name"]: row for row in league("pool", "list", pool, "--json").json["rows"]}
    assert rows["run.main-0-s0"]["games"] >= 8
