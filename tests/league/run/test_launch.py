"""The wiring of a run: what hosts are told, what is noted down at the start, and what a restart finds again."""

from __future__ import annotations

import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.unroll import UnrollSpec
from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.state.events import LeagueCreated, RunStarted
from league.core.state.state import LeagueState
from league.envs.protocol import ArraySpec
from league.envs.registry import make
from league.errors import ConfigError, LeagueError, RunExists
from league.hosts.actors.actor_state_file import decode_actor_state
from league.hosts.inprocess import InProcessRuntime
from league.run.budget import Limits
from league.run.host_setup import MAX_CHUNK_BATCHES, host_setup, make_runtime
from league.run.launch import resume, train
from tests.league.tiny_runs import (
    ONE_PLAYER,
    checkpoints_of,
    events_of,
    go_on,
    history_of,
    start,
    state_of,
    tiny,
    write_config,
)

PLAIN = tiny(league=ONE_PLAYER)


def config_of(**changes: object) -> RunConfig:
    return parse_config(yaml.safe_dump(tiny(**changes)), source="test")


@pytest.mark.parametrize(("num_envs", "batches"), [(4, 1), (16, 1), (32, 2), (48, 3), (4096, MAX_CHUNK_BATCHES)])
def test_chunks_are_whole_batches_and_never_too_large(num_envs: int, batches: int) -> None:
    config = config_of(actors={"num_envs": num_envs})
    setup = host_setup(config, make(config.env, num_envs=1).spec, run="r")
    assert setup.chunk_rows == batches * config.learner.batch_rows
    assert (setup.run, setup.num_envs, setup.seed) == ("r", num_envs, config.seed)


def test_chunks_of_large_images_hold_as_many_unrolls_as_the_codec_takes() -> None:
    config = config_of()
    spec = replace(make(config.env, num_envs=1).spec, observations={"screen": ArraySpec((560, 1920, 3), "uint8")})
    setup = host_setup(config, spec, run="r")
    unrolls = UnrollSpec(spec, config.learner.unroll_length)
    assert 1 < setup.chunk_rows < config.learner.batch_rows
    chunk = unrolls.allocate(setup.chunk_rows)
    assert Lz4Codec().encode(chunk, ChunkHeader(run="r", player="p", version_min=0, version_max=0))


def test_the_runtime_is_the_one_that_the_configuration_names() -> None:
    config = config_of()
    setup = host_setup(config, make(config.env, num_envs=1).spec, run="r")
    assert isinstance(make_runtime(config, setup, state=LeagueState()), InProcessRuntime)


def test_a_run_notes_down_the_precision_that_auto_meant(tmp_path: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER, learner={"precision": "auto"}), env_steps=100)
    noted = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert noted["learner"]["precision"] in ("float32", "bfloat16")


def test_overrides_of_the_command_line_are_part_of_the_run(tmp_path: Path) -> None:
    path = write_config(tmp_path, PLAIN)
    train(path, overrides=["seed=77", "learner.gamma=0.5"], run_dir=tmp_path / "run", limits=Limits(env_steps=100))
    noted = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (noted["seed"], noted["learner"]["gamma"]) == (77, 0.5)
    created = events_of(tmp_path / "run")[0]
    assert isinstance(created, LeagueCreated)
    assert (created.seed, created.num_seats) == (77, 2)


def test_a_bad_configuration_leaves_no_run_behind(tmp_path: Path) -> None:
    path = write_config(tmp_path, PLAIN)
    with pytest.raises(ConfigError):
        train(path, overrides=["learner.gama=0.5"], run_dir=tmp_path / "run", limits=Limits(env_steps=100))
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_started_twice(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, env_steps=100)
    with pytest.raises(RunExists):
        start(tmp_path, PLAIN, env_steps=100)


CHANGING = """
from pathlib import Path

from league.envs.games.connect_four import ConnectFour
from league.envs.games.tic_tac_toe import TicTacToe


def make(num_envs):
    game = ConnectFour if (Path(__file__).parent / "changed").exists() else TicTacToe
    return game(num_envs=num_envs)
"""


def test_a_game_that_has_changed_is_refused_by_the_resume(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHANGING)
    start(tmp_path, tiny(env={"id": f"{tmp_path}/mine.py:make"}, league=ONE_PLAYER), env_steps=300)
    (tmp_path / "changed").touch()
    before = events_of(tmp_path / "run")
    with pytest.raises(LeagueError, match="make has changed since this run began: seats, teams"):
        go_on(tmp_path / "run", env_steps=2_000)
    assert events_of(tmp_path / "run") == before
    (tmp_path / "changed").unlink()
    go_on(tmp_path / "run", env_steps=2_000)


def test_a_league_that_was_never_founded_is_founded_by_the_resume(tmp_path: Path) -> None:
    """The process died between making the journal and its first event."""
    from league.store.journaled_league import JournaledLeague

    start(tmp_path, PLAIN, env_steps=100)
    journal = tmp_path / "run" / "journal.db"
    for left in (journal, *(tmp_path / "run").glob("journal.db-*"), tmp_path / "run" / "status.json"):
        left.unlink(missing_ok=True)
    JournaledLeague.create(journal, wall_time=lambda: 0.0).close()
    go_on(tmp_path / "run", env_steps=200)
    assert isinstance(events_of(tmp_path / "run")[0], LeagueCreated)
    assert state_of(tmp_path / "run").totals.games > 0


def test_a_resume_that_ends_before_it_plays_keeps_the_games_in_flight(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, env_steps=1_000, run="whole")
    start(tmp_path, PLAIN, env_steps=300)
    kept = (tmp_path / "run" / "hosts.safetensors").read_bytes()
    go_on(tmp_path / "run", env_steps=1)
    assert (tmp_path / "run" / "hosts.safetensors").read_bytes() == kept
    go_on(tmp_path / "run", env_steps=699)
    assert history_of(tmp_path / "run") == history_of(tmp_path / "whole")
    assert checkpoints_of(tmp_path / "run") == checkpoints_of(tmp_path / "whole")


def test_games_in_flight_fit_only_the_league_that_left_them(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, env_steps=300)
    path = tmp_path / "run" / "hosts.safetensors"
    old = path.read_bytes()
    _, next_lease_id = decode_actor_state(old)
    assert next_lease_id == state_of(tmp_path / "run").next_lease_id
    go_on(tmp_path / "run", env_steps=400)
    shutil.copytree(tmp_path / "run", tmp_path / "without")
    (tmp_path / "without" / "hosts.safetensors").unlink()
    path.write_bytes(old)  # as after a crash: the league is further than these games
    for run in ("run", "without"):
        go_on(tmp_path / run, env_steps=300)
    assert sum(isinstance(event, RunStarted) for event in events_of(tmp_path / "run")) == 3
    assert history_of(tmp_path / "run") == history_of(tmp_path / "without")
    assert checkpoints_of(tmp_path / "run") == checkpoints_of(tmp_path / "without")


def test_limits_of_env_steps_count_from_the_last_target_and_not_from_its_overshoot(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, env_steps=193)
    assert state_of(tmp_path / "run").totals.env_steps > 193  # the lease in hand is finished
    for _ in range(3):
        ended = resume(tmp_path / "run", limits=Limits(env_steps=193))
        assert ended.reason == "the limit of this command is reached"
    start(tmp_path, PLAIN, env_steps=4 * 193, run="whole")
    assert state_of(tmp_path / "run").totals == state_of(tmp_path / "whole").totals


def test_the_signal_handlers_of_before_are_there_again_after(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    start(tmp_path, PLAIN, env_steps=100)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_budget_ends_the_run_for_good_unless_it_is_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = {**PLAIN, "budget": {"env_steps": 600}}
    ended = start(tmp_path, plain, env_steps=10_000)
    assert ended.reason == "the budget is spent"
    steps = state_of(tmp_path / "run").totals.env_steps
    assert "To train on:" not in capsys.readouterr().out
    again = go_on(tmp_path / "run", env_steps=10_000)
    assert again.reason == "the budget is spent"
    assert state_of(tmp_path / "run").totals.env_steps <= steps + 16 * 12 * 8
    command = capsys.readouterr().out.split("To train on: ")[1].splitlines()[0]
    assert command == f"league resume {tmp_path / 'run'} -s budget.env_steps=1200"
    resume(tmp_path / "run", limits=Limits(), overrides=["budget.env_steps=1200"])
    assert state_of(tmp_path / "run").totals.env_steps >= 1200 > steps
