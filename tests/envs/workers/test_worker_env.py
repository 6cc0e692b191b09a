"""Games in child processes are the same games: exact for any number of processes, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.envs.bots import Copyable, RandomBot, make_bot
from league.envs.conformance import check_env
from league.envs.protocol import EnvConfig, EnvError, ForkableEnv
from league.envs.registry import BUILT_IN, make, spec_of
from league.envs.workers.spec_text import spec_from_text, spec_to_text
from league.envs.workers.worker_env import WorkerEnv
from tests.envs.test_failures import SEED, config
from tests.envs.trajectories import play, seed_of
from tests.envs.workers.forked_games import forked_games  # noqa: F401 - a fixture


def wait_for(holds: Callable[[], bool], *, timeout_s: float = 20.0) -> None:
    until = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def pids(env: object) -> list[int]:
    assert isinstance(env, WorkerEnv)
    return [share.process._process.pid for share in env._shares if share.process._process is not None]


@pytest.mark.usefixtures("forked_games")
@pytest.mark.parametrize("kind", ["gym", "parallel", "aec"])
def test_trajectories_are_the_same_for_any_number_of_processes(kind: str) -> None:
    env = make(replace(config(kind), kwargs={**config(kind).kwargs, "length": 7}), num_envs=5)
    expected, _ = play(env, seed=SEED, steps=60)
    again, _ = play(env, seed=SEED + 1, steps=20)
    env.close()
    for workers in (1, 3, 9) if kind == "gym" else (2,):  # more than games, and shares of unequal size
        base = config(kind)
        other = make(replace(base, kwargs={**base.kwargs, "length": 7}, workers=workers), num_envs=5)
        assert play(other, seed=SEED, steps=60)[0] == expected
        assert play(other, seed=SEED + 1, steps=20)[0] == again
        other.close()


@pytest.mark.parametrize("env_id", sorted(BUILT_IN))
def test_a_spec_comes_through_text_unchanged(env_id: str) -> None:
    kwargs = {"payoffs": [[1, 2], [3, 4]]} if env_id == "matrix_game" else {}
    spec = spec_of(EnvConfig(env_id, kwargs))
    assert spec_from_text(spec_to_text(spec)) == spec


@pytest.mark.parametrize("text", ['{"record": "EnvConfig", "fields": {"id": "x"}}', '{"record": "os"}', "[]", "{"])
def test_a_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        spec_from_text(text)


@pytest.mark.parametrize("env_id", ["connect_four", "kuhn_poker", "tests.envs.crash_games:make"])
def test_an_env_in_children_keeps_the_contract(env_id: str) -> None:
    findings = check_env(EnvConfig(env_id, workers=2), num_envs=5, steps=40)
    assert [finding for finding in findings if finding.kind == "fault"] == []
    assert ("copies", "games cannot be copied") in [(finding.rule, finding.text) for finding in findings]


def test_bots_that_need_copies_refuse_games_in_children_with_a_sentence() -> None:
    env = make(EnvConfig("connect_four", workers=1), num_envs=1)
    assert not isinstance(env, Copyable) and not isinstance(env, ForkableEnv)
    turn = env.reset(0)
    with pytest.raises(EnvError, match="tries moves out on copies, but games of connect_four cannot be copied"):
        make_bot("mcts:2", seed=0).act(env, turn, np.arange(1))
    env.close()


def ticks(pid: int) -> int:
    """Hundredths of a second that a process has computed."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def named_memory(*pids: int) -> set[str]:
    """Shared memory with a name that processes hold. Of other tests there may be any; folders are theirs."""
    held = {str(file.readlink()) for pid in pids for file in Path(f"/proc/{pid}/fd").iterdir()}
    held |= {line[73:] for pid in pids for line in Path(f"/proc/{pid}/maps").read_text().splitlines()}
    return {path for path in held if Path(path.removesuffix(" (deleted)")).parent == Path("/dev/shm")}


def test_children_have_one_thread_and_leave_nothing_behind() -> None:
    env = make(replace(config("aec"), workers=2), num_envs=4)
    env.reset(0)
    children = pids(env)
    assert [len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in children] == [1, 1]
    assert named_memory(*children) == set()
    env.close()
    env.close()
    assert not any(alive(pid) for pid in children)


def test_children_die_with_a_parent_that_is_killed_also_while_they_hang(tmp_path: Path) -> None:
    """The second game hangs in its first step and the parent is killed while it waits."""
    program = f"""
import numpy as np
from league.envs.protocol import EnvConfig
from league.envs.registry import make
targets = {{"{seed_of(0, 1)}": 1}}
kwargs = {{"kind": "gym", "method": "step", "how": "spin", "targets": targets}}
env = make(EnvConfig("tests.envs.crash_games:make", kwargs, workers=2), num_envs=2)
env.reset(0)
print(*[share.process._process.pid for share in env._shares], flush=True)
env.step(np.zeros(2, np.int64))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        assert len(children) == 2
        begun = ticks(children[1])
        wait_for(lambda: ticks(children[1]) > begun + 20)  # it spins: 0.2 s of its own time
        assert all(alive(pid) for pid in children)
        assert named_memory(parent.pid, *children) == set(), "nothing that its death could leave"
        parent.kill()
    wait_for(lambda: not any(alive(pid) for pid in children))


@pytest.mark.usefixtures("forked_games")
def test_a_process_that_grew_between_steps_is_replaced_and_no_game_loses_anything() -> None:
    env = make(replace(config("aec"), workers=2), num_envs=4)
    clean = make(config("aec"), num_envs=4)
    expected, _ = play(clean, seed=SEED, steps=50)
    assert isinstance(env, WorkerEnv)
    share, steps = env._shares[0], 0
    was = share.process.is_too_large

    def too_large(*, now: float) -> bool:
        nonlocal steps
        steps += 1
        return steps in (20, 40) or was(now=now)

    share.process.is_too_large = too_large  # type: ignore[method-assign]
    first = pids(env)
    found, aborted = play(env, seed=SEED, steps=50)
    assert found == expected and aborted == [[], [], [], []]
    assert env.take_failures() == ()
    assert pids(env)[0] != first[0] and pids(env)[1] == first[1]
    env.close()
    clean.close()


@pytest.mark.usefixtures("forked_games")
def test_games_that_do_not_fit_their_limit_are_one_sentence() -> None:
    with pytest.raises(EnvError, match=r"env\.worker_memory_mib"):
        env = make(replace(config("gym"), workers=1, worker_memory_mib=10), num_envs=2)
        env.close()


@pytest.mark.usefixtures("forked_games")
def test_a_game_that_does_not_repeat_itself_starts_again_instead_of_continuing_elsewhere() -> None:
    """Another game of its process dies: the one that draws from a source of its own cannot be put back."""
    kwargs = {"kind": "gym", "method": "step", "how": "exit", "targets": {str(seed_of(SEED, 1)): 4}, "drifts": True}
    env = make(EnvConfig("tests.envs.crash_games:make", kwargs, workers=1), num_envs=2)
    _, aborted = play(env, seed=SEED, steps=10)
    assert aborted == [[4], [4]]
    assert [failure.game for failure in env.take_failures()] == [1]  # type: ignore[attr-defined]
    env.close()


@pytest.mark.usefixtures("forked_games")
def test_a_batched_env_loses_the_episodes_of_one_process_only(tmp_path: Path) -> None:
    kwargs = {"dies_at": 5, "once": str(tmp_path / "died")}
    config = EnvConfig("tests.envs.crash_games:make_batched", kwargs, workers=2)
    env = make(config, num_envs=4)
    _, aborted = play(env, seed=SEED, steps=12)
    assert aborted in ([[5], [5], [], []], [[], [], [5], [5]])
    env.close()


@pytest.mark.usefixtures("forked_games")
def test_without_tolerance_a_dead_process_is_a_sentence_and_a_reset_begins_again() -> None:
    targets = {1: 3}
    env = make(replace(config("gym", "step", targets=targets, how="exit"), workers=2), num_envs=3)
    clean = make(config("gym"), num_envs=3)
    with pytest.raises(
        EnvError, match=r"step ended its process \(exit code 3\) \(game 1, episode 0, seed \d+, step 3\)"
    ):
        play(env, seed=SEED, steps=20, tolerant=False)
    assert play(env, seed=SEED + 1, steps=20, tolerant=False) == play(clean, seed=SEED + 1, steps=20)
    env.close()
    clean.close()


@pytest.mark.usefixtures("forked_games")
def test_three_deaths_quarantine_a_game_and_the_last_game_ends_the_env() -> None:
    targets = {str(seed_of(SEED, 0, episode)): 1 for episode in range(5)}
    base = config("gym", "step", how="exit")
    env = make(replace(base, kwargs={**base.kwargs, "targets": targets}, workers=2), num_envs=2)
    env.tolerate_failures()  # type: ignore[attr-defined]
    turn = env.reset(SEED)
    bot, failures, slots = RandomBot(seed=0), [], []
    for _ in range(6):
        turn = env.step(bot.act(env, turn, np.arange(turn.env_index.size)))
        failures += env.take_failures()  # type: ignore[attr-defined]
        slots.append(turn.env_index.tolist())
    assert slots == [[0, 1], [0, 1], [1], [1], [1], [1]]
    assert [(failure.game, failure.strikes, failure.quarantined) for failure in failures] == [
        (0, 1, False),
        (0, 2, False),
        (0, 3, True),
    ]
    env.close()


@pytest.mark.usefixtures("forked_games")
def test_a_factory_that_raises_or_hangs_in_a_child_is_one_sentence() -> None:
    with pytest.raises(EnvError, match="unknown kwarg 'lenght'"):
        make(EnvConfig("tests.envs.crash_games:make", {"lenght": 3}, workers=2), num_envs=2)
    with pytest.raises(EnvError, match="cannot be sent to a child process"):
        make(EnvConfig("tests.envs.crash_games:make", {"targets": object()}, workers=2), num_envs=2)


def test_a_close_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.envs.workers.process.LEAVE_S", 0.2)
    env = make(replace(config("gym", "close", targets={1: 1}, how="hang"), workers=2), num_envs=4)
    env.reset(SEED)
    children = pids(env)
    env.close()
    assert not any(alive(pid) for pid in children)


def test_a_child_killed_from_outside_is_replaced() -> None:
    env = make(replace(config("parallel"), workers=2), num_envs=4)
    clean = make(config("parallel"), num_envs=4)
    env.tolerate_failures()  # type: ignore[attr-defined]
    turn = env.reset(SEED)
    os.kill(pids(env)[1], signal.SIGKILL)
    turn = env.step(np.zeros(turn.env_index.size, np.int64))
    assert turn.env_index.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert turn.aborted is not None and turn.aborted[:2].tolist() == [False, False]
    env.close()
    clean.close()
