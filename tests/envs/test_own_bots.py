"""Bots of the user's own: a bot that raises, or answers in another form, is an error that names it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from league.envs.bots import make_bot
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

BOTS = """
import numpy as np

class Broken:
    def __init__(self, seed, answer="raise"):
        self.answer = answer

    def act(self, env, turn, slots):
        if self.answer == "raise":
            return turn.nothing
        answers = {"beyond": [0, 9], "below": [0, -1], "text": ["a"] * 2, "pairs": [[0, 1]] * 2, "half": [0.5] * 2}
        if self.answer in answers:
            return answers[self.answer]
        return {"scalar": 3, "short": [0] * (len(slots) - 1), "list": [0] * len(slots)}[self.answer]
"""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("raise", r"raised AttributeError: 'Turn' object has no attribute 'nothing'"),
        ("scalar", r"answered \[\] actions for 2 slots; return one each"),
        ("short", r"answered \[1\] actions for 2 slots; return one each"),
        ("pairs", r"answered \[2, 2\] actions for 2 slots; return one each"),
        ("beyond", r"chose the action 9, which is illegal; legal are \[0, 1, 2, 3, 4, 5, 6, 7, 8\]"),
        ("below", r"chose the action -1, which is illegal"),
        ("text", r"chose the action 'a', which is illegal"),
        ("half", r"chose the action 0.5, which is illegal"),
    ],
)
def test_a_bot_that_fails_in_play_is_named_with_its_fault(answer: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BOTS)
    env = make(EnvConfig("tic_tac_toe"), num_envs=2)
    name = f"{tmp_path}/own.py:Broken?answer={answer}"
    with pytest.raises(EnvError, match=rf"the bot '.*own.py:Broken\?answer={answer}' {words}"):
        make_bot(name, seed=0).act(env, env.reset(0), np.arange(2))


def test_a_bot_may_answer_with_a_list(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BOTS)
    env = make(EnvConfig("tic_tac_toe"), num_envs=2)
    actions = make_bot(f"{tmp_path}/own.py:Broken?answer=list", seed=0).act(env, env.reset(0), np.arange(2))
    assert actions.tolist() == [0, 0]
