"""Numbers in messages of games, learners and the core: never with an exponent."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from league.agents.learner.config import LearnerConfig, PipelineConfig
from league.core.state.scoring import Scoring
from league.envs.protocol import EnvConfig, reward_problem
from league.envs.registry import spec_of
from league.envs.return_range import check_returns, returns_text

RICH = dataclasses.replace(spec_of(EnvConfig("tic_tac_toe")), return_range=(-2e6, 2e6))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (lambda: str(reward_problem(np.array([[1e18]]))), "1,000,000,000,000,000"),
        (lambda: str(list(check_returns(RICH, np.array([3e6, 0.0], np.float32)))), "3,000,000"),
        (lambda: returns_text(RICH), "2,000,000"),
        (lambda: Scoring("returns", 1.2e6).text, "1,200,000"),
        (lambda: str(LearnerConfig(entropy_cost=1e9).problems()), "1,000,000"),
        (lambda: str(PipelineConfig(stage_timeout_s=1e9).problems()), "1,000,000"),
    ],
)
def test_a_message_shows_no_exponent(text: object, number: str) -> None:
    message = text()  # type: ignore[operator]
    assert number in message and not re.search(r"\de[+-]\d", message.replace("1e+18", ""))
