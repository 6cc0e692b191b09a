"""Trains with the plug-ins of the documents, all in one run, and looks for what each of them does."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from league.config.loading import load_config
from league.config.plugin_names import outside_names
from league.config.run_config import config_plain
from league.core.state.events import DirectiveIssued, LeaseGranted, PlayerTransplanted
from league.judge.probes.probe import make_probe
from league.run.budget import Limits
from league.run.launch import start
from league.see.reports.env_check import check_environment
from league.store.checkpoints import CheckpointStore
from league.store.run_folder import RunFolder
from league.store.weights_file import decode_arrays
from tests.docs.pages import ROOT
from tests.league.judge.probes.subjects import subject_of
from tests.league.tiny_runs import events_of, state_of

EXAMPLES = ROOT / "docs" / "examples"
CONFIG = EXAMPLES / "plugins.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of docs/examples/plugins.yaml."""
    path = tmp_path_factory.mktemp("plugins") / "run"
    config = load_config(CONFIG, overrides=["wandb.mode=disabled"])
    start(config, {}, source=CONFIG, run_dir=path, limits=Limits(env_steps=6000))
    return path


def test_every_example_is_named_in_the_configuration() -> None:
    named = {Path(found.name.partition(":")[0]).name for found in outside_names(config_plain(load_config(CONFIG)))}
    assert named == {path.name for path in EXAMPLES.glob("*.py")}


def test_the_loss_and_the_network_part_learn(run: Path) -> None:
    player = state_of(run).players["main-0"]
    assert player.version > 5
    assert player.checkpoint is not None


def test_the_optimizer_has_kept_its_mean(run: Path) -> None:
    checkpoint = state_of(run).players["main-0"].checkpoint
    assert checkpoint is not None
    saved = decode_arrays(CheckpointStore(RunFolder.open(run).checkpoints_path).get("main-0", checkpoint.digest))
    assert np.abs(saved["optimizer_vector.mean"]).max() > 0.0


def test_a_player_copies_the_best(run: Path) -> None:
    assert any(isinstance(event, PlayerTransplanted) for event in events_of(run))


def test_the_probe_measures() -> None:
    choice = {"kind": f"{EXAMPLES / 'cost_of_chance.py'}:CostOfChance", "games": 20}
    (reading,) = make_probe(choice, place="probes.kinds.0").measure(subject_of("tic_tac_toe"))
    assert (reading.yardstick, reading.games) == ("likeliest", 20)


def test_the_gate_fires_by_steps_alone(run: Path) -> None:
    reasons = [event.directive.reason for event in events_of(run) if isinstance(event, DirectiveIssued)]
    assert reasons.count("gate") >= 3 and "timeout" not in reasons


def test_the_matchmaker_meets_the_oldest_most(run: Path) -> None:
    met: Counter[str] = Counter()
    for event in events_of(run):
        if isinstance(event, LeaseGranted) and event.lease.home is not None:
            for assignment in event.lease.assignments:
                for policy in {*assignment.policies} - {"main-0"}:
                    met[policy] += assignment.probability
    assert met["main-0-s0"] > 1.5 * met["main-0-s1"] > 0


def test_the_bot_is_met(run: Path) -> None:
    assert any("first_legal_bot.py" in name for name in state_of(run).population.index)


def test_the_sink_has_written_rows(run: Path) -> None:
    rows = list(csv.reader((run / "metrics.csv").open()))
    assert rows and len(rows[0]) == 3


def test_the_game_keeps_the_contract() -> None:
    assert not check_environment(f"{EXAMPLES / 'nim.py'}:make", ["stones=9"], steps=200).problems
