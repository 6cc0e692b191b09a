"""Ratios that are 1 but for rounding are not counted as clipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from league.agents.losses.vtrace import log_of_clip


@pytest.mark.parametrize("clip", [0.5, 1.0, 2.0])
def test_a_ratio_at_its_clip_but_for_rounding_is_not_clipped_and_one_above_is(clip: float) -> None:
    """As of equal policies whose log-probabilities were summed in another order."""
    rng = np.random.default_rng(0)
    logits = (8.0 * rng.normal(size=(5_000, 30))).astype(np.float32)
    one = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    shuffled = rng.permutation(30)
    other = logits - np.log(np.exp(logits[:, shuffled]).sum(1, keepdims=True))
    log_rhos = (one - other).reshape(-1) + math.log(clip)
    assert (log_rhos > math.log(clip)).any(), "there is rounding"
    assert not (log_rhos > log_of_clip(clip)).any()
    assert 1.001 * clip > math.exp(log_of_clip(clip)) > clip
    assert log_of_clip(None) == math.inf
