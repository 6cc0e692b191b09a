"""A narrow array takes what comes, in the narrowest type that holds it."""

from __future__ import annotations

import math

import numpy as np

from league.core.state.growable_array import NarrowArray


def test_a_number_that_does_not_fit_widens_the_array() -> None:
    narrow = NarrowArray("bi", (2,))
    assert [narrow.append(1, -1), narrow.append(300, 2)] == [0, 1]
    np.testing.assert_array_equal(narrow.values, [[1, -1], [300, 2]])
    assert narrow.values.dtype == np.int32


def test_the_widest_type_holds_whatever_comes() -> None:
    narrow = NarrowArray("fd")
    narrow.append(0.5)
    assert narrow.values.dtype == np.float32
    narrow.put(0, math.nan)
    assert math.isnan(narrow.values.item()) and narrow.values.dtype == np.float64
    narrow.add(0, 1.0)
    assert math.isnan(narrow.values.item())
