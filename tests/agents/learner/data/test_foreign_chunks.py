"""A chunk that no actor of the game can have recorded is refused with its reason, and the next one is taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from league.agents.learner.data.feeder import Feeder
from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.ring import MAX_REWARD, check_unrolls
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.protocol import ActionSpec, EnvSpec, multi_categorical
from tests.agents.learner.learner_cases import BOARD_GAME, COMMANDS, CONTROL, LSTM, network_of, small_config, unrolls_of

DEADLINE_S = 20.0
ROWS, STEPS = 6, 5
UNROLLS = UnrollSpec.of(BOARD_GAME, network_of(BOARD_GAME, LSTM), unroll_length=STEPS)


def good(seed: int = 0) -> Unrolls:
    return unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=ROWS, steps=STEPS, seed=seed)


def changed(**fields: Any) -> Callable[[Unrolls], Unrolls]:
    """Unrolls with other fields, each a function of the field of before."""
    return lambda unrolls: dataclasses.replace(
        unrolls, **{name: change(getattr(unrolls, name)) for name, change in fields.items()}
    )


def with_one(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The array with this value in its second row and third step."""

    def put(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[1, 2] = value
        return array

    return put


def float_obs(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**obs, "board": obs["board"].astype(np.float32)}


def wide_obs(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**obs, "clock": np.full(obs["clock"].shape, 1e300)}


def not_finite_obs(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**obs, "clock": with_one(np.nan)(obs["clock"])}


def no_axes(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**obs, "clock": np.float32(0.0)}  # type: ignore[dict-item]


FOREIGN: dict[str, tuple[Callable[[Unrolls], Unrolls], str]] = {
    "observations of another dtype": (changed(obs=float_obs), "field obs.board is float32, the game's is bool"),
    "observations too wide for the game's dtype": (changed(obs=wide_obs), "field obs.clock is float64"),
    "observations that are not finite": (changed(obs=not_finite_obs), "field obs.clock holds a number that is not"),
    "a field without axes": (changed(obs=no_axes), "field obs.clock has rows of shape"),
    "fractional actions": (changed(actions=lambda a: a.astype(np.float32)), "field actions is float32"),
    "an action beyond the last": (
        changed(actions=with_one(99)),
        "field actions holds 99, which is not between 0 and 4",
    ),
    "an action below the first": (changed(actions=with_one(-1)), "field actions holds -1"),
    "an action as large as 64 bits hold": (
        changed(actions=lambda a: with_one(2**64 - 1)(a.astype(np.uint64))),
        "field actions holds 18446744073709551615",
    ),
    "rewards that are not finite": (changed(rewards=with_one(np.inf)), "field rewards holds a number that is not"),
    "rewards beyond any sum": (changed(rewards=with_one(1e30)), "field rewards holds 1.0"),
    "log-probabilities that are not finite": (changed(log_probs=with_one(-np.inf)), "field log_probs holds"),
    "discounts above 1": (changed(discounts=with_one(1.5)), "field discounts holds 1.5"),
    "negative versions": (changed(versions=with_one(-1)), "field versions holds -1"),
    "core state that is not finite": (changed(core=with_one(np.nan)), "field core holds a number that is not"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_chunk_is_refused_with_its_reason_and_the_next_one_is_taken(name: str) -> None:
    change, reason = FOREIGN[name]
    chunks = {b"foreign": change(good()), b"good": good(1)}
    feeder = Feeder(UNROLLS, small_config(), decode=chunks.__getitem__)
    feeder.start()
    try:
        for chunk in (b"foreign", b"good", b"good"):
            feeder.push(chunk, num_rows=ROWS)
        with feeder.batch(timeout_s=DEADLINE_S) as blocks:
            (block,) = blocks
            np.testing.assert_array_equal(block.actions[:ROWS], good(1).actions)
        report = feeder.report()
    finally:
        feeder.close()
    assert (report.chunks, report.refused) == (2, 1)
    assert reason in report.reason
    assert len(report.reason) < 300


def test_an_action_that_its_mask_forbids_is_refused() -> None:
    unrolls = good()
    mask = unrolls.action_mask
    assert mask is not None
    row, step = np.argwhere(unrolls.valid)[-1]
    illegal = int(np.flatnonzero(~mask[row, step])[0])
    unrolls.actions[row, step] = illegal
    with pytest.raises(ValueError, match=f"action {illegal} in row {row}, step {step} is illegal under its mask"):
        check_unrolls(unrolls, BOARD_GAME.actions)
    unrolls.valid[row, step] = False
    check_unrolls(unrolls, BOARD_GAME.actions)


def test_a_mask_that_allows_nothing_does_not_accuse_the_action() -> None:
    unrolls = good()
    assert unrolls.action_mask is not None
    unrolls.action_mask[0] = False
    check_unrolls(unrolls, BOARD_GAME.actions)


@pytest.mark.parametrize("seed", range(5))
def test_sub_actions_are_checked_each_against_its_own_range_and_mask(seed: int) -> None:
    unrolls = synthetic_unrolls(UnrollSpec(COMMANDS, STEPS), rows=ROWS, seed=seed)
    check_unrolls(unrolls, COMMANDS.actions)
    for part, size in enumerate(COMMANDS.actions.nvec):
        beyond = unrolls.actions.copy()
        beyond[2, 3, part] = size
        with pytest.raises(ValueError, match=rf"sub-action {part}\) holds {size}"):
            check_unrolls(dataclasses.replace(unrolls, actions=beyond), COMMANDS.actions)
    assert unrolls.action_mask is not None
    place = COMMANDS.actions.sub_action_masks[1]  # its legal choices depend on the first sub-action
    row, step = np.argwhere(unrolls.valid & (unrolls.actions[..., 1] != 0))[0]
    start = place.start + int(unrolls.actions[row, step, 0]) * place.size
    assert unrolls.action_mask[row, step, start + unrolls.actions[row, step, 1]]
    unrolls.action_mask[row, step, start + unrolls.actions[row, step, 1]] = False
    with pytest.raises(ValueError, match="illegal under its mask"):
        check_unrolls(unrolls, COMMANDS.actions)


def test_box_actions_may_be_any_finite_numbers() -> None:
    unrolls = synthetic_unrolls(UnrollSpec(CONTROL, STEPS), rows=ROWS, seed=0)
    unrolls.actions[...] *= 100.0
    check_unrolls(unrolls, CONTROL.actions)
    unrolls.actions[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="field actions holds a number that is not finite"):
        check_unrolls(unrolls, CONTROL.actions)


def test_large_numbers_are_not_taken_for_infinite_ones() -> None:
    unrolls = good()
    unrolls.obs["clock"][...] = 3e38
    unrolls.rewards[...] = MAX_REWARD
    check_unrolls(unrolls, BOARD_GAME.actions)


def game_of(actions: ActionSpec) -> EnvSpec:
    return dataclasses.replace(BOARD_GAME, actions=actions, has_mask=False)


@pytest.mark.parametrize(
    ("actions", "last"),
    [
        (ActionSpec("categorical", num_actions=5), 4),
        (ActionSpec("categorical", num_actions=32_768), 32_767),
        (ActionSpec("categorical", num_actions=32_769), 32_768),
        (ActionSpec("categorical", num_actions=1_000_000), 999_999),
        (multi_categorical((3, 40_000)), 39_999),
    ],
)
def test_the_last_action_is_recorded_as_it_was_chosen(actions: ActionSpec, last: int) -> None:
    builder = UnrollBuilder(UnrollSpec(game_of(actions), 1), num_rows=1)
    row = np.zeros(1, np.int64)
    seen = {"board": np.zeros((1, 6), np.bool_), "clock": np.zeros(1, np.float32)}
    zero = np.zeros(1, np.float32)
    chosen = np.full((1, *actions.shape), last)
    if actions.nvec:
        chosen[0, 0] = 2
    builder.observe(row, obs=seen, action_mask=None, rewards=zero, core=None)
    builder.act(row, actions=chosen, log_probs=zero, versions=np.zeros(1, np.int32))
    unrolls = builder.observe(row, obs=seen, action_mask=None, rewards=zero, core=None)
    assert unrolls is not None
    np.testing.assert_array_equal(unrolls.actions[:, 0], chosen)


def test_games_of_few_actions_keep_the_dtype_that_recorded_chunks_have() -> None:
    assert UnrollSpec(game_of(ActionSpec("categorical", num_actions=32_768)), 1).action_dtype == np.int16
    assert UnrollSpec(game_of(multi_categorical((3, 7))), 1).action_dtype == np.int16
    assert UnrollSpec(game_of(ActionSpec("categorical", num_actions=32_769)), 1).action_dtype == np.int32
    assert UnrollSpec(game_of(ActionSpec("box", shape=(2,))), 1).action_dtype == np.float32
