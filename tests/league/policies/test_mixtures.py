"""Mixtures of policies: which members a name stands for, how they are drawn, and that a game keeps the one drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from league.agents.acting.policy import ActInputs
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy, MixtureSeatPolicy
from league.policies.select import UnknownPolicy
from tests.league.judge.matches.eval_runs import (
    EMPTY_BOARD,
    FOUR,
    TINY_LSTM,
    MadeRun,
    RulePolicy,
    always,
    column_of,
    constant_network,
    network_of,
    scaled,
)

ROSHAMBO = EnvConfig("rock_paper_scissors")


def test_a_mixture_draws_its_members_by_weight_at_reset(tmp_path: Path) -> None:
    """Three snapshots that each always show one hand: the mixture that none of them beats holds all three alike."""
    made = MadeRun(tmp_path / "run", env=ROSHAMBO)
    hands = {
        made.snapshot("main-0", constant_network(made.config, action=0)): 0,
        made.snapshot("main-0", constant_network(made.config, action=1)): 1,
        made.snapshot("main-0", constant_network(made.config, action=2)): 2,
    }
    made.rate_cycle(hands)
    mixture = load_policy(made.close(), "mixture")
    assert isinstance(mixture, LoadedMixture)
    assert sum(weight for weight, _ in mixture.members) == pytest.approx(1.0)
    np.testing.assert_allclose([weight for weight, _ in mixture.members], [1 / 3] * 3, atol=0.05)
    shown = []
    for game in range(300):
        mixture.reset(seed=0 if game == 0 else None)
        hand = mixture.act([1.0])
        assert hand == mixture.act([1.0]) == int(mixture.probs([1.0]).argmax()) == hands[mixture.drawn.name]
        shown.append(hand)
    np.testing.assert_allclose(np.bincount(shown, minlength=3) / 300, [1 / 3] * 3, atol=0.1)
    mixture.reset(seed=0)
    assert mixture.act([1.0]) == shown[0]


def test_the_average_holds_the_later_half_of_every_main_agent_alike(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    for action in range(5):
        made.snapshot("main-0", constant_network(made.config, action=action))
    made.snapshot("main-exploiter-0", constant_network(made.config, action=6))
    average = load_policy(made.close(), "average")
    assert isinstance(average, LoadedMixture)
    assert [(weight, member.name) for weight, member in average.members] == [
        (pytest.approx(1 / 3), f"main-0-s{number}") for number in (2, 3, 4)
    ]
    shown = set()
    for game in range(60):
        average.reset(seed=0 if game == 0 else None)
        shown.add(average.act(EMPTY_BOARD))
    assert shown == {2, 3, 4}


def test_a_mixture_of_ones_own_is_written_as_names_and_weights(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    for action in range(4):
        made.snapshot("main-0", constant_network(made.config, action=action))
    path = made.close()

    def weights(player: str) -> dict[str, float]:
        policy = load_policy(path, player)
        assert isinstance(policy, LoadedMixture)
        return {member.name: round(weight, 6) for weight, member in policy.members}

    assert weights("main-0-s1*3+main-0-s0") == {"main-0-s1": 0.75, "main-0-s0": 0.25}
    assert weights(" main-0-s2 * 2 + main-0-s2 ") == {"main-0-s2": 1.0}
    # The average is snapshots 2 and 3; a name in a mixture brings its members with their parts of its weight.
    assert weights("average+main-0-s3") == {"main-0-s3": 0.75, "main-0-s2": 0.25}
    for written in ("main-0-s1*", "main-0-s1*0", "main-0-s1*-1+main-0-s0", "main-0-s1*nan", "main-0-s1*inf"):
        with pytest.raises(UnknownPolicy, match="with a weight above 0"):
            load_policy(path, written)
    with pytest.raises(UnknownPolicy, match="did you mean main-0-s"):
        load_policy(path, "main-0-s1+main-0-s9")


def test_a_mixture_in_a_match_draws_a_member_for_each_game(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=ROSHAMBO)
    made.snapshot("main-0", constant_network(made.config, action=0))
    made.snapshot("main-0", constant_network(made.config, action=2))
    members = [(share, load_policy(made.close(), name)) for share, name in ((3.0, "main-0-s0"), (1.0, "main-0-s1"))]
    mixture = LoadedMixture("mine", members)  # type: ignore[arg-type]
    rock = load_policy(made.path, "main-0-s0").as_seat_policy()
    wins, draws, losses = Match(ROSHAMBO, [mixture.as_seat_policy(), rock], seed=0).play(400).counts()
    # Against rock: rock draws, scissors lose.
    assert wins == 0
    assert draws / 400 == pytest.approx(0.75, abs=0.08)
    assert losses == 400 - draws


def test_a_mixture_of_uneven_weights_draws_unevenly_at_reset(four_run: MadeRun) -> None:
    path = four_run.close()
    members = [(3.0, load_policy(path, "main-0-s0")), (1.0, load_policy(path, "main-0-s1"))]
    mixture = LoadedMixture("mine", members, seed=2)  # type: ignore[arg-type]
    assert [weight for weight, _ in mixture.members] == [0.75, 0.25]
    shown = []
    for _ in range(400):
        mixture.reset()
        shown.append(column_of(mixture))
    assert shown.count(1) / 400 == pytest.approx(0.75, abs=0.08)
    with pytest.raises(ValueError, match="positive weight"):
        LoadedMixture("mine", [(0.0, members[0][1])])  # type: ignore[list-item]


def test_a_member_of_a_mixture_plays_its_game_to_the_end() -> None:
    env = make(FOUR, num_envs=200)
    turn = env.reset(0)
    mixture = MixtureSeatPolicy([(0.5, RulePolicy(always(1))), (0.5, RulePolicy(always(5)))])
    rng = np.random.default_rng(0)
    slots = np.arange(200)
    first = mixture.act(ActInputs(env, turn, slots, np.zeros((200, mixture.core_size), np.float32)), rng)
    later = mixture.act(ActInputs(env, turn, slots, first.core), rng)
    assert set(first.actions.tolist()) == {1, 5}
    np.testing.assert_array_equal(first.actions, later.actions)


def test_a_team_is_played_by_one_member_also_where_its_seats_begin_in_turns() -> None:
    env = make(EnvConfig("team_matrix"), num_envs=200)
    mixture = MixtureSeatPolicy([(0.5, RulePolicy(always(0))), (0.5, RulePolicy(always(2)))])
    turn, rng = env.reset(0), np.random.default_rng(0)
    blank = np.zeros((800, mixture.core_size), np.float32)
    for _ in range(2):
        by_seat = mixture.act(ActInputs(env, turn, np.arange(800), blank), rng).actions.reshape(200, 4)
        assert (by_seat[:, 0] == by_seat[:, 1]).all() and (by_seat[:, 2] == by_seat[:, 3]).all()
        assert 60 < (by_seat[:, 0] == by_seat[:, 2]).sum() < 140, "other teams draw their own"
        assert 60 < (by_seat[:, 0] == 0).sum() < 140
    seats = [np.flatnonzero(turn.seat == seat) for seat in range(4)]
    in_turns = [mixture.act(ActInputs(env, turn, slots, blank[:200]), rng).actions for slots in seats]
    assert (in_turns[0] == in_turns[1]).all() and (in_turns[2] == in_turns[3]).all()
    assert (in_turns[0] != by_seat[:, 0]).any(), "a new episode has a new draw"


def test_a_member_with_memory_keeps_it_within_a_mixture(tmp_path: Path) -> None:
    """A mixture of one LSTM plays a match exactly as that LSTM alone."""
    made = MadeRun(tmp_path / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", scaled(network_of(made.config, seed=1)))
    alone = load_policy(made.close(), greedy=True)
    assert isinstance(alone, LoadedPolicy)
    mixture = LoadedMixture("one", [(1.0, alone)])
    first, second = (Match(FOUR, [policy.as_seat_policy()], seed=0).play(40) for policy in (alone, mixture))
    assert first.counts() == second.counts()
    assert first.steps == second.steps
