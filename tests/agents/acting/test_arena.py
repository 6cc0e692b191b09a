"""An arena against the loop-for-loop oracle, the probe games behind every adapter; assignments, totals."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.agents.acting.arena import Arena
from league.agents.acting.outcome_counter import MAX_UNCOUNTED, OutcomeCounter
from league.agents.acting.policy import ActInputs, ActOutputs, BotPolicy
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.envs.bots import RandomBot
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from tests.agents.acting import probe_cases as cases
from tests.agents.acting.probe_cases import Assignment, RulePolicy, first_difference, play
from tests.envs.counting_games import LastMoveProbe, TurnProbe
from tests.envs.trajectories import seed_of
from tests.oracles.probe_unrolls import Rules, expected_games, expected_unrolls

NUM_ENVS = 5
TURNS = 60

WAYS = [
    *((cases.built_in, Rules(kind, seats)) for kind in cases.BUILT_IN for seats in (2, 3)),
    (cases.aec, Rules("turns", 2)),
    (cases.aec, Rules("turns", 3)),
    (cases.aec, Rules("mask", 2)),
    (cases.aec, Rules("last_move", 2)),
    (cases.parallel, Rules("simultaneous", 2)),
    (cases.parallel, Rules("simultaneous", 3)),
    (cases.single, Rules("simultaneous", 1)),
    (cases.own_module, Rules("simultaneous", 2)),
    (cases.own_file, Rules("turns", 2)),
]


def way_name(way: Any) -> str:
    make_env, rules = way
    return f"{make_env.__name__}-{rules.kind}-{rules.num_seats}"


@pytest.mark.parametrize("truncate", [False, True], ids=["terminated", "truncated"])
@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_unrolls_equal_those_made_by_hand(way: Any, truncate: bool, tmp_path: Path) -> None:
    make_env, rules = way
    rules = Rules(rules.kind, rules.num_seats, rules.lengths, truncate)
    for unroll_length in (1, 2, 5):
        arena, found = play(make_env(rules, NUM_ENVS, tmp_path), steps=TURNS, unroll_length=unroll_length)
        arena.close()
        num_unrolls = 0
        for env in range(NUM_ENVS):
            expected = expected_unrolls(
                rules, env=env, steps=TURNS, unroll_length=unroll_length, version_of=lambda turn: turn // 7
            )
            for seat, unrolls in expected.items():
                assert not first_difference(found[env, seat], unrolls), f"env {env}, seat {seat}, T {unroll_length}"
                num_unrolls += len(unrolls)
        assert num_unrolls > NUM_ENVS
        assert sum(map(len, found.values())) == num_unrolls


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_games_started_are_games_ended_and_in_flight(way: Any, tmp_path: Path) -> None:
    make_env, rules = way
    arena, _ = play(make_env(rules, NUM_ENVS, tmp_path), steps=TURNS, unroll_length=4)
    (totals,) = arena.take_outcomes()
    games = [game for env in range(NUM_ENVS) for game in expected_games(rules, env=env, steps=TURNS)]
    assert totals.games == len(games)
    assert totals.decisions == sum(decisions for decisions, _ in games)
    assert totals.truncated == 0
    assert totals.return_sums.tolist() == np.sum([returns for _, returns in games], axis=0).tolist()
    for i in range(rules.num_seats):
        for j in range(rules.num_seats):
            assert totals.wins[i, j] == sum(returns[i] > returns[j] for _, returns in games)
            assert totals.draws[i, j] == (i != j) * sum(returns[i] == returns[j] for _, returns in games)
    assert arena.take_outcomes() == ()
    arena.close()


@pytest.mark.parametrize("truncate", [False, True], ids=["by the rules", "by a time limit"])
@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_games_that_a_time_limit_ended_are_counted_whatever_their_result(
    way: Any, truncate: bool, tmp_path: Path
) -> None:
    make_env, rules = way
    rules = Rules(rules.kind, rules.num_seats, rules.lengths, truncate)
    arena, _ = play(make_env(rules, NUM_ENVS, tmp_path), steps=TURNS, unroll_length=4)
    (totals,) = arena.take_outcomes()
    arena.close()
    assert totals.games > 0
    assert totals.truncated == (totals.games if truncate else 0)


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_a_time_limit_that_is_part_of_the_game_ends_it_as_its_rules_do(way: Any, tmp_path: Path) -> None:
    make_env, rules = way
    cut_off = Rules(rules.kind, rules.num_seats, rules.lengths, True)
    env = make_env(cut_off, NUM_ENVS, tmp_path)
    arena, found = play(env, steps=TURNS, unroll_length=4, bootstrap_time_limits=False)
    (totals,) = arena.take_outcomes()
    assert totals.truncated == totals.games > 0
    for number in range(NUM_ENVS):
        expected = expected_unrolls(rules, env=number, steps=TURNS, unroll_length=4, version_of=lambda turn: turn // 7)
        for seat, unrolls in expected.items():
            assert not first_difference(found[number, seat], unrolls), f"env {number}, seat {seat}"
    arena.close()


def test_each_unroll_begins_with_the_bootstrap_row_of_the_one_before() -> None:
    _, found = play(TurnProbe(num_envs=3, episode_length=[5, 3]), steps=80, unroll_length=3)
    for unrolls in found.values():
        for one, following in itertools.pairwise(unrolls):
            assert np.array_equal(one["counter"][-1], following["counter"][0])
            assert one["resets"][-1] == following["resets"][0]


def test_the_losers_last_decision_gets_its_loss() -> None:
    arena, found = play(LastMoveProbe(num_envs=2, episode_length=[6]), steps=60, unroll_length=3)
    for env in range(2):
        for seat, gain in ((0, -1), (1, 1)):
            rewards = [unroll["rewards"].tolist() for unroll in found[env, seat]]
            assert rewards == [[0, 0, gain]] * 9
            assert [unroll["discounts"].tolist() for unroll in found[env, seat]] == [[1, 1, 0]] * 9
    (totals,) = arena.take_outcomes()
    assert totals.wins.tolist() == [[0, 0], [20, 0]]


@pytest.mark.filterwarnings("ignore:.*Overriding environment")  # the same file may be known by its bare name already
def test_array_envs_are_aligned() -> None:
    from tests.envs.oracles import raw_arrays

    for truncate in (False, True):
        env = make(EnvConfig("gymnasium:RawArrayProbe-v0", {"truncate": truncate}), num_envs=3)
        arena = Arena(env, UnrollSpec(env.spec, 4), seed=1)
        unrolls = concatenate(list(arena.run([Assignment(("bot",), (True,))], {"bot": random_policy()}, steps=50)))
        start, step, last = np.moveaxis(unrolls.obs["observation"], -1, 0)
        valid = unrolls.valid
        assert np.array_equal(unrolls.rewards[valid], 16 * (step[:, :-1] + 1)[valid])
        goes_on = valid & ~unrolls.resets[:, 1:]
        assert np.array_equal(last[:, 1:][goes_on], unrolls.actions[goes_on] + 1)
        assert np.array_equal(step[:, 1:][goes_on], step[:, :-1][goes_on] + 1)
        assert np.array_equal(start[:, 1:][goes_on], start[:, :-1][goes_on])
        assert np.array_equal(unrolls.resets, step == 0)
        ends = step[:, :-1] == raw_arrays.LENGTH - 1
        assert np.array_equal(unrolls.discounts == 0, ~valid if truncate else ends)
        assert np.array_equal(~valid, step[:, :-1] == raw_arrays.LENGTH)
        arena.close()


SEATINGS = [
    Assignment(("home", "frozen"), (True, False), 0.5),
    Assignment(("frozen", "home"), (False, True), 0.25),
    Assignment(("home", "home"), (True, True), 0.25),
]


def seats_taken(policies: dict[str, RulePolicy]) -> dict[tuple[int, int], dict[int, str]]:
    """(env, episode) -> seat -> who answered for it; a seat answered for by two policies in one episode fails."""
    taken: dict[tuple[int, int], dict[int, str]] = {}
    for name, policy in policies.items():
        for env, episode, _, seat in policy.asked:
            assert taken.setdefault((env, episode), {}).setdefault(seat, name) == name
    return taken


def test_a_assignment_holds_for_a_whole_episode_and_only_recorded_seats_are_recorded() -> None:
    policies = {"home": RulePolicy(), "frozen": RulePolicy()}
    rules = Rules("turns", 2, (4, 3, 5, 2))
    arena, found = play(
        cases.built_in(rules, NUM_ENVS, Path()), steps=90, unroll_length=3, assignments=SEATINGS, policies=policies
    )
    taken = seats_taken(policies)
    for env in range(NUM_ENVS):
        expected = expected_unrolls(
            rules,
            env=env,
            steps=90,
            unroll_length=3,
            version_of=lambda turn: turn // 7,
            records=lambda episode, seat, env=env: taken[env, episode].get(seat) == "home",
        )
        for seat, unrolls in expected.items():
            assert not first_difference(found[env, seat], unrolls), f"env {env}, seat {seat}"
    counted = {totals.policies: totals.games for totals in arena.take_outcomes()}
    ended = Counter()
    for env in range(NUM_ENVS):
        for episode in range(len(expected_games(rules, env=env, steps=90))):
            ended[tuple(taken[env, episode][seat] for seat in (0, 1))] += 1
    assert counted == ended
    assert set(ended) == {assignment.policies for assignment in SEATINGS}


def test_probabilities_of_the_table_are_honoured() -> None:
    policies = {"home": RulePolicy(), "frozen": RulePolicy()}
    env = TurnProbe(num_envs=64, episode_length=2)
    arena, _ = play(env, steps=200, unroll_length=8, assignments=SEATINGS, policies=policies)
    counted = {totals.policies: totals.games for totals in arena.take_outcomes()}
    games = sum(counted.values())
    assert games == 64 * 100
    for assignment in SEATINGS:
        deviation = np.sqrt(games * assignment.probability * (1 - assignment.probability))
        assert (
            abs(counted[assignment.policies] - games * assignment.probability) < 4 * deviation
        )  # null: the table's own shares


def test_games_in_flight_keep_the_opponent_that_they_started_with() -> None:
    first, second = RulePolicy(), RulePolicy()
    env = TurnProbe(num_envs=4, episode_length=[9, 6])
    arena = Arena(env, UnrollSpec(env.spec, 3, core_size=2), seed=0)
    list(arena.run([Assignment(("home", "first"), (True, False))], {"home": RulePolicy(), "first": first}, steps=5))
    list(arena.run([Assignment(("home", "second"), (True, False))], {"home": RulePolicy(), "second": second}, steps=15))
    assert {(env, episode) for env, episode, _, _ in first.asked} == {(env, 0) for env in range(4)}
    assert {episode for _, episode, _, _ in second.asked} == {1, 2}
    assert {totals.policies: totals.games for totals in arena.take_outcomes()} == {
        ("home", "first"): 4,
        ("home", "second"): 4,
    }


def random_policy(seed: int = 0) -> BotPolicy:
    return BotPolicy(RandomBot(seed=seed))


@pytest.mark.parametrize("teams", [(0, 1, 2), (2, 0, 1, 0), (0, 1, 0, 1), (3, 1, 2, 0, 4)], ids=str)
def test_placements_are_those_of_the_single_games(teams: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    counter, order = OutcomeCounter(teams), list(dict.fromkeys(teams))
    for _ in range(2):  # what was taken is forgotten
        expected: dict[tuple[str, ...], Counter[tuple[int, ...]]] = {}
        for turn in range(30):
            lineups = [tuple(f"{turn % 3}{lineup}" for _ in teams) for lineup in range(2)]
            numbers = [counter.index_of(policies) for policies in lineups]
            drawn, returns = rng.integers(0, 2, 12), rng.integers(-1, 2, (12, len(teams))).astype(np.float32)
            counter.add(np.array(numbers)[drawn], returns=returns, decisions=np.ones(12, np.int64), truncated=drawn > 5)
            for lineup, row in zip(drawn.tolist(), returns.tolist(), strict=True):
                earned = [sum(x for x, team in zip(row, teams, strict=True) if team == other) for other in order]
                ranks = tuple(sum(other > own for other in earned) for own in earned)
                expected.setdefault(lineups[lineup], Counter())[ranks] += 1
        found = {totals.policies: totals.placements for totals in counter.take()}
        assert found == {policies: tuple(sorted(placements.items())) for policies, placements in expected.items()}
        assert sum(games for placements in found.values() for _, games in placements) == 360


def test_episodes_are_counted_alike_one_by_one_and_together() -> None:
    rng, found = np.random.default_rng(1), []
    size = 3 * MAX_UNCOUNTED + 5
    drawn, returns = rng.integers(0, 3, size), rng.normal(size=(size, 2)).astype(np.float32)
    for parts in (1, size):
        counter = OutcomeCounter((0, 1))
        numbers = np.array([counter.index_of((name, "b")) for name in "acd"])
        for part in np.array_split(np.arange(size), parts):
            counter.add(numbers[drawn[part]], returns=returns[part], decisions=part, truncated=part % 3 == 0)
        found.append([repr(totals) for totals in counter.take()])
        assert counter.take() == ()
    assert found[0] == found[1] and len(found[0]) == 3


def test_returns_that_differ_by_rounding_alone_are_a_draw() -> None:
    for scale in (1.0, 2.0**-20, 2.0**20):
        counter = OutcomeCounter((0, 0, 1, 1))
        index = np.full(3, counter.index_of(("a", "a", "b", "b")))
        returns = np.array([[0.3, 0.0, 0.1, 0.2], [0.0, 0.0, 0.0, 0.0], [0.3, 0.0, 0.1, 0.2001]], np.float32) * scale
        returns = returns.astype(np.float32)
        assert returns[0].astype(np.float64)[:2].sum() != returns[0].astype(np.float64)[2:].sum()
        counter.add(index, returns=returns, decisions=np.ones(3, np.int64), truncated=np.zeros(3, np.bool_))
        (totals,) = counter.take()
        assert (totals.draws[0, 2], totals.wins[0, 2], totals.wins[2, 0]) == (2, 0, 1)
        assert totals.placements == (((0, 0), 2), ((1, 0), 1))


def test_only_assignments_with_an_ended_episode_have_tables_between_teams() -> None:
    counter = OutcomeCounter(range(60))
    numbers = [counter.index_of((f"policy-{number}",) * 60) for number in range(500)]
    ended, returns = np.array([numbers[400], numbers[7], numbers[400]]), np.zeros((3, 60), np.float32)
    returns[:, 2] = 1.0
    counter.add(ended, returns=returns, decisions=np.ones(3, np.int64), truncated=np.zeros(3, np.bool_))
    counter.add_aborted(np.array([numbers[9]]))
    counter._count()
    assert counter._wins.shape == (2, 60, 60), "500 tables of a crowd of seats would fill the memory"
    found = {totals.policies[0]: totals for totals in counter.take()}
    assert list(found) == ["policy-400", "policy-7", "policy-9"]
    assert [int(totals.wins[2, 5]) for totals in found.values()] == [2, 1, 0]
    assert [int(totals.draws[1, 5]) for totals in found.values()] == [2, 1, 0]
    assert [(totals.games, totals.aborted) for totals in found.values()] == [(2, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("teams", [(0,), (0, 1), (0, 0, 0)], ids=str)
def test_placements_are_empty_where_wins_say_it_all(teams: tuple[int, ...]) -> None:
    counter = OutcomeCounter(teams)
    number = counter.index_of(("a",) * len(teams))
    returns = np.ones((2, len(teams)), np.float32)
    counter.add(np.full(2, number), returns=returns, decisions=np.ones(2, np.int64), truncated=np.zeros(2, np.bool_))
    assert [totals.placements for totals in counter.take()] == [()]


def test_team_mates_neither_win_nor_draw_against_each_other() -> None:
    counter = OutcomeCounter((0, 1, 0))
    returns = np.array([[1, -2, 1], [0, 4, 1], [2, 2, 0]], np.float32)
    number = counter.index_of(("a", "b", "c"))
    cut = np.array([False, True, True])
    counter.add(np.full(len(returns), number), returns=returns, decisions=np.full(len(returns), 6), truncated=cut)
    (totals,) = counter.take()
    assert (totals.games, totals.truncated) == (3, 2)
    assert totals.wins.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert totals.draws.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert totals.return_sums.tolist() == [3, 4, 2]


def test_a_failed_game_is_counted_as_aborted_and_recorded_up_to_its_failure() -> None:
    """One of four games fails in call 4; everything of the others is recorded as in a run without the failure."""
    seed = 3
    found, totals = [], []
    for targets in ({}, {str(seed_of(seed, 2)): 4}):
        kwargs = {"kind": "parallel", "method": "step", "targets": targets, "length": 9}
        env = make(EnvConfig("tests.envs.crash_games:make", kwargs), num_envs=4)
        arena = Arena(env, UnrollSpec(env.spec, unroll_length=5), seed=seed)
        assignments, policies = [Assignment(("home", "home"), (True, False))], {"home": FirstPolicy()}
        found.append(list(arena.run(assignments, policies, steps=30)))
        totals.append(arena.take_outcomes()[0])
        failures = arena.take_failures()
        arena.close()
    assert [failure.game for failure in failures] == [2]
    assert (totals[0].aborted, totals[1].aborted) == (0, 1)
    assert totals[1].games == totals[0].games - 1
    clean, crashed = (concatenate(unrolls) for unrolls in found)
    assert clean.valid.all()
    cut = np.flatnonzero(~crashed.valid.all(axis=1))
    assert len(cut) == 1
    assert crashed.valid[cut[0]].tolist() == [True, True, True, False, True]  # 3 results, then the marker
    assert crashed.resets[cut[0]].tolist() == [True, False, False, False, True, False]
    rows = {row.tobytes() for row in crashed.obs["observation"]}
    missing = [row for row in clean.obs["observation"] if row.tobytes() not in rows]
    assert len(missing) <= 6, "unrolls of games that did not fail have changed"


class FirstPolicy:
    """Takes action 0."""

    version = 0

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        num = len(inputs.slots)
        return ActOutputs(np.zeros(num, np.int64), np.zeros(num, np.float32), inputs.core)
