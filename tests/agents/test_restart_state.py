"""The layout of restart states: what is put in is read back, and what is missing is named."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.restart_state import (
    OPTIMIZER_NUMBER,
    OPTIMIZER_VECTOR,
    VECTORS,
    Counters,
    RestartStateError,
    counters_in,
    is_vector,
    restart_state,
    scales_in,
    weights_alone,
    weights_in,
    with_teacher,
)

VECTOR = np.arange(5, dtype=np.float32)


def test_a_restart_state_gives_back_what_it_holds() -> None:
    saved = restart_state(weights_alone(VECTOR), Counters(3, 40, 2, 1), np.array([0.5]))
    assert np.array_equal(weights_in(saved), VECTOR)
    assert counters_in(saved) == Counters(3, 40, 2, 1)
    assert scales_in(saved).tolist() == [0.5]


def test_names_on_the_disk_are_for_ever() -> None:
    saved = with_teacher(restart_state(weights_alone(VECTOR), Counters(3, 40), np.array([0.5])), VECTOR)
    assert set(saved) == {"values", "counters", "scales", "teacher"}
    assert VECTORS == ("values", "slow", "teacher", "ema")
    assert (OPTIMIZER_VECTOR, OPTIMIZER_NUMBER) == ("optimizer_vector.", "optimizer_number.")
    assert is_vector("slow") and is_vector("optimizer_vector.exp_avg") and not is_vector("optimizer_number.step")
    assert saved["counters"].tolist() == [3, 40, 0, 0, 0] and saved["counters"].dtype == np.int64


def test_a_teacher_is_added_to_a_copy() -> None:
    alone = weights_alone(VECTOR)
    assert set(with_teacher(alone, VECTOR)) == {"values", "teacher"} and set(alone) == {"values"}
    assert set(with_teacher(alone, None)) == {"values"}


@pytest.mark.parametrize(("read", "what"), [(weights_in, "weights"), (counters_in, "counters"), (scales_in, "scales")])
def test_what_is_missing_is_named(read, what: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RestartStateError, match=f"it holds no {what}"):
        read({"slow": VECTOR})
