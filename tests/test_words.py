"""The words of the project, each in one sense: private words that went do not come back as names in the code."""

from __future__ import annotations

import io
import re
import tokenize

import pytest

from tests.test_architecture import name_of, sources

GONE = {
    "Book": "JournaledLeague",
    "Order": "Directive",
    "OrderIssued": "DirectiveIssued",
    "UpdateOrder": "UpdateInputs",
    "Seating": "Assignment",
    "SeatingOutcome": "AssignmentOutcome",
    "Workload": "FairShare",
    "furthest_behind": "next_player",
    "Column": "GrowableArray",
    "guest": "fixed opponent",
    "guests": "fixed_opponents",
    "outsider": "imported policy",
    "outsiders": "imported",
    "tuner": "selection",
    "tuning": "pbt",
    "SeatPolicy": "Policy",
    "Choice": "ActOutputs",
    "rival": "opponent",
    "rivals": "gate_opponents",
    "doubt": "expected_unbeaten",
    "Meal": "OpponentGames",
    "diet": "opponent_mix",
    "Descent": "LineageNode",
    "Tally": "OutcomeCounter",
    "Tail": "FlatOptimizer",
    "LossSums": "LossStats",
    "Passes": "ForwardPasses",
    "Coefficients": "LossWeights",
    "disorder": "entropy_loss",
    "crew": "worker_group",
    "Launcher": "WorkerGroupLauncher",
    "let_pass": "passthrough",
    "LocalPipeBackend": "ThreadedPipelineBackend",
    "DistPipeBackend": "TorchPipelineBackend",
    "StreamingLearnerHost": "AsyncLearnerHost",
    "ExactRuntime": "DeterministicRuntime",
}
"""A name that no code may have -> the word of the field."""

GONE_PREFIXES = re.compile(r"_?(?:MOST|LEAST)_[A-Z]|\w+Settings$")
"""Constants are MAX_ and MIN_; records of settings end in Config."""

OF_OTHERS = {"BaseSettings"}


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_no_private_word_is_left(path) -> None:  # type: ignore[no-untyped-def]
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type != tokenize.NAME or token.string in OF_OTHERS:
            continue
        where = f"{name_of(path)}:{token.start[0]}"
        assert token.string not in GONE, f"{where}: {token.string} is called {GONE.get(token.string)}"
        assert not GONE_PREFIXES.match(token.string), f"{where}: {token.string}"
