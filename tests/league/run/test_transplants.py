"""A transplant lasts: no restart state of the learner before it takes its place, and its file is not removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.durability.simulated import fake_hosts
from league.agents.restart_state import Counters, counters_in, restart_state, weights_alone, weights_in
from league.core.state.events import DirectiveIssued, PlayerTransplanted
from league.core.state.records import AssignmentOutcome, Lease, Parent
from league.errors import MissingSnapshot
from league.hosts.protocol import InstallPlayer, LearnerProgress, PlayLease, TakeCheckpoint, Task
from league.run.effects import Effects
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import GATE, events_of

LEAGUE = {
    "players": [{"role": "main_agent", "count": 6, "gate": {**GATE, "min_steps": 10**9, "timeout_steps": 10**9}}],
    "preset": "pbt",
    "pbt": {
        "selection": {"kind": "truncation"},
        "hyperparameters": [{"name": "learning_rate", "low": 0.1, "high": 10.0, "initial": 1.0}],
        "period_steps": 400,
        "burn_in_steps": 150,
        "min_games": 1.0,
    },
    "ratings": {"step_fraction": 0.0, "final_leases": 0},
}


def first_name_wins(lease: Lease, *, games: int) -> tuple[AssignmentOutcome, ...]:
    """Two games of every assignment, so that there is always a player to copy."""
    found = []
    for assignment in lease.assignments:
        home, away = assignment.policies
        wins = ((0, 1), (1, 0)) if home == away else ((0, 2), (0, 0)) if home < away else ((0, 0), (2, 0))
        found.append(AssignmentOutcome(assignment.policies, 2, 0, 14, wins, ((0, 0), (0, 0)), (0.0, 0.0)))
    return tuple(found)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A daemon whose players copy each other."""
    monkeypatch.setattr(fake_hosts, "outcomes_of", first_name_wins)
    return Bench(tmp_path / "run", league=LEAGUE)


def require_each_copy_is_taken_up(bench: Bench) -> None:
    """Train, and compare what learners were installed with to the transplants of the journal."""
    installed: dict[str, list[tuple[int, str]]] = {}

    def take_up(task: Task) -> None:
        """As a learner does: it continues from the version that it was installed with."""
        if isinstance(task, InstallPlayer) and task.saved is not None:
            version = counters_in(task.saved).version
            pointer = bench.league.state.players[task.player].checkpoint
            assert pointer is not None
            installed.setdefault(task.player, []).append((version, pointer.digest))

    bench.runtime.watch = take_up
    bench.run(env_steps=30_000)
    transplanted: dict[str, list[tuple[int, str]]] = {}
    for event in events_of(bench.folder.path):
        if isinstance(event, PlayerTransplanted):
            transplanted.setdefault(event.player, []).append((event.version, event.digest))
    assert sum(map(len, transplanted.values())) > 5
    assert installed == transplanted
    assert not bench.warned


def test_no_restart_state_is_asked_for_between_a_transplant_and_its_installation(bench: Bench) -> None:
    require_each_copy_is_taken_up(bench)


def test_answers_that_come_between_a_transplant_and_its_installation_do_not_undo_it(bench: Bench) -> None:
    def answer_always(number: int) -> None:
        for player in bench.league.state.players:
            bench.runtime.report(
                LearnerProgress(bench.runtime.progress(player), None, 0),
                *bench.runtime.answer(TakeCheckpoint(player)),
            )

    bench.runtime.on_poll = answer_always
    require_each_copy_is_taken_up(bench)


def test_a_restart_state_that_comes_with_the_report_that_orders_a_transplant_does_not_remove_the_copy(
    bench: Bench,
) -> None:
    def answer_with_state(task: Task) -> bool:
        if isinstance(task, PlayLease):
            assert task.lease.home is not None
            bench.runtime.report(*bench.runtime.answer(task), *bench.runtime.answer(TakeCheckpoint(task.lease.home)))
        return isinstance(task, PlayLease)

    bench.runtime.drop = answer_with_state
    require_each_copy_is_taken_up(bench)


class RestartStates:
    """The restart states of a store that holds these weights."""

    def __init__(self, weights: dict[str, list[float]]) -> None:
        self._weights = weights

    def get_checkpoint(self, player: str, digest: str) -> dict[str, Any]:
        updater = {**weights_alone(np.array(self._weights[player], np.float32)), "optimizer_vector.m": np.ones(2)}
        return restart_state(updater, Counters(7, 70), np.zeros(2))


def effects_over(weights: dict[str, list[float]]) -> Effects:
    effects = Effects.__new__(Effects)
    effects._policies = RestartStates(weights)  # type: ignore[assignment]
    return effects


def test_a_mean_is_of_the_weights_of_its_parents_by_their_parts() -> None:
    effects = effects_over({"a": [1.0, 0.0], "b": [0.0, 4.0]})
    donor = effects._policies.get_checkpoint("a", "")
    mean = effects._mean_of((Parent("a", "", 0.75), Parent("b", "", 0.25)), donor)
    assert weights_in(mean).tolist() == [0.75, 1.0] and counters_in(mean).version == 7
    assert "optimizer_vector.m" not in mean, "the moments of one parent say nothing about the mean"
    with pytest.raises(MissingSnapshot, match="c has 1 weights, the mean 2"):
        effects_over({"a": [1.0, 0.0], "c": [1.0]})._mean_of((Parent("c", "", 1.0),), donor)


def test_a_mean_is_taken_up_like_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_hosts, "outcomes_of", first_name_wins)
    pbt = {**cast("dict[str, object]", LEAGUE["pbt"]), "selection": {"kind": "weighted_mean"}}
    bench = Bench(tmp_path / "run", league={**LEAGUE, "pbt": pbt})
    require_each_copy_is_taken_up(bench)
    issued = [event.directive for event in events_of(bench.folder.path) if isinstance(event, DirectiveIssued)]
    parents = [directive.parents for directive in issued if directive.parents]
    assert parents and all(len(each) >= 2 and abs(sum(p.weight for p in each) - 1) < 1e-9 for each in parents)
