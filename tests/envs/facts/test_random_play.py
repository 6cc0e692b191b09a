"""Random play: the facts that it finds of games of each kind, and how little it costs where a game is dear."""

from __future__ import annotations

import dataclasses
import time

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from league.envs.bots import RandomBot
from league.envs.facts.clocks import CLOCKS, Clocks
from league.envs.facts.core_speed import WORK_S
from league.envs.facts.game_facts import GameFacts
from league.envs.facts.game_statistics import MAX_GUESSED_TURNS, UNENDED_TURNS, GameStatistics
from league.envs.facts.random_play import EXACT_GAMES, EXACT_TURNS, RandomPlay
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig, Turn

DEAR = f"{__name__}:make_dear"
CROWDED = f"{__name__}:make_crowded"
DELAYED = f"{__name__}:make_delayed"
DEALT = f"{__name__}:make_dealt"
PAID = f"{__name__}:make_paid"
made: list[float] = []
clock_s = [0.0]
waited_s = [0.0]
delayed: set[int] = set()


class Dear(gymnasium.Env[np.ndarray, int]):
    """One seat; a game takes 5 s of the fake clock to make, a step 0.5 s; it ends after seven."""

    observation_space = gymnasium.spaces.Box(-500.0, 500.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        made.append(clock_s[0])
        clock_s[0] += 5.0
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict[str, object]]:
        super().reset(seed=seed)
        self._steps = 0
        return np.array([0.0, 500.0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        clock_s[0] += 0.5
        self._steps += 1
        return np.array([1.0, 500.0], np.float32), 1.0, self._steps == 7, False, {}


def make_dear() -> Dear:
    return Dear()


class Crowded(Dear):
    """A step takes a hundredth of a second of the processor, and another second of waiting for it."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        found = super().step(action)
        clock_s[0] += 0.01 - 0.5
        waited_s[0] += 1.0
        return found


def make_crowded() -> Crowded:
    return Crowded()


class Paid(TicTacToe):
    """A step takes a second of the fake clock, and a tenth more for each game."""

    def step(self, actions: NDArray[np.generic]) -> Turn:
        clock_s[0] += 1.0 + 0.1 * self.num_envs
        return super().step(actions)


def make_paid(num_envs: int) -> Paid:
    return Paid(num_envs=num_envs)


def fake_clocks() -> Clocks:
    """Clocks of a game that computes all the time, on a core at its usual speed."""
    return Clocks(lambda: clock_s[0], lambda: clock_s[0], lambda: 0, lambda: WORK_S)


def facts_of(config: EnvConfig, *, seconds: float | None, clocks: Clocks = CLOCKS) -> GameFacts:
    play = RandomPlay(config, seconds=seconds, clocks=clocks)
    play.run()
    found = play.facts()
    assert found is not None
    return found


def facts(env_id: str, **kwargs: object) -> GameFacts:
    return facts_of(EnvConfig(env_id, kwargs), seconds=None)


def test_a_dear_game_is_made_once_and_left_in_time() -> None:
    admit([DEAR])
    made.clear()
    clock_s[0] = 0.0
    found = facts_of(EnvConfig(DEAR), seconds=10.0, clocks=fake_clocks())
    assert len(made) == 1
    assert clock_s[0] <= 5.0 + 10.0 + 0.5
    assert found.costs is not None
    assert found.costs.make_s == 5.0
    assert found.costs.game_s == 0.5


class Delayed(Dear):
    """Made in a hundredth of a second; whoever makes it as often as `delayed` says waits for a disk, for a second."""

    def __init__(self) -> None:
        super().__init__()
        clock_s[0] += 0.01 - 5.0
        waited_s[0] += float(len(made) in delayed)


def make_delayed() -> Delayed:
    return Delayed()


class Dealt(Dear):
    """Made in a hundredth of a second; a deal takes half of one, a step a hundredth."""

    def __init__(self) -> None:
        super().__init__()
        clock_s[0] += 0.01 - 5.0

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict[str, object]]:
        clock_s[0] += 0.5
        return super().reset(seed=seed)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        found = super().step(action)
        clock_s[0] += 0.01 - 0.5
        return found


def make_dealt() -> Dealt:
    return Dealt()


def test_a_dear_deal_is_a_cost_of_its_own_and_few_games_are_dealt() -> None:
    admit([DEALT])
    made.clear()
    clock_s[0] = 0.0
    found = facts_of(EnvConfig(DEALT), seconds=5.0, clocks=fake_clocks())
    assert clock_s[0] <= 8.0
    assert found.costs is not None
    assert found.costs.make_s <= 0.52, "the adapter resets a game as it makes it"
    assert found.costs.reset_s == pytest.approx(0.5)


@pytest.mark.parametrize("waits", [{1}, {2}, {1, 2, 3}, {1, 7}])
def test_a_wait_for_a_disk_is_no_cost_of_making_a_game(waits: set[int]) -> None:
    admit([DELAYED])
    made.clear()
    delayed.clear()
    delayed.update(waits)
    clock_s[0] = waited_s[0] = 0.0
    clocks = Clocks(lambda: clock_s[0] + waited_s[0], lambda: clock_s[0], lambda: int(waited_s[0]), lambda: WORK_S)
    found = facts_of(EnvConfig(DELAYED), seconds=12.0, clocks=clocks)
    assert found.costs is not None
    assert found.costs.make_s == pytest.approx(0.01)
    assert found.costs.game_s == pytest.approx(0.5)
    assert len(made) > 8


def test_a_busy_machine_makes_no_game_dearer_and_a_sleeping_one_is_timed_by_the_wall() -> None:
    now = [0.0, 0.0, 0]
    clocks = Clocks(lambda: now[0], lambda: now[1], lambda: int(now[2]))
    began = clocks.now()
    now[:] = [100.0, 0.5, 3]  # interrupted for long; three waits in a thousand calls are the interpreter's own
    assert clocks.cost_since(began, calls=1000) == 0.5
    now[:] = [100.0, 0.5, 1000]
    assert clocks.cost_since(began, calls=1000) == 100.0
    now[:] = [100.0, 60.0, 1000]
    assert clocks.cost_since(began, calls=1000) == 60.0


def test_random_play_waits_half_a_minute_for_a_processor_that_others_take() -> None:
    admit([CROWDED])
    clock_s[0] = waited_s[0] = 0.0
    clocks = Clocks(lambda: clock_s[0] + waited_s[0], lambda: clock_s[0], lambda: int(waited_s[0] / 5))
    found = facts_of(EnvConfig(CROWDED), seconds=1.0, clocks=clocks)
    assert found.episodes == 4, "at 7 steps and seconds each"
    assert 28.0 < waited_s[0] < 33.0


def test_a_sleep_counts_and_a_computation_is_not_a_wait() -> None:
    began = CLOCKS.now()
    time.sleep(0.2)
    assert CLOCKS.cost_since(began) >= 0.2
    began = CLOCKS.now()
    sum(range(2_000_000))
    assert 0.0 < CLOCKS.cost_since(began, calls=100) < 5.0


def test_lengths_returns_and_ranges_of_a_game() -> None:
    admit([DEAR])
    found = facts(DEAR)
    assert (found.turns.mean, found.decisions.high, found.episodes) == (7.0, 7.0, EXACT_GAMES * (EXACT_TURNS // 7))
    assert found.returns[0].mean == 7.0
    assert not found.final_only
    assert found.margin is None
    assert found.ranges["observation"].high == 500.0
    assert found.ranges["observation"].large == 0.5


@pytest.mark.parametrize(
    ("env_id", "play", "hides", "wins_only"),
    [
        ("tic_tac_toe", "turn_based", False, True),
        ("kuhn_poker", "turn_based", True, False),
        ("rock_paper_scissors", "one_shot", False, True),
        ("repeated_rock_paper_scissors", "simultaneous", False, False),
        ("three_seat_rock_paper_scissors", "one_shot", False, False),
    ],
)
def test_random_play_finds_how_a_game_is_played_and_what_it_hides(
    env_id: str, play: str, hides: bool, wins_only: bool
) -> None:
    found = facts(env_id)
    assert (found.play, found.hides, found.wins_only) == (play, hides, wins_only)
    assert found.is_competitive
    assert found.final_only == (play != "simultaneous")


def test_hidden_cards_show_as_surprises() -> None:
    assert facts("leduc_poker").surprises
    assert not facts("connect_four").surprises


def test_a_random_start_that_all_see_hides_nothing() -> None:
    """Where a game starts is chance; only what follows a decision may tell of hidden things."""
    env = TicTacToe(num_envs=1)
    seen, first, action = GameStatistics(env.spec, num_envs=1), env.reset(0), np.zeros(1, np.int64)
    for start in range(3):
        shown = {name: array + start for name, array in first.obs.items()}
        seen.decided(dataclasses.replace(first, obs=shown), action)
        seen.stepped(dataclasses.replace(first, terminated=np.ones(1, np.bool_)))
    assert not seen.facts(copyable=True, has_tree=False, shared_views=False, costs=None).surprises


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_large_numbers_are_counted_in_every_type(dtype: type[np.generic]) -> None:
    env = TicTacToe(num_envs=1)
    seen, first = GameStatistics(env.spec, num_envs=1), env.reset(0)
    shown = {name: np.resize(np.array([0, 1, 200], dtype), array.shape) for name, array in first.obs.items()}
    seen.decided(dataclasses.replace(first, obs=shown), np.zeros(1, np.int64))
    seen.stepped(dataclasses.replace(first, terminated=np.ones(1, np.bool_)))
    (numbers,) = seen.facts(copyable=True, has_tree=False, shared_views=False, costs=None).ranges.values()
    assert numbers.large == pytest.approx(1 / 3)


@pytest.mark.parametrize("env_id", ["tic_tac_toe", "kuhn_poker", "gymnasium:CartPole-v1"])
def test_random_play_without_a_clock_repeats(env_id: str) -> None:
    assert facts(env_id) == facts(env_id)


def test_costs_of_a_call_and_of_a_game_are_separated() -> None:
    admit([PAID])
    found = facts_of(EnvConfig(PAID), seconds=2000.0, clocks=fake_clocks())
    assert found.costs is not None
    assert found.costs.game_s == pytest.approx(0.1)
    assert found.costs.call_s == pytest.approx(1.0)


def test_few_episodes_of_distinct_returns_show_a_team_and_few_wins_do_not() -> None:
    env = TicTacToe(num_envs=1)
    spec = dataclasses.replace(env.spec, teams=(0, 1, 2), num_seats=3, seat_names=("a", "b", "c"))

    def groups(*returns: tuple[float, float, float]) -> tuple[tuple[int, ...], ...]:
        seen = GameStatistics(spec, num_envs=1)
        turn = env.reset(0)
        for one in returns:
            seen.decided(turn, np.zeros(1, np.int64))
            ended = dataclasses.replace(
                turn,
                terminated=np.ones(1, np.bool_),
                returns=np.array([one], np.float32),
                rewards=np.zeros((1, 3), np.float32),
            )
            seen.stepped(ended)
        return seen.facts(copyable=False, has_tree=False, shared_views=False, costs=None).equal_seats

    assert groups((1.5, 1.5, 0), (2.5, 2.5, 1), (0.5, 0.5, 7)) == ((0, 1),)
    assert groups((-1, -1, 2), (-1, -1, 2), (0, 0, 0)) == ()
    assert groups(*[(-1, -1, 2), (1, 1, -2)] * 5) == ((0, 1),)


@pytest.mark.parametrize(("bound", "length"), [(9, 9), (None, UNENDED_TURNS), (10**6, MAX_GUESSED_TURNS)])
def test_lengths_are_a_guess_where_no_episode_has_ended(bound: int | None, length: int) -> None:
    env = TicTacToe(num_envs=3)
    seen = GameStatistics(dataclasses.replace(env.spec, max_turns=bound), num_envs=3)
    bot, turn = RandomBot(seed=0), env.reset(0)
    for _ in range(2):
        actions = bot.act(env, turn, np.arange(3))
        seen.decided(turn, actions)
        turn = env.step(actions)
        seen.stepped(turn)
    found = seen.facts(copyable=True, has_tree=False, shared_views=False, costs=None)
    assert (found.episodes, found.turns.mean) == (0, length)
    assert found.decisions.mean == pytest.approx(length / 2)


@pytest.mark.parametrize(
    ("env_id", "endings", "has_tree"),
    [("rock_paper_scissors", 9.0, True), ("kuhn_poker", 5.0, True), ("tic_tac_toe", 255_168.0, False)],
)
def test_ways_to_play_one_deal_are_estimated(env_id: str, endings: float, has_tree: bool) -> None:
    game = RandomPlay(EnvConfig(env_id), seconds=None)
    game.run()
    facts = game.facts()
    assert facts is not None and facts.has_tree == has_tree
    assert facts.endings == pytest.approx(endings, rel=0.1)
