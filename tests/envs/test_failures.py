"""A game that fails costs its own unfinished episode: the others do not notice, and three strikes end it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.failures import FORGIVING_EPISODES, MAX_STRIKES, FailureCount, GameFailure
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from tests.envs.adapters.test_pettingzoo import Spoiled, wrapped
from tests.envs.trajectories import play, seed_of

SEED = 5
CALLS = 50
GAME = "tests.envs.crash_games:make"
METHODS = [("gym", "step"), ("gym", "reset"), ("parallel", "step"), ("parallel", "reset")]
METHODS += [("aec", "step"), ("aec", "reset"), ("aec", "observe")]


def config(kind: str, method: str = "", *, targets: dict[int, int] | None = None, **kwargs: Any) -> EnvConfig:
    """targets: game -> the call in which it fails, counted from its first episode."""
    by_seed = by_seeds(method, targets or {})
    length = 2 if method == "reset" else 60
    return EnvConfig(GAME, {"kind": kind, "method": method, "targets": by_seed, "length": length, **kwargs})


def by_seeds(method: str, targets: dict[int, int]) -> dict[str, int]:
    """Seed of an episode -> the call since its start that fails: call k of `reset` is the first of episode k - 1."""
    if method == "reset":
        return {str(seed_of(SEED, game, call - 1)): 1 for game, call in targets.items()}
    return {str(seed_of(SEED, game)): call for game, call in targets.items()}


def compare(clean: list[Any], crashed: list[Any], aborted: list[list[int]], *, fails: set[int]) -> None:
    """Every game equals the clean run until it fails itself; those that never fail, to the end."""
    for game, (expected, found) in enumerate(zip(clean, crashed, strict=True)):
        if game not in fails:
            assert not aborted[game], game
            assert found == expected, game
        elif aborted[game]:
            assert len(aborted[game]) == 1
            assert found[: aborted[game][0]] == expected[: aborted[game][0]], game


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_a_crash_on_any_call_leaves_the_other_games_byte_identical(kind: str, method: str) -> None:
    """Game k fails in call k of a method, for k = 1..50, in one run; games 0 and 51 never do."""
    targets = {call: call for call in range(1, CALLS + 1)}
    steps = 4 * CALLS if method == "reset" else CALLS + 5
    runs = []
    for failing in ({}, targets):
        env = make(config(kind, method, targets=failing), num_envs=CALLS + 2)
        runs.append((*play(env, seed=SEED, steps=steps), env.take_failures()))  # type: ignore[attr-defined]
        env.close()
    (clean, _, none), (crashed, aborted, failures) = runs
    assert none == ()
    assert {failure.game for failure in failures} == set(targets)
    assert all(failure.seed == seed_of(SEED, failure.game, failure.episode) for failure in failures)
    assert all("the ball rolled off" in failure.reason and "move" not in failure.traceback for failure in failures)
    compare(clean, crashed, aborted, fails=set(targets))
    if method == "step":
        assert [aborted[game] for game in targets] == [[call] for call in targets.values()]


@pytest.mark.parametrize("kind", ["gym", "parallel", "aec"])
def test_the_failed_game_plays_its_next_episode_as_it_would_have_anyway(kind: str) -> None:
    runs = []
    for targets in ({}, {1: 4}):
        env = make(config(kind, "step", targets=targets), num_envs=2)
        runs.append(play(env, seed=SEED, steps=140))
        env.close()
    (clean, _), (crashed, aborted) = runs
    (end,) = [step for step, seen in enumerate(clean[1]) if any(seen["ended"])][:1]
    assert aborted == [[], [4]]
    assert crashed[1][4]["obs"] == clean[1][end]["obs"]
    assert crashed[1][5:40] == clean[1][end + 1 : end + 36]


def test_an_aborted_game_has_earned_nothing_and_has_not_ended() -> None:
    env = make(config("aec", "step", targets={1: 5}), num_envs=3)
    env.tolerate_failures()  # type: ignore[attr-defined]
    turn = env.reset(SEED)
    for _ in range(5):
        turn = env.step(np.full(3, 1))
    assert turn.aborted is not None and turn.aborted.tolist() == [False, True, False]
    assert not turn.ended.any() and not turn.rewards[1].any() and turn.rewards[0].any()
    assert turn.env_index.tolist() == [0, 1, 2] and turn.seat.tolist() == [1, 0, 1]
    turn = env.step(np.full(3, 1))
    assert turn.aborted is None
    env.close()


def test_a_number_that_is_not_finite_is_a_failure_of_its_game_alone() -> None:
    for fault in ("observation", "reward", "shape"):
        env = wrapped(ParallelEnv, Spoiled, num_envs=3, fault=fault)
        for game in (0, 2):
            env._games[game].fault = ""
        env.tolerate_failures()
        turn = env.reset(0)
        for step in range(1, 9):
            turn = env.step(np.zeros(len(turn.seat), np.int64))
            assert np.isfinite(turn.obs["counter"]).all() and np.isfinite(turn.rewards).all()
            assert (np.diff(turn.env_index * 2 + turn.seat) > 0).all()
            if step == 3:
                assert turn.aborted is not None and turn.aborted.tolist() == [False, True, False]
        env.close()


def test_three_strikes_quarantine_a_game_and_the_last_one_ends_the_env() -> None:
    env = wrapped(ParallelEnv, Spoiled, num_envs=3, fault="raise")
    env._games[2].fault = ""
    env.tolerate_failures()
    turn = env.reset(0)
    slots, failures = [], []
    for _ in range(12):
        turn = env.step(np.zeros(len(turn.seat), np.int64))
        slots.append(sorted(set(turn.env_index.tolist())))
        failures += env.take_failures()
    assert slots[7] == [0, 1, 2] and slots[8] == [2]
    assert [(failure.game, failure.strikes, failure.quarantined) for failure in failures] == [
        (0, 1, False),
        (1, 1, False),
        (0, 2, False),
        (1, 2, False),
        (0, 3, True),
        (1, 3, True),
    ]
    assert "RuntimeError: the ball rolled off" in failures[-1].traceback
    env.close()


def test_an_env_whose_games_all_fail_is_one_sentence() -> None:
    env = wrapped(ParallelEnv, Spoiled, num_envs=2, fault="raise")
    env.tolerate_failures()
    turn = env.reset(0)
    with pytest.raises(EnvError, match=r"all 2 games failed 3 times each.*raw: step raised RuntimeError: the ball"):
        for _ in range(20):
            turn = env.step(np.zeros(len(turn.seat), np.int64))
    env.close()


def test_a_game_whose_close_raises_does_not_keep_the_others_open(caplog: pytest.LogCaptureFixture) -> None:
    closed = []

    class Stubborn(Spoiled):
        def close(self) -> None:
            closed.append(self.count.index)
            raise OSError("no handle")

    wrapped(ParallelEnv, Stubborn, num_envs=3).close()
    assert closed == [0, 1, 2]
    assert "closing a game raised OSError: no handle" in caplog.text


FAILURE = GameFailure("game", 0, 0, 0, 0, "step", "raised")


def test_a_strike_is_forgotten_after_enough_episodes() -> None:
    count = FailureCount(2)
    for _ in range(5):
        for _ in range(MAX_STRIKES - 1):
            assert count.strike(0, FAILURE)
        count.succeeded()
        for _ in range((MAX_STRIKES - 1) * FORGIVING_EPISODES):
            count.ended(0)
    assert not count.quarantined


def test_failures_in_a_row_end_the_env_before_every_game_has_had_its_strikes() -> None:
    count = FailureCount(100)
    with pytest.raises(EnvError, match="the last 9 calls of the games all failed"):
        for game in range(100):
            while count.strike(game, FAILURE):
                pass
