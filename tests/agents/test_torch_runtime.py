"""Settings of a process: float32 stays float32 on a GPU, wherever a learner is built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.torch_runtime import prepare_process
from tests.agents.learner.learner_cases import BOARD_GAME, LSTM, small_config

CUDNN = torch.backends.cudnn


@pytest.fixture
def rounding() -> Iterator[None]:
    """What torch has by default, or worse."""
    CUDNN.allow_tf32, CUDNN.benchmark = True, True
    yield
    CUDNN.allow_tf32, CUDNN.benchmark = False, False


@pytest.mark.usefixtures("rounding")
def test_a_process_rounds_nothing_to_tf32_and_tries_no_algorithms_out() -> None:
    prepare_process()
    assert not CUDNN.allow_tf32 and not CUDNN.benchmark
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.usefixtures("rounding")
def test_a_learner_that_is_built_anywhere_rounds_nothing_to_tf32() -> None:
    build_learner(BOARD_GAME, LSTM, small_config(), seed=1, dtype=torch.float32)
    assert not CUDNN.allow_tf32
