"""The unroll builder fed by hand: rewards, overlap, core state, truncation marker, save and load."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

SPEC = EnvSpec(
    env_id="count",
    num_seats=1,
    observations={"n": ArraySpec((), "int32")},
    actions=ActionSpec("categorical", num_actions=3),
    teams=(0,),
    has_mask=True,
)
BOX = EnvSpec(
    env_id="box",
    num_seats=1,
    observations={"n": ArraySpec((2,), "float32")},
    actions=ActionSpec("box", shape=(2,)),
    teams=(0,),
    has_mask=False,
)

FLAGS = EnvSpec(
    env_id="flags",
    num_seats=1,
    observations={"board": ArraySpec((3, 7), "bool"), "few": ArraySpec((2,), "bool")},
    actions=ActionSpec("categorical", num_actions=17),
    teams=(0,),
    has_mask=True,
)


class Feeder:
    """Feeds a builder one row at a time with plain numbers."""

    def __init__(self, *, num_rows: int = 2, unroll_length: int = 3, core_size: int = 1) -> None:
        self.builder = UnrollBuilder(UnrollSpec(SPEC, unroll_length, core_size=core_size), num_rows=num_rows)
        self.done: list[Unrolls] = []

    def decide(self, row: int, seen: int, *, reward: float = 0.0, core: float = 0.0, version: int = 0) -> None:
        """Observe `seen` (which closes the decision before with `reward`), answer it with seen modulo 3."""
        rows = np.array([row])
        self._keep(
            self.builder.observe(
                rows,
                obs={"n": np.array([seen])},
                action_mask=np.array([[True, seen % 2 == 0, True]]),
                rewards=np.array([reward], np.float32),
                core=np.array([[core]], np.float32),
            )
        )
        self.builder.act(
            rows,
            actions=np.array([seen % 3]),
            log_probs=np.array([-seen], np.float32),
            versions=np.array([version], np.int32),
        )

    def end(self, row: int, *, reward: float, final: int | None = None) -> None:
        """The episode terminated, or was truncated with `final` as the last that was seen."""
        self._keep(
            self.builder.end(
                np.array([row]),
                rewards=np.array([reward], np.float32),
                terminated=np.array([final is None]),
                final_obs=None if final is None else {"n": np.array([final])},
            )
        )

    def _keep(self, unrolls: Unrolls | None) -> None:
        if unrolls is not None:
            self.done.append(unrolls)


def test_a_reward_belongs_to_the_decision_before_it() -> None:
    feeder = Feeder()
    for seen in range(7):
        feeder.decide(0, seen, reward=10.0 * seen)
    first, second = feeder.done
    assert first.obs["n"].tolist() == [[0, 1, 2, 3]]
    assert first.actions.tolist() == [[0, 1, 2]]
    assert first.rewards.tolist() == [[10, 20, 30]]
    assert first.log_probs.tolist() == [[0, -1, -2]]
    assert second.obs["n"].tolist() == [[3, 4, 5, 6]]
    assert second.rewards.tolist() == [[40, 50, 60]]


def test_a_reward_before_the_first_decision_is_nobodys() -> None:
    feeder = Feeder(unroll_length=1)
    feeder.decide(0, 1, reward=99.0)
    feeder.end(0, reward=5.0)
    feeder.decide(0, 2, reward=77.0)
    (unrolls,) = feeder.done
    assert unrolls.rewards.tolist() == [[5.0]]
    assert unrolls.discounts.tolist() == [[0.0]]


def test_a_terminal_sets_discount_zero_and_the_next_observation_resets() -> None:
    feeder = Feeder(unroll_length=4)
    for seen in (1, 2):
        feeder.decide(0, seen)
    feeder.end(0, reward=-1.0)
    for seen in (11, 12, 13):
        feeder.decide(0, seen)
    (unrolls,) = feeder.done
    assert unrolls.discounts.tolist() == [[1, 0, 1, 1]]
    assert unrolls.rewards.tolist() == [[0, -1, 0, 0]]
    assert unrolls.resets.tolist() == [[True, False, True, False, False]]
    assert unrolls.valid.all()


def test_a_truncation_marker_holds_the_final_observation_and_is_no_decision() -> None:
    feeder = Feeder(unroll_length=4)
    for seen in (1, 2):
        feeder.decide(0, seen, version=7)
    feeder.end(0, reward=5.0, final=3)
    for seen in (11, 12):
        feeder.decide(0, seen, version=8)
    (unrolls,) = feeder.done
    assert unrolls.obs["n"].tolist() == [[1, 2, 3, 11, 12]]
    assert unrolls.valid.tolist() == [[True, True, False, True]]
    assert unrolls.discounts.tolist() == [[1, 1, 0, 1]]
    assert unrolls.rewards.tolist() == [[0, 5, 0, 0]]
    assert unrolls.versions.tolist() == [[7, 7, 7, 8]]
    assert unrolls.resets.tolist() == [[True, False, False, True, False]]
    assert unrolls.num_steps == 3


def test_a_truncation_in_the_last_place_bootstraps_from_the_final_observation() -> None:
    feeder = Feeder(unroll_length=2)
    for seen in (1, 2):
        feeder.decide(0, seen, core=float(seen))
    feeder.end(0, reward=5.0, final=3)
    for seen in (11, 12, 13):
        feeder.decide(0, seen, core=float(seen))
    first, second = feeder.done
    assert first.obs["n"].tolist() == [[1, 2, 3]]
    assert (first.discounts.tolist(), first.rewards.tolist()) == ([[1, 1]], [[0, 5]])
    assert first.valid.all()
    assert second.obs["n"].tolist() == [[11, 12, 13]]
    assert second.core.tolist() == [[11]]
    assert second.resets.tolist() == [[True, False, False]]


def test_the_core_state_is_the_one_before_the_first_observation() -> None:
    feeder = Feeder(unroll_length=2)
    for seen in range(5):
        feeder.decide(0, seen, core=100.0 + seen)
    assert [unrolls.core.tolist() for unrolls in feeder.done] == [[[100]], [[102]]]


def test_rows_run_out_of_step_with_one_another() -> None:
    feeder = Feeder(num_rows=2, unroll_length=2)
    for seen in (1, 2, 3):
        feeder.decide(1, seen)
    feeder.decide(0, 50)
    feeder.decide(1, 4)
    assert [unrolls.obs["n"].tolist() for unrolls in feeder.done] == [[[1, 2, 3]]]


def test_an_end_without_an_open_decision_leaves_no_trace_but_the_reset() -> None:
    feeder = Feeder(unroll_length=2)
    feeder.decide(0, 1)
    feeder.end(0, reward=1.0)
    feeder.end(0, reward=50.0)
    feeder.end(0, reward=60.0, final=9)
    feeder.decide(0, 2, reward=70.0)
    feeder.decide(0, 3, reward=2.0)
    (unrolls,) = feeder.done
    assert unrolls.rewards.tolist() == [[1, 2]]
    assert unrolls.obs["n"].tolist() == [[1, 2, 3]]
    assert unrolls.resets.tolist() == [[True, True, False]]


def test_a_builder_continues_from_what_it_saved() -> None:
    whole, again = Feeder(), Feeder()
    for seen in range(5):
        whole.decide(0, seen, reward=1.5, core=2.0)
    whole.end(0, reward=-1.0)
    again.builder.load(whole.builder.save())
    whole.done.clear()
    for seen in range(10, 16):
        for feeder in (whole, again):
            feeder.decide(0, seen, reward=0.5, core=float(seen), version=seen)
    assert len(whole.done) == len(again.done) == 2
    for left, right in zip(whole.done, again.done, strict=True):
        for name in ("actions", "resets", "log_probs", "rewards", "discounts", "valid", "versions", "core"):
            assert np.array_equal(getattr(left, name), getattr(right, name)), name
        assert np.array_equal(left.obs["n"], right.obs["n"])


def test_emitted_unrolls_do_not_change_when_building_continues() -> None:
    feeder = Feeder(unroll_length=1)
    for seen in range(3):
        feeder.decide(0, seen)
    before = feeder.done[0].obs["n"].copy()
    for seen in range(50, 60):
        feeder.decide(0, seen)
    assert np.array_equal(feeder.done[0].obs["n"], before)


def test_box_actions_are_float32_of_their_shape() -> None:
    builder = UnrollBuilder(UnrollSpec(BOX, 1), num_rows=1)
    row = np.array([0])
    for step in range(2):
        done = builder.observe(
            row, obs={"n": np.zeros((1, 2))}, action_mask=None, rewards=np.zeros(1, np.float32), core=None
        )
        builder.act(
            row,
            actions=np.array([[0.5, -0.25]]) + step,
            log_probs=np.zeros(1, np.float32),
            versions=np.zeros(1, np.int32),
        )
    assert done is not None
    assert done.actions.dtype == np.float32
    assert done.actions.tolist() == [[[0.5, -0.25]]]
    assert done.action_mask is None
    assert done.core.shape == (1, 0)


def test_an_unroll_of_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="unroll_length is 0"):
        UnrollSpec(SPEC, unroll_length=0)


def test_rows_of_a_concatenation_are_the_parts() -> None:
    feeder = Feeder(unroll_length=2)
    for seen in range(7):
        feeder.decide(0, seen)
    together = concatenate(feeder.done)
    assert together.num_rows == 3
    for row, part in enumerate(feeder.done):
        assert np.array_equal(together.rows(row, row + 1).obs["n"], part.obs["n"])
        assert np.array_equal(together.rows(row, row + 1).actions, part.actions)
    assert np.shares_memory(together.rows(1, 2).rewards, together.rewards)


def test_an_episode_that_is_given_up_is_cut_before_its_last_decision() -> None:
    """The last observation shown is what the decision before it bootstraps from; the decision on it has no result."""
    feeder = Feeder()
    for seen in range(3):
        feeder.decide(0, seen, reward=10.0 * seen, version=4)
    feeder.builder.abandon(np.array([0, 1]))
    feeder.decide(0, 7, reward=99.0, version=5)
    (unroll,) = feeder.done
    assert unroll.obs["n"].tolist() == [[0, 1, 2, 7]]
    assert unroll.valid.tolist() == [[True, True, False]]
    assert unroll.rewards.tolist() == [[10, 20, 0]]
    assert unroll.discounts.tolist() == [[1, 1, 0]]
    assert unroll.resets.tolist() == [[True, False, False, True]]
    assert unroll.versions.tolist() == [[4, 4, 4]]


def test_nothing_is_left_of_an_episode_given_up_at_the_first_decision_of_an_unroll() -> None:
    feeder = Feeder()
    for seen in range(4):
        feeder.decide(0, seen, reward=10.0 * seen)
    feeder.builder.abandon(np.array([0]))
    for seen in range(20, 24):
        feeder.decide(0, seen, reward=5.0)
    first, second = feeder.done
    assert first.obs["n"].tolist() == [[0, 1, 2, 3]]
    assert first.rewards.tolist() == [[10, 20, 30]]
    assert second.obs["n"].tolist() == [[20, 21, 22, 23]]
    assert second.resets.tolist() == [[True, False, False, False]]
    assert second.valid.all()


def test_giving_up_an_episode_after_its_end_changes_nothing() -> None:
    feeder = Feeder()
    for seen in range(2):
        feeder.decide(0, seen)
    feeder.end(0, reward=1.0)
    feeder.builder.abandon(np.array([0]))
    for seen in range(5, 7):
        feeder.decide(0, seen)
    (unroll,) = feeder.done
    assert unroll.obs["n"].tolist() == [[0, 1, 5, 6]]
    assert unroll.valid.all()


def test_many_flags_come_out_as_they_were_shown() -> None:
    """They are kept as bits, of which the last byte of a step is not full; a saved builder has the flags themselves."""
    rng, rows = np.random.default_rng(0), np.array([2, 0])
    spec = UnrollSpec(FLAGS, 2)
    builder = UnrollBuilder(spec, num_rows=3)
    boards, fews, masks = rng.random((3, 2, 3, 7)) < 0.5, rng.random((3, 2, 2)) < 0.5, rng.random((3, 2, 17)) < 0.5
    for step in range(2):
        builder.observe(
            rows,
            obs={"board": boards[step], "few": fews[step]},
            action_mask=masks[step],
            rewards=np.zeros(2, np.float32),
            core=None,
        )
        numbers = np.zeros(2, np.int32)
        builder.act(rows, actions=numbers, log_probs=numbers.astype(np.float32), versions=numbers)
    saved = builder.save()
    assert saved["obs.board"].shape == (3, 3, 3, 7)
    later = UnrollBuilder(spec, num_rows=3)
    later.load(saved)
    unrolls = later.end(
        rows,
        rewards=np.zeros(2, np.float32),
        terminated=np.zeros(2, np.bool_),
        final_obs={"board": boards[2], "few": fews[2]},
    )
    assert unrolls is not None and unrolls.action_mask is not None
    assert unrolls.obs["board"].dtype == np.bool_
    np.testing.assert_array_equal(unrolls.obs["board"], boards.swapaxes(0, 1))
    np.testing.assert_array_equal(unrolls.obs["few"], fews.swapaxes(0, 1))
    np.testing.assert_array_equal(unrolls.action_mask[:, :2], masks[:2].swapaxes(0, 1))
    assert unrolls.action_mask[:, 2].all()
