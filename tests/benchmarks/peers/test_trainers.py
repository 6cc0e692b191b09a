"""The plain PPO file: no minibatch is so small that its advantages cannot be scaled."""

from __future__ import annotations

import pytest
import torch

from benchmarks.peers.trainers.plain_ppo import MINIBATCH, minibatches


@pytest.mark.parametrize("size", [8 * MINIBATCH, 8 * MINIBATCH + 1])
def test_minibatches_are_whole(size: int) -> None:
    found = minibatches(size)
    assert [len(rows) for rows in found] == [MINIBATCH] * 8
    assert len(torch.cat(found).unique()) == 8 * MINIBATCH
