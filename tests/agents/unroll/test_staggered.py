"""First unrolls that begin with steps that are not valid, so that rows are not all complete in the same step."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.acting.arena import Arena
from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from tests.agents.acting.test_arena import random_policy
from tests.agents.unroll.test_unroll import SPEC, Feeder

LENGTH = 4


def staggered_feeder() -> Feeder:
    feeder = Feeder(num_rows=4, unroll_length=LENGTH)
    feeder.builder = UnrollBuilder(UnrollSpec(SPEC, LENGTH, core_size=1), num_rows=4, staggered=True)
    return feeder


def decisions_of(unrolls: list[Unrolls]) -> list[int]:
    rows = concatenate(unrolls)
    return sorted(rows.obs["n"][:, :-1][rows.valid].tolist())


def test_each_row_is_first_complete_after_another_number_of_decisions_and_none_is_lost() -> None:
    feeder, completed = staggered_feeder(), []
    for step in range(4 * LENGTH + 1):
        before = len(feeder.done)
        for row in range(4):
            feeder.decide(row, 100 * row + step, reward=1.0, version=5 + step)
        completed.append(len(feeder.done) - before)
    assert completed[1 : LENGTH + 1] == [1] * LENGTH, "one row in each step"
    counts = {row: sum(seen // 100 == row for seen in decisions_of(feeder.done)) for row in range(4)}
    for row, count in counts.items():
        assert decisions_of(feeder.done)[sum(counts[r] for r in range(row)) :][:count] == [
            100 * row + step for step in range(count)
        ]


def test_the_steps_before_the_first_decision_are_blank() -> None:
    feeder = staggered_feeder()
    for seen in (7, 8):
        feeder.decide(3, seen, reward=2.0, core=9.0, version=6)
    (unrolls,) = feeder.done
    assert unrolls.valid.tolist() == [[False, False, False, True]]
    assert unrolls.obs["n"].tolist() == [[0, 0, 0, 7, 8]]
    assert unrolls.resets.tolist() == [[True, True, True, True, False]]
    assert unrolls.rewards.tolist() == [[0, 0, 0, 2]]
    assert unrolls.versions.tolist() == [[6, 6, 6, 6]]
    assert unrolls.core.tolist() == [[0]], "a reset follows"
    assert unrolls.action_mask is not None and unrolls.action_mask[0, :3].all()
    for seen in (9, 10, 11, 12):
        feeder.decide(3, seen, version=6)
    assert feeder.done[1].valid.all(), "only the first unroll"


def test_a_failed_game_and_a_truncation_in_the_first_unroll_leave_it_whole() -> None:
    feeder = staggered_feeder()
    feeder.decide(2, 1)
    feeder.builder.abandon(np.array([2]))
    feeder.decide(2, 2)
    feeder.end(2, reward=3.0, final=4)
    (first,) = feeder.done
    assert first.valid.tolist() == [[False, False, False, True]]
    assert first.obs["n"].tolist() == [[0, 0, 1, 2, 4]]


def test_a_saved_builder_keeps_its_blank_steps_and_an_older_state_has_none() -> None:
    feeder = staggered_feeder()
    feeder.decide(1, 5)
    saved = feeder.builder.save()
    later = staggered_feeder()
    later.builder.load(saved)
    for builder in (feeder, later):
        for seen in range(6, 6 + LENGTH):
            builder.decide(1, seen)
    assert feeder.done[0].valid.tolist() == later.done[0].valid.tolist() == [[False, True, True, True]]
    del saved["blank"]
    oldest = staggered_feeder()
    oldest.builder.load({**saved, "cursor": np.zeros(4, np.int64), "open": np.zeros(4, np.bool_)})
    for seen in range(LENGTH + 1):
        oldest.decide(1, seen)
    assert oldest.done[0].valid.all()


def test_whole_episodes_are_not_staggered() -> None:
    builder = UnrollBuilder(UnrollSpec(SPEC, LENGTH, per_episode=True), num_rows=4, staggered=True)
    assert not builder.save()["cursor"].any()


@pytest.mark.parametrize(("staggered", "most"), [(False, 64), (True, 64 // LENGTH)])
def test_games_that_begin_together_fill_batches_evenly(staggered, most) -> None:
    env = make(EnvConfig("gymnasium:CartPole-v1"), num_envs=64)
    arena = Arena(env, UnrollSpec(env.spec, LENGTH), seed=0, staggered=staggered)
    table = [Assignment(("home",), (True,), 1.0)]
    rows = [
        sum(part.num_rows for part in arena.run(table, {"home": random_policy()}, steps=1)) for _ in range(LENGTH + 1)
    ]
    assert max(rows) == most
    arena.close()
