"""An env that hangs is named, given up after its deadline, and costs nothing that was learnt."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from league.envs.calls import Call, Watch, going_on
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.hosts.inprocess import InProcessRuntime
from league.processes.task_thread import TaskThread
from league.run.daemon import SIGNAL
from league.see.reports.env_check import check_environment
from tests.league.commands import wait_until
from tests.league.tiny_runs import ONE_PLAYER, start, state_of, tiny

HANGING = "tests.league.bad_envs:breaking"


def hanging(tmp_path: Path) -> dict[str, object]:
    env = {"id": HANGING, "kwargs": {"how": "hang", "after": 100, "flag": str(tmp_path / "hangs")}}
    runtime = {"checkpoint_updates": 10_000, "lease_deadline_s": 600.0}
    return tiny(env=env, league=ONE_PLAYER, runtime=runtime)


def test_a_call_that_hangs_in_process_is_given_up_after_its_deadline_and_learners_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "league.run.host_setup.InProcessRuntime",
        lambda setup, *, players, **_: InProcessRuntime(setup, players=players, deadline_s=3.0),
    )
    with pytest.raises(EnvError, match=r"repeated_rock_paper_scissors has been in step for \d+ s, which is given up"):
        start(tmp_path, hanging(tmp_path), env_steps=10**6)
    player = state_of(tmp_path / "run").players["main-0"]
    assert player.checkpoint is not None
    assert player.checkpoint.trained_steps == player.trained_steps > 0


def test_a_request_to_stop_ends_a_run_whose_env_hangs_with_its_learners_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.processes.task_thread.WARN_AFTER_S", 1.0)

    def ask_to_stop() -> None:
        wait_until((tmp_path / "hangs").exists, "the hang")
        os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=ask_to_stop)
    asking.start()
    ended = start(tmp_path, hanging(tmp_path), env_steps=10**6)
    asking.join()
    assert ended.reason == SIGNAL
    player = state_of(tmp_path / "run").players["main-0"]
    assert player.checkpoint is not None
    assert player.checkpoint.trained_steps == player.trained_steps > 0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_watch_names_the_game_and_the_call_for_as_long_as_nothing_moves() -> None:
    env = make(EnvConfig("gymnasium:CartPole-v1", {"max_episode_steps": 7}), num_envs=3)
    env.reset(0)
    watch, thread = Watch(), threading.get_ident()
    with going_on(env.spec.env_id, "step", env):
        watch.look(thread, now=0.0)
        seconds, text = watch.look(thread, now=31.0)
    assert seconds == 31.0
    assert "gymnasium:CartPole-v1" in text and "has been in" in text
    assert watch.look(thread, now=32.0) == (0.0, "")
    env.close()


def test_a_game_that_moves_on_does_not_hang() -> None:
    class Moving:
        step = 0

        def whereabouts(self) -> tuple[str, int, int, int]:
            return "step", 17, 2, self.step

    env, watch = Moving(), Watch()
    call = Call(0, "own", "step", env)
    assert call.text() == "game 17 of own (episode 2, step 0) has been in step"
    with going_on("own", "step", env):
        for second in range(100):
            env.step += second % 20 == 0
            seconds, _ = watch.look(threading.get_ident(), now=float(second))
            assert seconds < 20.0


def test_a_hang_is_spoken_of_once_and_a_thread_that_is_given_up_ends() -> None:
    clock, release, ended = Clock(), threading.Event(), []
    thread = TaskThread(deadline_s=1e9, clock=clock)

    def hang() -> None:
        with going_on("own", "reset"):
            release.wait(30.0)
        ended.append("went on")

    thread.begin(hang)
    end = time.monotonic() + 30.0
    said = None
    while said is None and time.monotonic() < end:
        clock.now += 10.0
        said = thread.stuck()
        time.sleep(0.001)
    assert said is not None and said.startswith("own has been in reset for")
    clock.now += 100.0
    assert thread.stuck() is None
    thread.give_up()
    release.set()
    thread._thread.join(10.0)
    assert not thread._thread.is_alive()
    assert ended == []


def test_a_thread_that_is_given_up_takes_none_along_that_bears_its_number() -> None:
    release, numbers = threading.Event(), set()

    def call() -> None:
        numbers.add(threading.get_ident())
        with going_on("own", "reset"):
            pass

    given_up = TaskThread(deadline_s=60.0)
    given_up.begin(lambda: numbers.add(threading.get_ident()) or release.wait(30.0))  # type: ignore[func-returns-value]
    while not numbers:
        time.sleep(0.001)
    given_up.give_up()  # while it is in no call, and it enters none
    release.set()
    given_up._thread.join(10.0)
    later = [TaskThread(deadline_s=60.0) for _ in range(20)]  # one of them has its number where numbers are used again
    for thread in later:
        thread.run(call)
        thread.give_up()
    assert len(numbers) >= len(later)


def test_a_thread_that_has_ended_is_not_waited_for() -> None:
    thread = TaskThread(deadline_s=60.0)
    thread.give_up()
    thread._thread.join(10.0)
    with pytest.raises(EnvError, match="has ended without an answer"):
        thread.run(lambda: None)


def test_what_a_task_raises_comes_through() -> None:
    thread = TaskThread(deadline_s=60.0)
    thread.run(lambda: None)
    with pytest.raises(ZeroDivisionError):
        thread.run(lambda: np.float64(1) and 1 / 0)  # type: ignore[arg-type, return-value]
    thread.give_up()


def test_check_env_says_what_hangs_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("league.processes.task_thread.WARN_AFTER_S", 0.5)
    monkeypatch.setattr("league.see.reports.env_check.CALL_DEADLINE_S", 1.5)
    options = ["how=hang", "after=10", f"flag={tmp_path / 'hangs'}"]
    with pytest.raises(EnvError, match=r"has been in step for \d+ s, which is given up\. Mend the env"):
        check_environment(HANGING, options)
    assert "repeated_rock_paper_scissors has been in step for" in capsys.readouterr().err
