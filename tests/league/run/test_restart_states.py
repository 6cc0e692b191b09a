"""What a run that breaks keeps of its training: restart states by time and after an error; what is lost is told."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from league.config.run_config import RuntimeConfig
from league.core.state.events import CheckpointSaved
from league.core.state.records import Progress
from league.core.state.state import LeagueState
from league.envs.protocol import EnvError
from league.hosts.protocol import PlayLease, TakeCheckpoint, Task
from league.policies.exact.load_policy import load_policy
from league.policies.loaded_policy import LoadedPolicy
from league.policies.select import choose
from league.run.budget import Limits
from league.run.checkpointing import RestartStates
from league.run.monitor.jsonl_sink import decode_row
from league.run.monitor.names import ENV_STEPS, LOST_STEPS, TRAINED_STEPS
from league.store.checkpoints import CheckpointStore
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import ONE_PLAYER, events_of, go_on, start, state_of, tiny

BREAKING = "tests.league.bad_envs:breaking"


def test_learners_are_saved_by_time_however_few_updates_they_make(tmp_path: Path) -> None:
    """One poll of the fake runtime is a second; a lease makes two updates and takes two polls."""
    league = {**ONE_PLAYER, "ratings": {"step_fraction": 0.0}}
    runtime = {"checkpoint_updates": 10_000, "checkpoint_seconds": 10.0}
    bench = Bench(tmp_path / "run", league=league, runtime=runtime)
    bench.run(env_steps=4_000)
    versions = [event.version for event in events_of(bench.folder.path) if isinstance(event, CheckpointSaved)]
    assert len(versions) >= 5
    assert all(later - earlier <= 24 for earlier, later in itertools.pairwise(versions[:-1]))


def test_the_newest_restart_state_and_the_one_before_are_kept_by_each_process(tmp_path: Path) -> None:
    """`league rewind` to the last stop needs the state of that stop."""
    changes: dict[str, Any] = {"league": ONE_PLAYER, "runtime": {"checkpoint_updates": 6}}
    for _ in range(3):
        bench = Bench(tmp_path / "run", **changes)
        kept_before = CheckpointStore(bench.folder.checkpoints_path).digests("main-0")
        bench.run(env_steps=300)
        saved = [event.digest for event in events_of(bench.folder.path) if isinstance(event, CheckpointSaved)]
        kept = CheckpointStore(bench.folder.checkpoints_path).digests("main-0")
        assert set(kept) == set(list(dict.fromkeys(saved))[-2:])
        assert set(kept) != set(kept_before)
        bench.league.close()


def test_a_version_far_below_the_last_saved_one_is_saved_and_a_report_that_is_late_is_not() -> None:
    states = RestartStates(RuntimeConfig(checkpoint_updates=10), LeagueState(), submit=[].append)
    states.saved(Progress("main-0", 50, 500))
    assert states.due([Progress("main-0", 50, 500)], now=1_000.0) == []
    assert states.due([Progress("main-0", 59, 590)], now=1_000.0) == []
    assert states.due([Progress("main-0", 49, 490)], now=1_000.0) == []
    assert states.due([Progress("main-0", 20, 200)], now=1_000.0) == ["main-0"]


def test_nothing_new_means_nothing_to_save_however_long_it_lasts() -> None:
    states = RestartStates(RuntimeConfig(checkpoint_seconds=60.0), LeagueState(), submit=[].append)
    states.saved(Progress("main-0", 5, 50))
    assert states.due([Progress("main-0", 5, 50)], now=0.0) == []
    assert states.due([Progress("main-0", 6, 60)], now=900.0) == []
    assert states.due([Progress("main-0", 6, 60)], now=959.0) == []
    assert states.due([Progress("main-0", 7, 70)], now=960.0) == ["main-0"]


def test_every_process_asks_for_restart_states_in_the_same_order() -> None:
    """Their events are then in one order too: of runs that are equal, the journals are."""
    asked: list[TakeCheckpoint] = []
    states = RestartStates(RuntimeConfig(), LeagueState(), submit=asked.append)
    players = {f"main-{number}" for number in range(30)}
    states.ask_all(players)
    assert [task.player for task in asked] == sorted(players)


def test_an_env_that_raises_costs_no_trained_step(tmp_path: Path) -> None:
    env = {"id": BREAKING, "kwargs": {"how": "raise", "after": 100}}
    plain = tiny(env=env, league=ONE_PLAYER, runtime={"checkpoint_updates": 10_000})
    with pytest.raises(EnvError, match="dice"):
        start(tmp_path, plain, env_steps=100_000)
    player = state_of(tmp_path / "run").players["main-0"]
    assert player.trained_steps > 0
    assert player.checkpoint is not None
    assert player.checkpoint.trained_steps == player.trained_steps


def test_a_daemon_that_cannot_save_after_an_error_gives_up_in_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    daemon = bench.daemon(Limits(env_steps=10_000))
    bench.runtime.drop = lambda task: isinstance(task, TakeCheckpoint)

    def fail(task: Task) -> None:
        if isinstance(task, PlayLease) and len(bench.runtime.of(PlayLease)) == 3:
            raise EnvError("the dice fell under the table")

    bench.runtime.watch = fail
    with pytest.raises(EnvError):
        daemon.run()
    before = bench.runtime.now
    daemon.rescue()
    assert 15.0 < bench.runtime.now - before < 30.0


def test_trained_steps_never_run_backwards_in_the_metrics_though_a_kill_lost_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.run.monitor.observer.METRICS_EVERY_S", 0.0)
    plain = tiny(league=ONE_PLAYER, runtime={"checkpoint_updates": 10_000})
    with monkeypatch.context() as patched:
        patched.setattr("league.run.session.Daemon.rescue", lambda self: None)
        patched.setattr("league.run.session.Daemon._drain", _die)
        with pytest.raises(KeyboardInterrupt):
            start(tmp_path, plain, env_steps=2_000)
    known = state_of(tmp_path / "run").players["main-0"]
    newest = state_of(tmp_path / "run").snapshots[known.parent or ""]
    assert known.checkpoint is None
    lost = known.trained_steps - newest.trained_steps
    assert lost > 0
    go_on(tmp_path / "run", env_steps=1_000)
    lines = (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()
    rows = [row.values for line in lines if (row := decode_row(line)) is not None]
    trained = [row[TRAINED_STEPS.of("main-0")] for row in rows]
    assert trained == sorted(trained)
    assert rows[-1][LOST_STEPS.of("main-0")] == lost
    assert state_of(tmp_path / "run").players["main-0"].trained_steps == trained[-1] - lost
    assert rows[-1][ENV_STEPS.name] > rows[0][ENV_STEPS.name]


def _die(self: object) -> None:
    raise KeyboardInterrupt


def test_best_of_an_exact_run_that_was_stopped_before_its_first_gate_is_trained(tmp_path: Path) -> None:
    """It takes no snapshot at a stop, so as not to become another run than one that was never stopped."""
    gate = {"min_steps": 100_000, "timeout_steps": 100_000}
    start(tmp_path, tiny(league={"players": [{"role": "main_agent", "gate": gate}]}), env_steps=600)
    state = state_of(tmp_path / "run")
    assert [info.trained_steps for info in state.snapshots.values()] == [0]
    assert isinstance(load_policy(tmp_path / "run"), LoadedPolicy)
    pointer = choose(state, "best").checkpoint
    assert pointer is not None
    assert pointer.trained_steps == state.players["main-0"].trained_steps > 0
