"""A match plays exactly the games asked for, shares openings within a group, and rotates the teams."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import league.judge.matches.match as match_module
from league.agents.acting.policy import ActInputs, ActOutputs, BotPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.bots import make_bot
from league.envs.protocol import ActionSpec, ArraySpec, BatchedEnv, EnvConfig, EnvError, EnvSpec, Turn
from league.envs.registry import spec_of
from league.judge.matches.game_batch import OutOfTime, idle_actions
from league.judge.matches.match import Match, seat_holders
from league.policies.loaded_policy import LoadedPolicy
from league.policies.observation import ObservationMismatch
from tests.agents.learner.learner_cases import weights_in
from tests.league.judge.matches.eval_runs import RulePolicy, always, first_legal

FOUR = EnvConfig("connect_four")
ROSHAMBO = EnvConfig("rock_paper_scissors")


def bot(name: str, seed: int = 0) -> BotPolicy:
    return BotPolicy(make_bot(name, seed=seed))


def first_positions(
    opening_plies: int, *, seed: int = 3, game: EnvConfig = FOUR, stones: int
) -> tuple[list[NDArray[np.generic]], list[int]]:
    """The boards and the seat to move in both rotations of a match, when `stones` are on each board."""
    notes: list[tuple[NDArray[np.generic], int]] = []

    def rule(inputs: ActInputs) -> NDArray[np.int64]:
        board = inputs.turn.obs["board"][inputs.slots]
        if len(board) == 20 and board.sum() == stones * 20:
            notes.append((board.copy(), int(inputs.turn.seat[inputs.slots][0])))
        return first_legal(inputs)

    Match(game, [RulePolicy(rule)], seed=seed, opening_plies=opening_plies).play(40)
    return [board for board, _ in notes], [seat for _, seat in notes]


@pytest.mark.parametrize("opening_plies", [2, 3])
def test_the_games_of_a_pair_start_from_the_same_random_opening(opening_plies: int) -> None:
    boards, seats = first_positions(opening_plies, stones=opening_plies)
    assert len(boards) == 2
    np.testing.assert_array_equal(boards[0], boards[1])
    assert seats == [opening_plies % 2] * 2
    assert len(np.unique(boards[0].reshape(20, -1), axis=0)) > 5, "the pairs of a match have openings of their own"


def test_the_games_of_a_pair_share_what_the_env_itself_deals() -> None:
    """Here the env's own random stream makes the openings, as it would shuffle the cards of another game."""
    boards, _ = first_positions(0, game=EnvConfig("connect_four", kwargs={"opening_plies": 4}), stones=4)
    assert len(boards) == 2
    np.testing.assert_array_equal(boards[0], boards[1])
    assert len(np.unique(boards[0].reshape(20, -1), axis=0)) > 5


def test_another_seed_gives_other_openings() -> None:
    (first, _), (second, _) = (first_positions(2, seed=seed, stones=2) for seed in (3, 4))
    assert not np.array_equal(first[0], second[0])


def test_a_seat_is_held_once_by_each_contender() -> None:
    spec = EnvSpec("x", 3, {}, None, teams=(0, 1, 2), has_mask=False)  # type: ignore[arg-type]
    contenders = [RulePolicy(first_legal) for _ in range(3)]
    table = [seat_holders(spec, contenders, rotation) for rotation in range(3)]
    for seat in range(3):
        assert {id(row[seat]) for row in table} == {id(contender) for contender in contenders}


def test_team_mates_are_held_by_one_contender() -> None:
    spec = EnvSpec("x", 4, {}, None, teams=(5, 9, 5, 9), has_mask=False)  # type: ignore[arg-type]
    home, away = RulePolicy(first_legal), RulePolicy(first_legal)
    assert seat_holders(spec, [home, away], 0) == [home, away, home, away]
    assert seat_holders(spec, [home, away], 1) == [away, home, away, home]


def test_every_game_is_counted_once_and_in_one_way() -> None:
    result = Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=0).play(60)
    wins, draws, losses = result.counts()
    assert result.games == wins + draws + losses == 60
    assert result.counts(1, 0) == (losses, draws, wins)
    assert result.score().value == pytest.approx((wins + draws / 2) / 60)
    assert result.score(0).value + result.score(1).value == pytest.approx(1.0)
    assert np.mean(result.by_team(0)) == pytest.approx(result.score(0).value)
    assert result.by_team(0)[0] + result.by_team(1)[1] == pytest.approx(1.0)


def use_unequal_games(monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    monkeypatch.setattr(match_module, "make", lambda config, *, num_envs: UnequalGames(num_envs, **options))
    monkeypatch.setattr(match_module, "spec_of", lambda config: UnequalGames(1, **options).spec)


def test_a_slot_that_has_played_its_game_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    use_unequal_games(monkeypatch)
    policy = RulePolicy(always(0))
    Match(EnvConfig("unequal"), [policy], seed=0).play(40)
    asked = np.bincount([game for batch in policy.asked for game in batch], minlength=20)
    assert asked.tolist() == [2 * 1, 2 * 10] * 10, "both rotations together"


def test_long_and_short_games_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even slots end after one turn won by the first seat, odd ones after ten won by the second: half each."""
    use_unequal_games(monkeypatch)
    result = Match(EnvConfig("unequal"), [RulePolicy(always(0)), RulePolicy(always(0))], seed=0).play(40)
    assert result.counts() == (20, 0, 20)
    assert result.by_team(0) == (0.5, 0.5)
    assert result.mean_steps == 5.5


def test_simultaneous_games_have_no_opening() -> None:
    result = Match(ROSHAMBO, [RulePolicy(always(1)), RulePolicy(always(0))], seed=0).play(10)
    assert result.mean_steps == 1.0
    assert result.by_team(0) == (1.0, 1.0)
    assert result.counts() == (10, 0, 0)


def test_contenders_keep_their_results_when_the_seats_rotate() -> None:
    result = Match(ROSHAMBO, [RulePolicy(always(0)), RulePolicy(always(1))], seed=0).play(10)
    assert result.counts() == (0, 0, 10)
    assert result.mean_return(0).value == -result.mean_return(1).value < 0


def test_the_same_seed_gives_the_same_match() -> None:
    first, second = (Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=9).play(40) for _ in range(2))
    assert first.counts() == second.counts()
    assert first.steps == second.steps


def test_large_matches_are_cut_into_batches_that_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_module, "MAX_BATCH", 8)
    finished: list[int] = []
    result = Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=0).play(44, progress=finished.append)
    assert result.games == sum(result.counts()) == 44
    assert finished == [8, 8, 8, 8, 6, 6]


@pytest.mark.parametrize("opening_plies", [0, 3, 20])
def test_a_core_state_belongs_to_its_slot(opening_plies: int) -> None:
    """The policy's core counts the decisions of its seat: it must equal the stones of the seat, in openings too."""

    def rule(inputs: ActInputs) -> NDArray[np.int64]:
        own = inputs.turn.obs["board"][inputs.slots, 0].sum(axis=(1, 2))
        np.testing.assert_array_equal(inputs.core[:, 0], own)
        return first_legal(inputs)

    home = RulePolicy(rule, core_size=1)
    Match(FOUR, [home, RulePolicy(first_legal, core_size=3)], seed=0, opening_plies=opening_plies).play(20)


def test_games_without_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    use_unequal_games(monkeypatch, lengths=(9, 50))
    with pytest.raises(EnvError, match="have not ended after 10 turns"):
        Match(EnvConfig("unequal"), [RulePolicy(always(0))], seed=0).play(8)


def test_a_match_is_a_whole_number_of_pairs() -> None:
    assert Match(FOUR, [bot("random")], seed=0).play(7).games == 8
    for games in (0, -2):
        with pytest.raises(ValueError, match="positive number"):
            Match(FOUR, [bot("random")], seed=0).play(games)


def test_parts_of_a_match_have_games_of_their_own_and_add_up() -> None:
    match = Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=0)
    assert match.result is None
    first, second = match.play(20), match.play(10)
    assert first.steps == Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=0).play(20).steps
    assert second.steps != Match(FOUR, [bot("tactical", 1), bot("random", 2)], seed=0).play(10).steps
    with pytest.raises(OutOfTime):
        match.play(10, still=lambda: False)
    assert match.result is not None
    assert (match.result.games, match.result.steps) == (30, first.steps + second.steps)


def test_actions_of_a_box_are_clipped_to_its_bounds() -> None:
    """A normal distribution has no bounds, and the env refuses what lies outside of its own."""

    def rule(inputs: ActInputs) -> NDArray[np.generic]:
        return np.full((len(inputs.slots), 1), 50.0, np.float32)

    far = Match(EnvConfig("gymnasium:Pendulum-v1"), [RulePolicy(rule)], seed=0).play(2)

    def at_the_bound(inputs: ActInputs) -> NDArray[np.generic]:
        return np.full((len(inputs.slots), 1), 2.0, np.float32)

    near = Match(EnvConfig("gymnasium:Pendulum-v1"), [RulePolicy(at_the_bound)], seed=0).play(2)
    assert far.mean_return().value == near.mean_return().value


def test_a_loaded_policy_answers_within_the_bounds_of_a_box() -> None:
    spec = spec_of(EnvConfig("gymnasium:Pendulum-v1"))
    network = build_network(spec, NetworkConfig(hidden=(4,)), seed=0)
    with torch.no_grad():
        network.head.log_std.fill_(5.0)  # type: ignore[union-attr]
    policy = LoadedPolicy("wide", network, weights_in(network), spec)
    actions = [policy.act(np.zeros(3, np.float32)) for _ in range(20)]
    assert {float(np.abs(action).max()) for action in actions} >= {2.0}
    assert max(float(np.abs(action).max()) for action in actions) == 2.0


def test_games_that_are_over_step_on_with_legal_parts_and_openings_are_legal() -> None:
    config = EnvConfig("probe_sub_actions", {"masked": True, "num_seats": 1})
    result = Match(config, [bot("random")], seed=0).play(30)
    assert result.games == 30
    env = match_module.make(config, num_envs=5)
    turn = env.reset(1)
    for _ in range(6):
        turn = env.step(idle_actions(env.spec, turn))


def test_a_loaded_policy_answers_in_parts_under_the_masks_that_libraries_give() -> None:
    config = EnvConfig("probe_sub_actions", {"nvec": [2, 3, 2]})
    spec = dataclasses.replace(spec_of(config), has_mask=True)
    network = build_network(spec, NetworkConfig(hidden=(4,)), seed=0)
    policy = LoadedPolicy("parts", network, weights_in(network), spec)
    shown = np.zeros(7, np.bool_)
    by_sub_action = (np.array([0, 1]), np.array([1, 0, 0]), np.array([0, 1]))
    for mask in (by_sub_action, np.concatenate(by_sub_action)):
        answers = {tuple(policy.act(shown, mask).tolist()) for _ in range(20)}  # type: ignore[union-attr]
        assert answers == {(1, 0, 1)}
    with pytest.raises(ObservationMismatch, match="none has a probability"):
        policy.probs(shown)


def test_too_many_contenders_are_refused() -> None:
    with pytest.raises(ValueError, match="3 contenders do not fit the 2 teams"):
        Match(FOUR, [bot("random")] * 3, seed=0).play(6)


class UnequalGames:
    """Turn-based games of two seats without a mask, a fake of `BatchedEnv`.

    Even slots are short and odd ones long. In a slot's first game the first seat wins in even slots, the second in odd
    ones; every later game, which nobody should count, is won by the other.
    """

    def __init__(self, num_envs: int, *, lengths: tuple[int, int] = (1, 10)) -> None:
        self.num_envs = num_envs
        self.spec = EnvSpec(
            "unequal", 2, {"x": ArraySpec((1,), "float32")}, ActionSpec("categorical", 2), (0, 1), False, max_turns=10
        )
        self._length = np.where(np.arange(num_envs) % 2 == 0, *lengths)
        self._time = np.zeros(num_envs, np.int64)
        self._sign = np.ones(num_envs)

    def reset(self, seed: int) -> Turn:
        self._time[:] = 0
        self._sign = np.where(np.arange(self.num_envs) % 2 == 0, 1.0, -1.0)
        return self._turn(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        self._time += 1
        ended = self._time == self._length
        self._time[ended] = 0
        turn = self._turn(ended)
        self._sign[ended] *= -1.0
        return turn

    def close(self) -> None:
        pass

    def _turn(self, ended: NDArray[np.bool_]) -> Turn:
        games = np.arange(self.num_envs)
        sign = self._sign * ended
        returns = np.stack([sign, -sign], axis=1).astype(np.float32)
        obs: Mapping[str, NDArray[np.generic]] = {"x": np.zeros((self.num_envs, 1), np.float32)}
        return Turn(games, self._time % 2, obs, None, returns, ended, np.zeros_like(ended), returns)


def test_the_fake_keeps_the_protocol() -> None:
    env: BatchedEnv = UnequalGames(2)
    assert env.step(np.zeros(2, np.int64)).ended.tolist() == [True, False]


class FailsInMostGames(BotPolicy):
    """Random play that gives up three of four games after its second move."""

    last_failure = "was made to fail"

    def __init__(self) -> None:
        super().__init__(make_bot("random", seed=0))
        self._turns = 0

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        self._turns += 1
        return super().act(inputs, rng)

    def failed_games(self) -> list[int]:
        return [0, 1, 2] if self._turns > 2 else []


def test_the_length_of_a_game_is_that_of_games_that_count() -> None:
    result = Match(EnvConfig("tic_tac_toe"), [FailsInMostGames(), bot("random")], seed=0).play(8)
    assert (result.games, result.aborted) == (2, (6, 0))
    assert 5 <= result.mean_steps <= 9
