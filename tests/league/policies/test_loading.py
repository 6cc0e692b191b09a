"""A policy comes back from disk as it was trained, under the names that users give it, or as a sentence."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pettingzoo
import pytest
import torch

import league
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.errors import CorruptSnapshot, LeagueError, MissingRun
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy
from league.policies.loaded_policy import LoadedPolicy
from league.policies.loading import PolicyMismatch, copies_at, open_run
from league.policies.observation import ObservationMismatch
from league.policies.select import UnknownPolicy, choose
from league.see.reports.payoff import read_payoff
from league.see.reports.ratings import read_ratings
from tests.league.judge.matches.eval_runs import (
    EMPTY_BOARD,
    FOUR,
    TINY_LSTM,
    MadeRun,
    column_of,
    constant_network,
    network_of,
    scaled,
)

ROSHAMBO = EnvConfig("rock_paper_scissors")


def test_the_loaded_policy_has_the_probabilities_of_the_trained_network(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    network = network_of(made.config, seed=7)
    name = made.snapshot("main-0", network, version=9)
    policy = load_policy(made.close(), name)
    board = np.random.default_rng(0).random((2, 6, 7)) < 0.3
    mask = np.array([1, 1, 0, 1, 1, 1, 0])
    output = network.step({"board": torch.from_numpy(board[None])}, action_mask=torch.from_numpy(mask[None] == 1))
    expected = torch.softmax(output.logits, -1)[0].detach().numpy()
    np.testing.assert_allclose(policy.probs(board, mask), expected, atol=1e-6)
    assert policy.probs(board, mask)[[2, 6]].tolist() == [0.0, 0.0]
    assert isinstance(policy, LoadedPolicy)
    assert (policy.name, policy.version) == (name, 9)
    assert policy.members == [(1.0, policy)]


def test_sampled_actions_follow_the_probabilities(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", network_of(made.config, seed=3))
    policy = load_policy(made.close(), seed=1)
    mask = np.array([0, 1, 1, 0, 0, 1, 0])
    drawn = np.bincount([policy.act(EMPTY_BOARD, mask) for _ in range(600)], minlength=7)
    deviation = np.sqrt(600 * 0.25)
    np.testing.assert_allclose(drawn, 600 * policy.probs(EMPTY_BOARD, mask), atol=4 * deviation)
    assert drawn[mask == 0].sum() == 0


def test_a_seed_repeats_the_actions_and_greedy_takes_the_likeliest(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", network_of(made.config, seed=3))
    policy, greedy = load_policy(made.close(), "best"), load_policy(made.path, greedy=True)
    rounds = []
    for _ in range(2):
        policy.reset(seed=4)
        rounds.append([policy.act(EMPTY_BOARD) for _ in range(20)])
    assert rounds[0] == rounds[1]
    assert len(set(rounds[0])) > 1
    assert {greedy.act(EMPTY_BOARD) for _ in range(20)} == {int(policy.probs(EMPTY_BOARD).argmax())}


def test_names_stand_for_snapshots(four_run: MadeRun) -> None:
    path = four_run.close()
    assert column_of(load_policy(path, "main-0-s0")) == 1
    assert column_of(load_policy(path, "main-exploiter-0")) == 2
    assert column_of(load_policy(path, "main-0")) == 3
    assert column_of(league.load_policy(str(path), player="main-0-s1")) == 3


def test_best_is_the_newest_of_a_main_agent_before_any_game_is_rated(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", constant_network(made.config, action=1))
    made.snapshot("main-0", constant_network(made.config, action=3))
    made.snapshot("main-exploiter-0", constant_network(made.config, action=2))
    assert column_of(load_policy(made.close(), "best")) == 3


def test_best_is_the_highest_rated_and_not_the_last(four_run: MadeRun) -> None:
    strength = {"main-0-s0": 2.0, "main-exploiter-0-s0": 0.0, "main-0-s1": 1.0}
    four_run.rate(lambda policy: strength[policy])
    assert column_of(load_policy(four_run.close(), "best")) == 1


def test_best_is_of_a_main_agent_though_an_exploiter_is_rated_higher(four_run: MadeRun) -> None:
    strength = {"main-0-s0": 0.0, "main-exploiter-0-s0": 2.0, "main-0-s1": 1.0}
    four_run.rate(lambda policy: strength[policy])
    assert column_of(load_policy(four_run.close(), "best")) == 3


def test_best_is_the_newest_of_those_that_are_even(four_run: MadeRun) -> None:
    strength = {"main-0-s0": 1.0, "main-exploiter-0-s0": 0.0, "main-0-s1": 1.0}
    four_run.rate(lambda policy: strength[policy])
    path = four_run.close()
    assert column_of(load_policy(path, "best")) == 3
    assert choose(open_run(path).state, "best").reason.startswith(
        "the newest of main-0 that is not significantly weaker"
    )


def test_a_snapshot_with_hardly_a_game_is_even_with_nobody(four_run: MadeRun) -> None:
    strength = {"main-0-s0": 1.0, "main-exploiter-0-s0": 0.0, "main-0-s1": 1.0}
    four_run.rate(lambda policy: strength[policy])
    four_run.snapshot("main-0", constant_network(four_run.config, action=5), version=9)
    assert column_of(load_policy(four_run.close(), "best")) == 3


def test_best_is_never_the_untrained_network_once_a_learner_was_saved_that_has_trained(four_run: MadeRun) -> None:
    """Neither before a game is rated nor after, and not though the first weights are rated above what came of them."""
    four_run.save("main-0", constant_network(four_run.config, action=4), trained_steps=500)
    four_run.save("main-exploiter-0", constant_network(four_run.config, action=5), trained_steps=900)
    assert column_of(load_policy(four_run.path, "best")) == 4
    four_run.rate(lambda policy: 1.0)
    path = four_run.close()
    assert column_of(load_policy(path, "best")) == 4
    selection = choose(open_run(path).state, "best")
    assert selection.reason == (
        "main-0 as it was last saved, at 500 steps, as no trained snapshot has a rated game yet"
    )
    (copy,) = copies_at(path, "best")
    assert (copy.name, copy.manifest.player, copy.manifest.trained_steps) == ("main-0", "main-0", 500)


def test_last_is_of_the_strongest_main_agent_though_another_has_trained_more(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", env=FOUR, main_agents=2)
    for player in ("main-0", "main-1", "main-exploiter-0"):
        run.snapshot(player, constant_network(run.config, action=0))
    for player, action in (("main-0", 1), ("main-1", 2)):
        run.snapshot(player, constant_network(run.config, action=action), version=9, trained_steps=400)
    run.save("main-0", constant_network(run.config, action=3), trained_steps=900)
    run.save("main-1", constant_network(run.config, action=4), trained_steps=1000)
    assert column_of(load_policy(run.path, "last")) == 4, "nothing is rated yet"
    run.rate(lambda policy: float(policy == "main-0-s1"))
    assert column_of(load_policy(run.path, "last")) == 3
    run.snapshot("main-0", constant_network(run.config, action=5), version=10, trained_steps=900)
    assert column_of(load_policy(run.close(), "last")) == 5, "less trained than main-1, and the newest of main-0"


def test_best_of_a_game_of_one_team_is_the_newest_and_no_ratings_are_awaited(tmp_path: Path) -> None:
    lone = MadeRun(tmp_path / "lone", env=EnvConfig("probe_turns", kwargs={"num_seats": 1}))
    for action in (0, 1):
        lone.snapshot("main-0", constant_network(lone.config, action=action))
    path = lone.close()
    reason = "the newest snapshot of main-0, as a game of one team has no ratings"
    assert choose(open_run(path).state, "best").reason == reason
    assert "a game of one team has no ratings" in read_ratings(path).text()
    assert read_payoff(path).text() == f"{path}: a game of one team has no opponents"


def test_best_is_a_trained_snapshot_though_the_first_weights_are_rated_higher(four_run: MadeRun) -> None:
    four_run.snapshot("main-0", constant_network(four_run.config, action=5), version=9, trained_steps=400)
    four_run.save("main-0", constant_network(four_run.config, action=4), trained_steps=440)
    assert column_of(load_policy(four_run.path, "best")) == 5, "hardly anything was learnt since"
    strength = {"main-0-s0": 2.0, "main-exploiter-0-s0": 0.0, "main-0-s1": 1.0, "main-0-s2": 0.5}
    four_run.save("main-0", constant_network(four_run.config, action=4), trained_steps=500)
    assert column_of(load_policy(four_run.path, "best")) == 4
    four_run.rate(lambda policy: strength[policy])
    assert column_of(load_policy(four_run.close(), "best")) == 5


def test_memory_is_carried_between_acts_and_cleared_by_reset(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", scaled(network_of(made.config, seed=1)))
    policy = load_policy(made.close(), greedy=True)
    boards = [np.random.default_rng(seed).random((2, 6, 7)) < 0.5 for seed in range(3)]
    policy.reset()
    fresh = [policy.probs(boards[1]), policy.probs(boards[1])]
    np.testing.assert_array_equal(fresh[0], fresh[1])
    policy.act(boards[0])
    carried = policy.probs(boards[1])
    assert np.abs(carried - fresh[0]).max() > 1e-3, "the first board must still be remembered"
    policy.reset()
    np.testing.assert_array_equal(policy.probs(boards[1]), fresh[0])


def test_one_game_by_hand_equals_the_same_game_in_a_match(tmp_path: Path) -> None:
    """Acting on single observations and acting in a batch must be one thing, memory included."""
    made = MadeRun(tmp_path / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", scaled(network_of(made.config, seed=1)))
    seats = [load_policy(made.close(), greedy=True), load_policy(made.path, greedy=True)]
    env = make(FOUR, num_envs=1)
    turn, moves = env.reset(0), 0
    while not turn.ended[0]:
        assert turn.action_mask is not None
        action = seats[int(turn.seat[0])].act({"board": turn.obs["board"][0]}, turn.action_mask[0])
        turn, moves = env.step(np.array([action])), moves + 1
    assert isinstance(seats[0], LoadedPolicy)
    result = Match(FOUR, [seats[0].as_seat_policy()], seed=0, opening_plies=0).play(2)
    assert result.mean_steps == moves


def test_a_policy_trained_on_a_pettingzoo_game_plays_in_pettingzoos_own_loop(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("pettingzoo:classic/connect_four_v3"))
    made.snapshot("main-0", network_of(made.config, seed=0))
    policy = load_policy(made.close())
    env = pettingzoo.make("aec", "classic/connect_four_v3")
    env.reset(seed=0)
    moves = 0
    for _ in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        if not (terminated or truncated):
            assert observation["observation"].shape == (6, 7, 2)
            bare = policy.probs(observation["observation"], observation["action_mask"])
            np.testing.assert_array_equal(policy.probs(observation), bare)
            moves += 1
        env.step(None if terminated or truncated else policy.act(observation))
    env.close()
    assert moves >= 7
    with pytest.raises(ObservationMismatch, match=r"shape \(2, 6, 7\), the policy was trained on shape \(6, 7, 2\)"):
        policy.act(EMPTY_BOARD)


@pytest.mark.parametrize(
    "observation",
    [
        EMPTY_BOARD,
        EMPTY_BOARD.astype(np.int8),
        EMPTY_BOARD.tolist(),
        {"board": EMPTY_BOARD},
        {"observation": EMPTY_BOARD},
        {"board": EMPTY_BOARD, "action_mask": np.ones(7)},
    ],
)
def test_observations_are_taken_as_the_environment_shows_them(four_run: MadeRun, observation: object) -> None:
    policy = load_policy(four_run.close(), "main-0-s0")
    assert policy.act(observation) == 1


def test_a_mask_within_the_observation_counts(four_run: MadeRun) -> None:
    policy = load_policy(four_run.close(), "main-0-s0")
    assert policy.act({"board": EMPTY_BOARD, "action_mask": np.array([1, 0, 0, 0, 0, 0, 0], np.int8)}) == 0


@pytest.mark.parametrize(
    ("observation", "mask", "message"),
    [
        (np.zeros((6, 7, 2)), None, r"shape \(6, 7, 2\), the policy was trained on shape \(2, 6, 7\)"),
        (np.full((2, 6, 7), 0.5), None, "holds values that bool cannot, such as 0.5"),
        ({"board": EMPTY_BOARD, "turn": 1}, None, "has the fields board, turn, the policy was trained on board"),
        (np.full((2, 6, 7), "x"), None, "numbers"),
        (EMPTY_BOARD, np.ones(6), r"mask has shape \(6,\), connect_four has 7 actions"),
        (EMPTY_BOARD, np.zeros(7), "allows no action"),
    ],
)
def test_what_does_not_fit_is_named(four_run: MadeRun, observation: object, mask: object, message: str) -> None:
    policy = load_policy(four_run.close())
    with pytest.raises(ObservationMismatch, match=message):
        policy.act(observation, mask)


def test_a_snapshot_folder_loads_alone_wherever_it_lies(four_run: MadeRun, tmp_path: Path) -> None:
    inside = four_run.snapshot_folder("main-exploiter-0-s0")
    four_run.close()
    assert column_of(load_policy(inside)) == 2
    copied = shutil.copytree(inside, tmp_path / "my-policy")
    assert column_of(load_policy(copied)) == 2
    for name in ("mixture", "average"):
        assert [weight for weight, _ in load_policy(copied, name).members] == [1.0]
    with pytest.raises(UnknownPolicy, match="is one snapshot, of the player main-exploiter-0, not 'main-0'"):
        load_policy(copied, "main-0")


def test_a_snapshot_folder_knows_its_game_and_refuses_another(tmp_path: Path) -> None:
    game = EnvConfig("matrix_game", kwargs={"payoffs": [[0.0] * 4] * 4})
    made = MadeRun(tmp_path / "run", env=game)
    inside = made.snapshot_folder(made.snapshot("main-0", constant_network(made.config, action=3)))
    made.close()
    copied = shutil.copytree(inside, tmp_path / "my-policy")
    assert load_policy(copied).act([1.0]) == load_policy(copied, env=game).act([1.0]) == 3
    with pytest.raises(PolicyMismatch, match=r"does not fit matrix_game here: parameter .*as env=EnvConfig"):
        load_policy(copied, env=EnvConfig("matrix_game"))
    with pytest.raises(PolicyMismatch, match="was trained on matrix_game and does not fit connect_four"):
        load_policy(copied, env=FOUR)


def test_a_game_that_the_weights_fit_by_chance_is_refused(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("probe_turns"))
    folder = made.snapshot_folder(made.snapshot("main-0", network_of(made.config, seed=0)))
    made.close()
    with pytest.raises(PolicyMismatch, match="seats, observations, actions or the mask differ"):
        load_policy(folder, env=EnvConfig("probe_turns", kwargs={"num_seats": 3}))


@pytest.mark.parametrize("name", ["last", "main-0"])
def test_a_restart_state_of_another_game_is_refused_as_a_snapshot_is(four_run: MadeRun, name: str) -> None:
    four_run.save("main-0", constant_network(four_run.config, action=4), trained_steps=500)
    path = four_run.close()
    with pytest.raises(PolicyMismatch, match="was trained on connect_four and does not fit tic_tac_toe here: seats"):
        load_policy(path, name, env=EnvConfig("tic_tac_toe"))


def test_unknown_names_are_answered_with_the_nearest(four_run: MadeRun) -> None:
    with pytest.raises(UnknownPolicy, match="no player or snapshot 'main-0-s7'; did you mean main-0-s"):
        load_policy(four_run.close(), "main-0-s7")


def test_a_run_without_snapshots_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownPolicy, match="no snapshot yet"):
        load_policy(MadeRun(tmp_path / "run", env=FOUR).close())


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingRun, match="does not exist"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(MissingRun, match="not a run folder"):
        load_policy(tmp_path)


@pytest.mark.parametrize("name", ["weights.safetensors", "manifest.json"])
def test_a_flipped_bit_is_never_played_with(four_run: MadeRun, name: str) -> None:
    file = four_run.snapshot_folder("main-0-s1") / name
    four_run.close()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    for source in (four_run.path, file.parent):
        with pytest.raises(CorruptSnapshot):
            load_policy(source)


def test_every_load_error_is_a_sentence_for_the_user() -> None:
    assert issubclass(UnknownPolicy, LeagueError)
    assert issubclass(ObservationMismatch, LeagueError)


def test_importing_league_stays_light() -> None:
    """Torch takes a second to import; `league --help` must not wait for it."""
    code = "import sys, league; print(sorted({'torch', 'numpy', 'ray'} & set(sys.modules)), hasattr(league, 'nothing'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[] False"
