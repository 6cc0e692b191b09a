"""Which games policies sample their actions in by default."""

from __future__ import annotations

import pytest

from league.envs.protocol import EnvConfig
from league.judge.matches.contest import should_sample


@pytest.mark.parametrize(
    ("env", "samples"),
    [
        ("connect_four", False),
        ("kuhn_poker", True),
        ("rock_paper_scissors", True),
        ("openspiel:liars_dice", True),
        ("openspiel:breakthrough(rows=6,columns=6)", False),
        ("gymnasium:CartPole-v1", False),
    ],
)
def test_policies_sample_where_a_fixed_choice_is_easily_exploited(env: str, samples: bool) -> None:
    assert should_sample(EnvConfig(env)) is samples
