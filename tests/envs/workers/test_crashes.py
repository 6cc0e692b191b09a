"""A game in a child process that raises, dies, hangs or leaks costs its own episode: the others do not notice."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.envs.workers.process import GamesProcess, ProcessDeadlines
from tests.envs.test_failures import METHODS, SEED, by_seeds, compare, config
from tests.envs.trajectories import play, seed_of
from tests.envs.workers.forked_games import forked_games  # noqa: F401 - a fixture

ENDED = (1, 2, 3, 20, 49, 50)
"""Calls that end their process, each of which costs the start of another."""
LIMITS = {"reset_deadline_s": 2.0, "step_deadline_s": 2.0}


def in_children(env: EnvConfig, workers: int = 2, **limits: Any) -> EnvConfig:
    return replace(env, workers=workers, **limits)


def runs(env: EnvConfig, targets: dict[int, int], *, num_envs: int, steps: int, **limits: Any) -> Any:
    """The same games in this process without a failure, and in two children with those of the targets."""
    by_seed = by_seeds(str(env.kwargs["method"]), targets)
    clean = make(env, num_envs=num_envs)
    failing = make(in_children(replace(env, kwargs={**env.kwargs, "targets": by_seed}), **limits), num_envs=num_envs)
    try:
        expected, _ = play(clean, seed=SEED, steps=steps)
        found, aborted = play(failing, seed=SEED, steps=steps)
        return expected, found, aborted, failing.take_failures()  # type: ignore[attr-defined]
    finally:
        clean.close()
        failing.close()


@pytest.mark.usefixtures("forked_games")
@pytest.mark.parametrize(
    ("kind", "method", "how", "calls"),
    [
        *((*method, "raise", range(1, 51)) for method in METHODS),
        *((*method, "exit", ENDED) for method in (("gym", "step"), ("aec", "observe"), ("parallel", "reset"))),
    ],
)
def test_a_crash_on_any_call_leaves_the_other_games_byte_identical(
    kind: str, method: str, how: str, calls: Sequence[int]
) -> None:
    """A game for each call fails in that call of a method, in one run; the first and the last game never do."""
    targets = dict(enumerate(calls, start=1))
    steps = 200 if method == "reset" else 55
    num_envs = len(targets) + 2
    expected, found, aborted, failures = runs(config(kind, method, how=how), targets, num_envs=num_envs, steps=steps)
    assert {failure.game for failure in failures} == set(targets)
    assert all(failure.seed == seed_of(SEED, failure.game, failure.episode) for failure in failures)
    compare(expected, found, aborted, fails=set(targets))
    if method == "step":
        assert [aborted[game] for game in targets] == [[call] for call in targets.values()]


@pytest.mark.usefixtures("forked_games")
@pytest.mark.parametrize("call", [1, 7, 50])
@pytest.mark.parametrize(("kind", "method"), [("aec", "step"), ("aec", "observe"), ("gym", "reset")])
def test_a_game_that_hangs_leaves_the_other_games_byte_identical(kind: str, method: str, call: int) -> None:
    steps = 200 if method == "reset" else 55
    expected, found, aborted, (failure,) = runs(
        config(kind, method, how="hang"), {2: call}, num_envs=4, steps=steps, **LIMITS
    )
    compare(expected, found, aborted, fails={2})
    assert failure.game == 2 and failure.seed == seed_of(SEED, 2, failure.episode)
    assert "did not come back within env." in failure.reason
    assert 'crash_games.py", line' in failure.traceback and "in call" in failure.traceback


def test_a_segmentation_fault_is_reported_with_the_place_in_the_code() -> None:
    expected, found, aborted, (failure,) = runs(config("aec", "step", how="segfault"), {1: 3}, num_envs=3, steps=30)
    compare(expected, found, aborted, fails={1})
    assert aborted == [[], [3], []]
    assert failure.reason == "ended its process (SIGSEGV)"
    assert (failure.step, failure.call, failure.episode, failure.strikes) == (3, "step", 0, 1)
    assert "Segmentation fault" in failure.traceback and "crash_games.py" in failure.traceback


def test_a_game_that_takes_all_memory_in_one_call_is_stopped() -> None:
    expected, found, aborted, (failure,) = runs(
        config("gym", "step", how="leak"), {1: 5}, num_envs=3, steps=30, worker_memory_mib=400
    )
    compare(expected, found, aborted, fails={1})
    assert aborted == [[], [5], []]
    assert "env.worker_memory_mib is 400" in failure.reason


def test_a_process_of_games_that_is_dropped_without_a_word_gives_its_files_back() -> None:
    deadlines = ProcessDeadlines(reset_s=1.0, step_s=1.0, memory_mib=512)
    before = set(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        GamesProcess({"id": "connect_four"}, num_games=1, first=0, deadlines=deadlines)
    gc.collect()
    assert set(Path("/proc/self/fd").iterdir()) <= before
