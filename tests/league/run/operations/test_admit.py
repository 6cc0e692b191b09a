"""Policies from outside that join a league while it runs: they are stored, met, rated, and taken out again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.core.state.events import LeaseGranted, PolicyImported
from league.hosts.actors.actor_host import ActorHost
from league.hosts.protocol import PlayLease
from league.run.operations.operator import Done
from league.run.operations.plans import OperationRefused
from league.see.reports.verify import verify_run
from tests.league.hosts.host_cases import lease_of, paired, setup_of, weights_of
from tests.league.hosts.test_hosts import Table
from tests.league.policies.test_imported import LSTM, ROCK_PAPER_SCISSORS, run_of
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, state_of

WIDE = NetworkConfig(hidden=(20,))
JOINED = "imported:old"


Asked = Callable[[], Future[Done]]


def admit(bench: Bench, path: Path, **arguments: object) -> Asked:
    given = {"source": str(path), "name": "old", "probability": 0.5, "player": "main-0", **arguments}
    return lambda: bench.operator.submit("admit", given, by="me", reason="a test")


def run_with(
    bench: Bench, plan: dict[int, Callable[[], Future[Done]]], *, env_steps: int = 1_500
) -> list[Future[Done]]:
    answers: list[Future[Done]] = []
    bench.runtime.on_poll = lambda number: answers.append(plan[number]()) if number in plan else None
    bench.run(env_steps=env_steps)
    return answers


def granted(bench: Bench) -> list[int]:
    """Numbers of the events of leases in which the policy plays."""
    return [
        number
        for number, event in enumerate(events_of(bench.folder.path), 1)
        if isinstance(event, LeaseGranted) and any(JOINED in row.policies for row in event.lease.assignments)
    ]


def test_a_policy_of_another_network_joins_is_met_and_needs_its_source_no_more(tmp_path: Path) -> None:
    source = run_of(tmp_path / "source", network=WIDE)
    bench = Bench(tmp_path / "run")
    (answer,) = run_with(bench, {6: admit(bench, source)})
    done = answer.result(timeout=0)
    assert done.words == f"admits {JOINED} from {source}"
    assert isinstance(events_of(bench.folder.path)[done.first_event - 1], PolicyImported)
    shutil.rmtree(source)
    assert granted(bench)
    (task, *_) = [task for task in bench.runtime.of(PlayLease) if JOINED in task.frozen]  # type: ignore[union-attr]
    assert isinstance(task, PlayLease)
    assert task.networks[JOINED].hidden == WIDE.hidden
    assert bench.operator.config.league.fixed_opponents[0].policy == JOINED
    assert bench.folder.read_config() == bench.league.state.config_text
    assert verify_run(bench.folder.path).problems == ()
    again = Bench(tmp_path / "run")
    again.run(env_steps=500)
    assert JOINED in again.league.state.snapshots


def test_it_is_taken_out_by_undo_and_comes_back_by_another(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answers: list[Future[Done]] = []

    def undo() -> Future[Done]:
        return bench.operator.submit("undo", {"event": answers[-1].result(timeout=0).first_event}, by="me")

    plan = {6: admit(bench, run_of(tmp_path / "source", network=WIDE)), 14: undo, 22: undo}
    bench.runtime.on_poll = lambda number: answers.append(plan[number]()) if number in plan else None
    bench.run(env_steps=3_000)
    _, out, back = (answer.result(timeout=0) for answer in answers)
    met = [
        number
        for number in granted(bench)
        if events_of(bench.folder.path)[number - 1].lease.home is not None  # type: ignore[union-attr]
    ]
    assert not [number for number in met if out.last_event < number < back.first_event]
    assert [number for number in met if number > back.last_event]
    assert len(state_of(bench.folder.path).config.fixed_opponents) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "runs/x"}, "must be an absolute path"),
        ({"source": "/nowhere"}, "does not exist"),
        ({"name": "Old One"}, "NAME must be 1 to 64"),
        ({"probability": 1.5}, "probability of imported:old must be"),
        ({"player": "nobody"}, "no player or snapshot 'nobody'"),
    ],
)
def test_a_refusal_names_the_rule_and_nothing_joins(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    bench = Bench(tmp_path / "run")
    source = run_of(tmp_path / "source", network=WIDE, seeds=1)
    (answer,) = run_with(bench, {6: admit(bench, source, **changes)}, env_steps=300)
    with pytest.raises(OperationRefused, match=words):
        answer.result(timeout=0)
    assert JOINED not in state_of(bench.folder.path).snapshots


def test_another_game_a_larger_core_and_a_setting_without_weights_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    other = run_of(tmp_path / "other", env=ROCK_PAPER_SCISSORS, network=WIDE, seeds=1)
    lstm = run_of(tmp_path / "lstm", network=LSTM, seeds=1)
    entry = {"policy": JOINED, "source": "x", "player": "best", "probability": 0.5, "roles": []}
    answers = run_with(
        bench,
        {
            6: admit(bench, other),
            7: admit(bench, lstm),
            8: lambda: bench.operator.submit("set", {"key": "league.fixed_opponents", "value": [entry]}, by="me"),
        },
        env_steps=600,
    )
    for answer, words in zip(answers, ("was trained on", "core state of 10", "is not in the league"), strict=True):
        with pytest.raises(OperationRefused, match=words):
            answer.result(timeout=0)


def test_a_host_plays_a_network_that_joined_after_it_was_built() -> None:
    setup = setup_of()
    wide = replace(setup, network=WIDE)
    host = ActorHost(setup, name="actor-0", dtype=torch.float32)
    table = Table(setup)
    host.add_networks({JOINED: WIDE})
    lease = lease_of(*paired("main-0", JOINED), steps=20)
    answer = host.play(lease, frozen={JOINED: weights_of(wide, seed=3)}, learners=table)
    assert {outcome.policies for outcome in answer.outcomes} == {("main-0", JOINED), (JOINED, "main-0")}
    host.close()
