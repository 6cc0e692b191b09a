"""Mean and spread of observed numbers against those of numpy over all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from league.envs.facts.number_sizes import NumberSize, NumberSizes
from league.envs.protocol import SEAT_GROUP, ActionSpec, ArraySpec, EnvSpec, SeatGroup, Turn


def spec(observations: Mapping[str, ArraySpec]) -> EnvSpec:
    return EnvSpec("toy", 2, observations, ActionSpec("categorical", 2), (0, 1), False)


def turn(obs: Mapping[str, NDArray[np.generic]]) -> Turn:
    slots = len(next(iter(obs.values())))
    nothing = np.zeros((slots, 1), np.float32)
    ended = np.zeros(slots, np.bool_)
    return Turn(
        env_index=np.arange(slots, dtype=np.int64),
        seat=np.zeros(slots, np.int64),
        obs=dict(obs),
        action_mask=None,
        rewards=nothing,
        terminated=ended,
        truncated=ended,
        returns=nothing,
    )


def sizes_of(*fields: NDArray[np.generic]) -> tuple[NumberSize, ...]:
    found = NumberSizes(spec({"field": ArraySpec(fields[0].shape[1:], fields[0].dtype.name)}))
    for field in fields:
        found.note(turn({"field": field}))
    return found.sizes()["field"]


def test_moments_are_those_of_all_rows_also_of_tiny_spreads_beside_large_means() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.normal([0.0, 1e6, -3.0], [1.0, 1e-3, 0.01], (500, 3)) for _ in range(2))
    rows = np.concatenate([first, second])
    for place, size in enumerate(sizes_of(first, second)):
        assert size.mean == pytest.approx(rows[:, place].mean(), rel=1e-9, abs=1e-9)
        assert size.deviation == pytest.approx(rows[:, place].std(), rel=1e-6)
        assert (size.low, size.high) == (rows[:, place].min(), rows[:, place].max())
        assert not size.whole


def test_flags_counts_and_single_numbers() -> None:
    assert [size.whole for size in sizes_of(np.array([[0.0, 0.5], [1.0, 1.0]]))] == [True, False]
    assert sizes_of(np.array([3, 5], np.int64)) == (NumberSize(4.0, 1.0, 3.0, 5.0, whole=True),)


def test_members_of_a_set_share_their_numbers_and_absent_ones_do_not_count() -> None:
    units = np.array([[[1.0, 10.0], [3.0, 30.0], [np.nan, 99.0]]])
    found = NumberSizes(spec({"units": ArraySpec((3, 2), "float64"), "units_mask": ArraySpec((3,), "bool")}))
    found.note(turn({"units": units, "units_mask": np.array([[True, True, False]])}))
    assert {name: [(size.mean, size.deviation) for size in sizes] for name, sizes in found.sizes().items()} == {
        "units": [(2.0, 1.0), (20.0, 10.0)]
    }


def test_each_group_of_seats_has_sizes_of_its_own_fields_without_the_padding() -> None:
    few, many = ({"seen": ArraySpec((size,), "float32")} for size in (1, 2))
    action = ActionSpec("categorical", 2)
    groups = SeatGroup("few", (0,), few, action), SeatGroup("many", (1,), many, action)
    found = NumberSizes(replace(spec({**many, SEAT_GROUP: ArraySpec((2,), "bool")}), seat_groups=groups))
    seen = np.array([[1.0, 0.0], [5.0, 50.0], [3.0, 0.0], [7.0, 70.0]], np.float32)
    found.note(turn({"seen": seen, SEAT_GROUP: np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.bool_)}))
    means = {name: [size.mean for size in sizes] for name, sizes in found.sizes().items()}
    assert means == {"few/seen": [2.0], "many/seen": [6.0, 60.0]}


@pytest.mark.parametrize(
    "field", [ArraySpec((3,), "bool"), ArraySpec((8, 8, 3), "uint8"), ArraySpec((1000,), "float32")]
)
def test_flags_pictures_and_long_fields_are_not_looked_at(field: ArraySpec) -> None:
    found = NumberSizes(spec({"field": field}))
    found.note(turn({"field": np.zeros((2, *field.shape), field.dtype)}))
    assert found.sizes() == {}
