"""A league for a trainer of the user's own: whom it meets, what counts, what is frozen, what a second start finds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.errors import ConfigError, LeagueError, RunInUse
from league.run.budget import Limits
from league.run.launch import resume
from league.run.own_trainer.granted_match import GrantedMatch, counted, returns_of
from league.run.own_trainer.own_league import League
from tests.league.run.own_trainer.own_leagues import WITH_EXPLOITER, add_due, open_league, ready, weights
from tests.league.tiny_runs import ONE_PLAYER, start, state_of, tiny

LIGHT = """
import sys
import league
assert not {"torch", "ray", "scipy"} & set(sys.modules), "import league"
league.League
print(sorted({"torch", "ray", "scipy", "fastapi", "wandb"} & set(sys.modules)))
"""


def test_neither_the_import_nor_the_league_loads_torch_or_ray() -> None:
    found = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60.0, check=True)
    assert found.stdout.strip() == "[]"


def test_a_report_counts_once_however_often_it_is_given(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        match = league.next_match()
        for _ in range(3):
            league.report(match, [[1, -1], [0, 0]], env_steps=2)
    state = state_of(tmp_path / "run")
    assert (state.totals.games, state.totals.env_steps, state.totals.leases_finished) == (2, 2, 1)
    assert state.players["main-0"].trained_steps == 2


def test_a_match_of_an_earlier_start_counts_nothing_and_is_refused(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        old = league.next_match()
    with open_league(tmp_path) as league:
        with pytest.raises(LeagueError, match="match 1 is of start 1 of this league, which is at start 2"):
            league.report(old, 1)
        with pytest.raises(LeagueError, match="lease 7 was never granted"):
            league.report(replace(old, match_id=7, token=2), 1)
        assert league.games == 0


def test_a_match_that_is_given_up_counts_nothing_afterwards(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        match = league.next_match()
        league.give_up(match)
        league.give_up(match)
        league.report(match, 1)
        assert league.games == 0


def test_a_gate_asks_for_a_snapshot_which_is_then_met_by_the_bytes_of_its_file(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        won = [[1, -1]] * 20, [[-1, 1]] * 20
        match, steps = _against(league, "main-0-s0"), 10
        assert not league.report(match, won[match.seat], env_steps=20, trained_steps=steps)
        while not league.report(_against(league, "main-0-s0"), 1, trained_steps=(steps := steps + 10)):
            assert steps < 200, "the timeout"
        assert steps == 40  # the least that the gate waits for
        file = weights(tmp_path, 77)
        assert league.add_snapshot("main-0", file) is None
        assert not league.snapshot_due("main-0")
        file.write_bytes(b"the trainer goes on writing there")
        met = [league.next_match("main-0") for _ in range(40)]
        frozen = next(match for match in met if match.opponent == "main-0-s1")
        assert frozen.file is not None
        assert frozen.file.read_bytes() == b"weights 77"
        assert frozen.file.suffix == ".bin"
        assert next(match for match in met if match.opponent == "main-0").file is None
    reasons = [info.reason for info in state_of(tmp_path / "run").snapshots.values()]
    assert reasons == ["initial", "gate"]


def _against(league: League, opponent: str) -> GrantedMatch:
    """The next match against an opponent; others are given up."""
    while (match := league.next_match("main-0")).opponent != opponent:
        league.give_up(match)
    return match


def test_opponents_that_win_are_met_more(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        league.add_snapshot("main-0", weights(tmp_path, 1))
        met: Counter[str] = Counter()
        for number in range(160):
            match = league.next_match("main-0")
            league.report(match, {"main-0-s0": -1, "main-0-s1": 1}.get(match.opponent, 0), trained_steps=1)
            met[match.opponent] += number >= 60
        assert met["main-0-s0"] > 2 * met["main-0-s1"]


def test_a_reset_names_the_file_to_start_again_from(tmp_path: Path) -> None:
    with ready(tmp_path, WITH_EXPLOITER) as league:
        first = league.restore("main-exploiter-0")
        while not league.snapshot_due("main-exploiter-0"):
            league.report(league.next_match("main-exploiter-0"), 1, env_steps=20)
        again = dict(add_due(league, tmp_path))
        assert again["main-exploiter-0"] == first is not None
        assert league.next_match("main-exploiter-0").player == "main-exploiter-0"
    assert state_of(tmp_path / "run").players["main-exploiter-0"].generation == 1


def test_no_match_before_the_first_weights_and_none_of_a_stranger(tmp_path: Path) -> None:
    with open_league(tmp_path) as league:
        with pytest.raises(LeagueError, match=r"call add_snapshot\('main-0', path\)"):
            league.next_match()
        with pytest.raises(LeagueError, match="no player 'mian-0'; there are main-0"):
            league.next_match("mian-0")
        with pytest.raises(LeagueError, match="does not exist: write the weights of main-0 there first"):
            league.add_snapshot("main-0", tmp_path / "nowhere.pt")


def test_a_second_start_continues_and_the_trainer_gets_its_newest_file(tmp_path: Path) -> None:
    with open_league(tmp_path) as league:
        assert league.restore("main-0") is None
        league.add_snapshot("main-0", weights(tmp_path, 0))
        for _ in range(3):
            league.report(league.next_match(), 1, env_steps=4)
        league.add_snapshot("main-0", weights(tmp_path, 1))
        league.report(league.next_match(), 1, env_steps=4)
    with open_league(tmp_path) as league:
        newest = league.restore("main-0")
        assert newest is not None and newest.read_bytes() == b"weights 1"
        assert league.games == 4
    player = state_of(tmp_path / "run").players["main-0"]
    assert (player.trained_steps, player.lost_steps) == (12, 4)


def test_a_damaged_file_is_set_aside_and_taken_back_once_it_is_whole(tmp_path: Path) -> None:
    said: list[str] = []
    with ready(tmp_path) as league:
        league.add_snapshot("main-0", weights(tmp_path, 1))
    (stored,) = [path for path in (tmp_path / "run" / "snapshots").glob("*/*/weights.bin") if b"1" in path.read_bytes()]
    stored.write_bytes(b"flipped 1")
    with open_league(tmp_path, say=said.append) as league:
        assert {league.next_match().opponent for _ in range(30)} == {"main-0", "main-0-s0"}
        assert sum("main-0-s1 is set aside" in sentence for sentence in said) == 1
    stored.write_bytes(b"weights 1")
    with open_league(tmp_path, say=said.append) as league:
        assert "main-0-s1" in {league.next_match().opponent for _ in range(30)}


def test_rating_matches_are_between_frozen_policies_and_move_the_ratings(tmp_path: Path) -> None:
    with ready(tmp_path) as league:
        assert league.rating_match() is None
        league.add_snapshot("main-0", weights(tmp_path, 1))
        for _ in range(6):
            match = league.rating_match()
            assert match is not None and set(match.policies) == {"main-0-s0", "main-0-s1"} == set(match.files)
            won = 1 if match.policies[0] == "main-0-s1" else -1
            assert not league.report(match, [[won, -won]] * 10)
        first, second = league.ratings()
        assert (first.policy, first.elo > second.elo + 100) == ("main-0-s1", True)


def test_two_processes_may_not_have_a_folder_at_once(tmp_path: Path) -> None:
    with ready(tmp_path), pytest.raises(RunInUse):
        open_league(tmp_path)
    open_league(tmp_path).close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"env": "tic_tac_toe"}, "env.id: cannot change"),
        ({"seed": 4}, "seed: cannot change"),
        ({"loader": "mine.py:Player"}, "trainer.loader: cannot change"),
        ({"settings": {"players": [{}, {}]}}, "two groups are named"),
        ({"settings": {"plyers": []}}, "plyers"),
        ({"settings": {"preset": "pbt"}}, "league.pbt.selection: PBT copies restart states of our learners"),
    ],
)
def test_settings_that_do_not_fit_the_league_are_refused(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    ready(tmp_path).close()
    with pytest.raises(ConfigError, match=words):
        open_league(tmp_path, **changes)  # type: ignore[arg-type]
    open_league(tmp_path).close()


def test_each_trainer_keeps_to_its_own_folders(tmp_path: Path) -> None:
    ready(tmp_path).close()
    with pytest.raises(LeagueError, match="trained by a program of your own"):
        resume(tmp_path / "run", limits=Limits(env_steps=1))
    ended = start(tmp_path / "ours", tiny(env={"id": "rock_paper_scissors"}, league=ONE_PLAYER), env_steps=100)
    with pytest.raises(LeagueError, match=r"trainer.kind: cannot change from \"league\" to \"own\""):
        open_league(ended.folder.path.parent)


MATCH = GrantedMatch(1, 1, "main-0", ("x", "main-0", "x", "main-0"))


def test_one_number_is_the_return_of_the_players_team() -> None:
    assert returns_of(MATCH, 1, teams=(0, 1, 0, 1)).tolist() == [[-1, 1, -1, 1]]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ([1, -1], r"the form \[2\], not \[games, 4\]"),
        ([[1, 2, 3, float("nan")]], "not finite"),
        ("won", "no array of numbers"),
        (np.zeros((0, 4)), "the form"),
    ],
)
def test_outcomes_of_another_form_are_refused(outcome: object, words: str) -> None:
    with pytest.raises(LeagueError, match=words):
        returns_of(MATCH, outcome, teams=(0, 1, 0, 1))  # type: ignore[arg-type]


def test_games_are_counted_by_the_sum_of_a_team() -> None:
    returns = returns_of(MATCH, [[1, 2, 1, 1], [0, 0, 0, 0]], teams=(0, 1, 0, 1))
    (outcome,) = counted(MATCH, returns, teams=(0, 1, 0, 1), decisions=7)
    assert (outcome.games, outcome.decisions, outcome.wins[1][0], outcome.draws[1][0]) == (2, 7, 1, 1)
