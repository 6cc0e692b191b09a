"""Tests of one policy of a pool against another: what they decide, that each counts once, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.judge.matches.sprt import PAIR_SCORES, SprtConfig, sequential_test
from league.judge.pools.core.records import BOT, BatchResult, PoolGame, PoolPolicy, result_problem
from league.judge.pools.core.rules import AddPolicy, BeginTest, CreatePool, EndTest, GrantBatch, PoolRefused, decide
from league.judge.pools.core.schedule import RATINGS_TURN
from league.judge.pools.core.state import PoolState, apply, from_plain, to_plain
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool
from league.judge.pools.pool import Pool, open_pool
from league.judge.pools.request_file import SUFFIX, PoolRequest, write_request
from league.judge.pools.run import run_here
from tests.league.commands import league

WIDE = SprtConfig(elo0=0.0, elo1=100.0)
ASKED = BeginTest("bot:tactical", "bot:random", WIDE, 2_000, by="me", reason="is it?")


@pytest.fixture
def pool(pool_folder: PoolFolder) -> Iterator[Pool]:
    """The pool of the fixture, at work."""
    with open_pool(pool_folder) as opened:
        yield opened


def play_until(pool: Pool, folder: PoolFolder, batches: int) -> None:
    """Play so many batches more at most, or until no test is open."""
    end = pool.state.finished + batches
    run_here(pool, still=lambda: bool(pool.state.open_tests) and pool.state.finished < end, source=folder.path)


def test_the_stronger_is_found_and_its_games_are_rated_too(pool: Pool, pool_folder: PoolFolder) -> None:
    number = pool.ask(ASKED)
    play_until(pool, pool_folder, 60)
    account = pool.state.tests[number]
    assert account.outcome == "H1" and account.games >= 8
    assert sequential_test(np.array(account.pairs), WIDE).decision == "H1"
    assert 2 * sum(account.pairs) == account.games == account.wins + account.draws + account.losses
    assert np.isclose(account.wins + account.draws / 2, 2 * PAIR_SCORES @ account.pairs)
    assert pool.state.games.values[pool.state.by_name["bot:tactical"]] >= account.games
    assert to_plain(read_pool(pool_folder)) == to_plain(pool.state)


def test_the_weaker_side_is_seen_as_such(pool: Pool, pool_folder: PoolFolder) -> None:
    number = pool.ask(replace(ASKED, first="bot:random", second="bot:tactical"))
    play_until(pool, pool_folder, 60)
    account = pool.state.tests[number]
    assert (account.outcome, account.losses > account.wins) == ("H0", True)


def test_a_test_ends_undecided_after_its_games_and_is_withdrawn_on_demand(pool: Pool, pool_folder: PoolFolder) -> None:
    one = pool.ask(replace(ASKED, config=SprtConfig(-1.0, 1.0), max_games=4))
    play_until(pool, pool_folder, 4)
    assert pool.state.tests[one].outcome == "undecided" and pool.state.tests[one].games >= 4
    two = pool.ask(ASKED)
    pool.ask(EndTest(two, "withdrawn"))
    with pytest.raises(PoolRefused, match="has ended already"):
        pool.ask(EndTest(two, "withdrawn"))
    assert [account.outcome for account in pool.state.tests.values()] == ["undecided", "withdrawn"]


def test_ratings_keep_a_part_of_the_leases_and_tests_share_the_rest(pool: Pool) -> None:
    numbers = [pool.ask(ASKED), pool.ask(replace(ASKED, first="bot:mcts:5", second="bot:tactical"))]
    granted = [pool.lease(f"worker {number}") for number in range(2 * RATINGS_TURN)]
    tests = [one.lease.test for one in granted if one is not None]
    assert len(tests) == 2 * RATINGS_TURN and tests.count(0) == 2
    assert tests.count(numbers[0]) == tests.count(numbers[1]) == RATINGS_TURN - 1


def test_a_request_in_the_inbox_counts_once_also_when_it_is_left_there(pool: Pool, pool_folder: PoolFolder) -> None:
    file = pool_folder.inbox / f"one{SUFFIX}"
    request = PoolRequest(replace(ASKED, request="one"))
    for _ in range(2):  # as after a crash between the journal and the removal of the file
        write_request(request, file)
        assert pool._inbox.look() == 0 and not file.exists()
    assert len(pool.state.tests) == 1
    asked = league("pool", "withdraw", pool_folder.path, 1)
    assert asked.code == 0 and "inbox" in asked.out
    pool._inbox.look()
    assert pool.state.tests[1].outcome == "withdrawn"


def test_what_is_no_request_moves_to_refused(
    pool: Pool, pool_folder: PoolFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._inbox, "_wall_time", lambda: 4e9)
    (pool_folder.inbox / f"bad{SUFFIX}").write_text('{"test": {"first": "a"}}')
    write_request(PoolRequest(replace(ASKED, first="bot:nobody")), pool_folder.inbox / f"who{SUFFIX}")
    pool._inbox.look()
    assert sorted(path.name for path in pool_folder.refused.glob("*.txt")) == [f"bad{SUFFIX}.txt", f"who{SUFFIX}.txt"]
    assert "no policy bot:nobody" in (pool_folder.refused / f"who{SUFFIX}.txt").read_text()


def test_a_decision_that_a_crash_left_out_is_made_at_the_next_start(pool_folder: PoolFolder, tmp_path: Path) -> None:
    with open_pool(pool_folder) as pool:
        number = pool.ask(ASKED)
        pool._settle = lambda account: None  # type: ignore[method-assign]
        run_here(pool, still=lambda: pool.state.tests[number].games < 400, source=pool_folder.path)
    shutil.copytree(pool_folder.path, tmp_path / "copy")
    with open_pool(PoolFolder(tmp_path / "copy")) as pool:
        assert not pool.state.tests[number].outcome
        pool.tend()
        assert pool.state.tests[number].outcome == "H1"


def state_with(teams: int = 2) -> PoolState:
    """A state of three bots."""
    state = apply(PoolState(), decide(PoolState(), CreatePool(PoolGame("tic_tac_toe", teams))))
    for name in ("bot:random", "bot:tactical", "bot:mcts:5"):
        state = apply(state, decide(state, AddPolicy(PoolPolicy(name, BOT))))
    return state


@pytest.mark.parametrize(
    ("teams", "change", "words"),
    [
        (3, {}, "has 3 teams"),
        (2, {"first": "bot:nobody"}, "no policy bot:nobody"),
        (2, {"first": "bot:random"}, "against itself"),
        (2, {"max_games": 1}, "2 to 10,000,000 games"),
        (2, {"config": SprtConfig(0.0, 1e6)}, "must lie between"),
    ],
)
def test_what_no_test_can_be_is_refused(teams: int, change: dict[str, object], words: str) -> None:
    with pytest.raises(PoolRefused, match=words):
        decide(state_with(teams), replace(ASKED, **change))  # type: ignore[arg-type]


def test_a_lease_of_a_test_is_of_its_two_policies() -> None:
    state = state_with()
    state = apply(state, decide(state, ASKED))
    with pytest.raises(PoolRefused, match="not of these two"):
        decide(state, GrantBatch("me", 1, 2, 4, 60.0, test=1))
    with pytest.raises(PoolRefused, match="not of these two"):
        decide(state, GrantBatch("me", 1, 0, 4, 60.0, test=7))


def test_pairs_that_cannot_be_are_refused() -> None:
    result = BatchResult(2, 1, 1, squares=1.0625, seconds=1.0, pairs=(0, 1, 0, 0, 1))
    assert result_problem(result, games=4, teams=2) == ""
    for pairs in ((0, 1, 0, 0, 2), (1, 0, 0, 0, 1), (-1, 2, 0, 0, 1), (1, 1)):
        assert "are not those of" in result_problem(replace(result, pairs=pairs), games=4, teams=2)


def test_a_pool_of_an_earlier_version_has_no_tests() -> None:
    plain = to_plain(state_with())
    del plain["tests"]
    assert from_plain(plain).tests == {}


def test_the_commands_begin_show_and_withdraw(pool_folder: PoolFolder) -> None:
    said = league(
        "pool", "test", pool_folder.path, "bot:mcts:5", "bot:tactical", "--sprt", "elo0=-5 elo1=5", "--games", 40
    )
    assert (said.code, said.out.strip()) == (0, "test 1 has begun.")
    assert league("pool", "run", pool_folder.path, "--for", "3s").code == 0
    [row] = league("pool", "tests", pool_folder.path, "--json").json["tests"]
    assert (row["first"], row["second"], row["elo0"], row["outcome"]) == (
        "bot:mcts:5",
        "bot:tactical",
        -5.0,
        "undecided",
    )
    assert row["games"] == 2 * sum(row["pairs"]) >= 40 and row["lower"] < row["ratio"] < row["upper"]
    assert "bot:mcts:5" in league("pool", "tests", pool_folder.path).out
    refused = league("pool", "withdraw", pool_folder.path, 1)
    assert refused.code == 2 and "has ended already" in refused.err
    assert "is no contender" in league("pool", "test", pool_folder.path, "a", "b").err
