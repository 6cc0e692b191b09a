"""A plug-in that fails while a run trains: the run ends with a sentence, and keeps what its learners have learnt."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.errors import LeagueError
from tests.league.tiny_runs import start, state_of, tiny

PLUGINS = """
from dataclasses import dataclass

CALLS = []

@dataclass
class Raises:
    def __call__(self, trial):
        CALLS.append(trial.steps)
        return None if len(CALLS) <= 10 else self.fail()

    def fail(self):
        return 1 / 0

@dataclass
class Answers(Raises):
    def fail(self):
        return {"what": "this is no verdict"}
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [("Raises", "ZeroDivisionError: division by zero"), ("Answers", "return None or a .*Verdict")],
)
def test_a_gate_that_fails_in_training_ends_the_run_with_a_sentence_and_saved_learners(
    name: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "plugins.py").write_text(PLUGINS)
    gate = {"test": f"plugins.py:{name}", "min_steps": 10, "timeout_steps": 350}
    players = [{"role": "main_agent", "gate": gate}]
    with pytest.raises(LeagueError, match=rf"the gate '.*plugins.py:{name}' .*{words}") as caught:
        start(tmp_path, tiny(league={"players": players}, runtime={"checkpoint_updates": 10_000}), env_steps=5_000)
    assert "\n" not in str(caught.value)
    player = state_of(tmp_path / "run").players["main-0"]
    assert player.checkpoint is not None
    assert player.checkpoint.trained_steps >= player.trained_steps > 0


BACKEND = """
from league.agents.learner.step.backend import SingleBackend

class Doubled(SingleBackend):
    def accumulate(self, microbatches, loss_weights):
        found = super().accumulate(microbatches, loss_weights)
        for parameter in self._network.parameters():
            parameter.grad.mul_(2.0)
        return found
"""


def test_a_backend_with_wrong_gradients_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "plugins.py").write_text(BACKEND)
    plain = tiny()
    plain["learner"]["pipeline"] = {"backend": "plugins.py:Doubled"}
    with pytest.raises(
        LeagueError, match=r"^learner.pipeline: the gradient of .* differs from plain autograd's"
    ) as caught:
        start(tmp_path, plain, env_steps=200)
    assert "\n" not in str(caught.value)
