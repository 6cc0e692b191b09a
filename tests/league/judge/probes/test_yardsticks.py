"""Yardsticks are contenders of any origin: found by the one finder, their failures are their own, and none is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from league.agents.acting.policy import ActInputs, ActOutputs
from league.config.loading import load_config
from league.config.plugin_names import outside_names
from league.config.run_config import config_plain
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.judge.probes.matches import LOOK_EVERY_S, ProbeClock, readings_against
from league.judge.probes.probe import DoesNotFit
from league.judge.probes.yardsticks import Yardsticks, YardsticksOptions
from league.processes.processor_time import children_cpu_seconds
from tests.league.judge.contenders.fake_engines import GTP, made
from tests.league.judge.contenders.test_engines import all_ended
from tests.league.judge.matches.eval_runs import MadeRun, constant_network
from tests.league.judge.probes.subjects import subject_of

GO = "openspiel:go(board_size=5)"


def against(*names: str, games: int = 6) -> Yardsticks:
    return Yardsticks(YardsticksOptions(against=names, games=games))


def test_an_engine_is_a_yardstick_beside_a_bot_and_gone_afterwards(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    engine, bot = against(f"gtp:{program}", "random").measure(subject_of(GO))
    assert (engine.yardstick, engine.games, bot.yardstick, bot.note) == (f"gtp:{program}", 6, "random", "")
    assert engine.note == f"the engine Fake Go 1 ({engine.identity})" and not bot.identity
    assert all_ended(log)


def test_a_yardstick_that_is_missing_is_named_with_its_key_while_the_others_are_met(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    said: list[str] = []
    subject = subject_of(GO, remark=said.append, place="probes.kinds.2")
    (reading,) = against("uci:no-such-program", "random", "runs/lost:best", f"gtp:{program}?fail=start").measure(
        subject
    )
    assert reading.yardstick == "random"
    for sentence, words in zip(said, ("no program 'no-such-program'", "is no contender", "has ended"), strict=True):
        assert words in sentence
    assert [sentence.partition(": ")[0][-1] for sentence in said] == ["0", "2", "3"]
    assert all(sentence.startswith("probes.kinds.2.against.") for sentence in said)
    with pytest.raises(LeagueError, match=r"^probes.kinds.2.against.0: uci:no-such-program: there is no") as alone:
        against("uci:no-such-program").measure(subject)
    assert not isinstance(alone.value, DoesNotFit)  # it may be installed later
    assert all_ended(log)


def test_a_policy_of_another_run_and_a_folder_of_snapshots_are_yardsticks(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "old", env=EnvConfig("tic_tac_toe"))
    for version in range(2):
        made.snapshot("main-0", constant_network(made.config, action=version), version=version)
    run = made.close()
    folder = run / "snapshots"
    readings = against(f"{run}:main-0-s0", str(folder)).measure(subject_of("tic_tac_toe"))
    assert readings[0].yardstick == f"{run}:main-0-s0"
    assert len(readings) == 3 and all(one.yardstick.startswith(f"{folder}/") for one in readings[1:])
    assert len({one.identity for one in readings}) == 2, "two of the three are the same policy"
    with pytest.raises(DoesNotFit, match="was trained on tic_tac_toe, which has another form"):
        against(f"{run}:main-0-s0").measure(subject_of("connect_four"))


def test_an_engine_that_fails_in_every_game_is_left_out(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    said: list[str] = []
    (reading,) = against(f"gtp:{program}?fail=crash", "random").measure(subject_of(GO, remark=said.append))
    assert reading.yardstick == "random"
    assert said == [f"gtp:{program}?fail=crash has ended"]
    with pytest.raises(LeagueError, match="has ended"):
        against(f"gtp:{program}?fail=crash").measure(subject_of(GO))
    assert all_ended(log)


class Flaky:
    """Takes the first legal action, and fails in the first game of a match, once."""

    version = -1
    last_failure = "was late"

    def __init__(self) -> None:
        self._failed = [0]

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        assert inputs.turn.action_mask is not None
        actions = inputs.turn.action_mask[inputs.slots].argmax(axis=1)
        return ActOutputs(actions=actions, log_probs=np.zeros(len(actions), np.float32), core=inputs.core)

    def failed_games(self) -> list[int]:
        failed, self._failed = self._failed, []
        return failed


def test_a_failed_game_is_aborted_with_those_of_its_opening_and_noted() -> None:
    subject = subject_of("kuhn_poker")
    (reading,) = readings_against(subject, {"flaky": Flaky()}, games=10, limit_s=5.0, notes={"flaky": "a program"})
    assert reading.games == 8
    assert reading.note == "a program; aborted games: 1, it was late"


def test_yardsticks_of_another_game_do_not_fit(tmp_path: Path) -> None:
    program, _ = made(tmp_path, GTP)
    with pytest.raises(DoesNotFit, match=r"probes.kinds.0.against.0: .* does not play connect_four: .* plays go"):
        against(f"gtp:{program}").measure(subject_of("connect_four"))


def test_an_engine_is_asked_for_its_name_once_however_many_snapshots_it_meets(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    probe = against(f"gtp:{program}", games=2)
    first, second = probe.measure(subject_of(GO)), probe.measure(subject_of(GO))
    assert first == second
    assert len(log.read_text().split()) == 4, "found, asked whether it fits, and one process for each probe"


def test_the_limit_counts_the_programs_and_the_wall_clock_where_that_is_shorter() -> None:
    now, own, programs = [0.0], [5.0], [1.0]
    clock = ProbeClock(10.0, ends_at=100.0, monotonic=lambda: now[0], own=lambda: own[0], programs=lambda: programs[0])
    assert clock() == 0.0
    now[0], own[0], programs[0] = 2.0 * LOOK_EVERY_S, 6.0, 3.5
    assert clock() == 1.0 + 2.5
    now[0] = 50.0
    assert clock() == 5.0
    now[0] = 100.0
    assert clock() == 10.0


def test_the_time_of_children_is_counted_while_they_live_and_after() -> None:
    before = children_cpu_seconds(os.getpid())
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.1:
            pass
        os.write(writing, b"x")
        time.sleep(60.0)
        os._exit(0)
    os.read(reading, 1)
    assert children_cpu_seconds(os.getpid()) - before >= 0.08
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert children_cpu_seconds(os.getpid()) - before >= 0.08


def test_programs_and_addresses_in_a_configuration_need_the_trust_of_its_user_and_folders_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    names = "uci:stockfish?nodes=1, 'http://127.0.0.1:1?token-file=x', own.py:Bot, old:best, old, tactical, 'mcts:25'"
    path = tmp_path / "mine.yaml"
    path.write_text(f"env: {{id: tic_tac_toe}}\nprobes: {{kinds: [past, {{kind: yardsticks, against: [{names}]}}]}}\n")
    config = load_config(path)
    found = [(one.path, one.name) for one in outside_names(config_plain(config))]
    assert found == [
        ("probes.kinds.1.against.0", "uci:stockfish?nodes=1"),
        ("probes.kinds.1.against.1", "http://127.0.0.1:1?token-file=x"),
        ("probes.kinds.1.against.2", "own.py:Bot"),
    ]
    written = config_plain(config)["probes"]["kinds"][1]["against"]
    assert written[3:5] == [f"{tmp_path / 'old'}:best", str(tmp_path / "old")]
