"""The plan of the table: venvs, cells that are there, and the seconds of a peer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.cells import Cell, Place, allowed, cells_of, keep, missing, stored
from benchmarks.peers.network_bot import NetworkBot
from benchmarks.peers.peer_list import ARMS, PEERS, chosen_arms, commands_of
from benchmarks.peers.trainers.seats import DenseNetwork, drawn, parted, save_layers
from benchmarks.strength.runs import ROOT


def test_pins_are_the_releases_of_the_constraints_and_bring_no_cuda() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    known = {name.lower().replace("_", "-"): release for name, release in pinned.items()}
    for peer in PEERS.values():
        for requirement in peer.requirements:
            name, _, release = requirement.partition("==")
            assert release, requirement
            assert known.get(name, release) == release, requirement
        assert "torch==2.13.0" in peer.requirements


def test_a_venv_is_made_and_filled_under_the_constraints(tmp_path: Path) -> None:
    make, fill = commands_of(PEERS["sb3_ppo"], tmp_path / "sb3", python="python3")
    assert make == ["python3", "-m", "venv", str(tmp_path / "sb3")]
    assert fill[0] == str(tmp_path / "sb3" / "bin" / "python")
    assert str(ROOT / "constraints.txt") in fill and "stable-baselines3==2.9.2" in fill


def test_trainers_do_not_import_what_their_venvs_lack() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert any(name.startswith("ray") for name in extras)
    for path in (ROOT / "benchmarks" / "peers" / "trainers").glob("*.py"):
        imported = [line.split()[1] for line in path.read_text().splitlines() if line.startswith(("from ", "import "))]
        ours = [name for name in imported if name.startswith(("league", "benchmarks"))]
        assert all(name.startswith(("league.envs", "benchmarks.peers.trainers")) for name in ours), path


def test_cells_that_have_figures_are_not_measured_again(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "venvs")
    cells = cells_of(["hex", "connect_four"], ["plain_ppo", "league"], [600.0, 120.0], [0, 1])
    assert [cell.name for cell in cells[:3]] == [
        "connect_four-league-120-0",
        "connect_four-plain_ppo-120-0",
        "hex-league-120-0",
    ]
    assert len(cells) == 16 and missing(cells, place) == cells
    keep(place.file(cells[0]), {"core_seconds": 137.0})
    assert missing(cells, place) == cells[1:]
    assert stored(cells[0], place) == {"core_seconds": 137.0} and stored(cells[1], place) is None


def test_a_peer_has_the_seconds_of_the_whole_run_of_the_league(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "venvs")
    peer = Cell(120.0, "hex", 0, "sb3_ppo")
    assert allowed(peer, place) == 120.0
    keep(place.file(Cell(120.0, "hex", 0, "league")), {"core_seconds": 137.0})
    assert allowed(peer, place) == 137.0
    assert allowed(Cell(120.0, "hex", 1, "sb3_ppo"), place) == 120.0


def test_an_unknown_peer_is_named() -> None:
    assert chosen_arms(None) == list(ARMS)
    with pytest.raises(ValueError, match="rllib_ppo"):
        chosen_arms(["league", "rllib_ppo"])


def test_a_stored_network_plays_legal_actions_by_its_logits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(4, 6)).astype(np.float32), np.zeros(4, np.float32)),
        (rng.normal(size=(3, 4)).astype(np.float32), np.ones(3, np.float32)),
    ]
    save_layers(tmp_path / "net.npz", layers, squash="tanh")
    obs, legal = rng.normal(size=(5, 6)).astype(np.float32), rng.random((5, 3)) < 0.6
    legal[:, 0] = True
    logits = np.tanh(obs @ layers[0][0].T) @ layers[1][0].T + 1.0
    odds = np.where(legal, np.exp(logits), 0.0)
    bot = NetworkBot(str(tmp_path / "net.npz"), 0.0, seed=1)
    probs = bot.probs({"board": obs[:, :4].reshape(5, 2, 2), "seat": obs[:, 4:]}, legal)
    assert probs == pytest.approx(odds / odds.sum(axis=1, keepdims=True), rel=1e-5)
    chosen = drawn(np.repeat(probs, 4_000, axis=0), rng).reshape(5, 4_000)
    shares = np.stack([(chosen == action).mean(axis=1) for action in range(3)], axis=1)
    assert np.abs(shares - probs).max() < 0.05
    assert shares[~legal].sum() == 0.0
    assert DenseNetwork.load(tmp_path / "net.npz").probs(obs, legal) == pytest.approx(probs)


def test_an_action_of_no_probability_is_never_drawn() -> None:
    class AtTheEnds(np.random.Generator):
        """Draws the two ends of the interval."""

        def random(self, *args: object, **kwargs: object) -> np.ndarray:  # type: ignore[override]
            return np.array([[0.0], [1.0 - 1e-16]])

    probs = np.array([[0.0, 0.5, 0.5], [0.5, 0.5, 0.0]])
    assert drawn(probs, AtTheEnds(np.random.PCG64())).tolist() == [1, 1]


def test_what_an_env_shows_becomes_numbers_in_the_order_of_the_fields() -> None:
    shown = {"observation": {"board": np.ones((2, 2), np.int8), "seat": np.array([0, 1])}, "action_mask": [1, 0]}
    obs, legal = parted(shown, 2)
    assert obs.tolist() == [1, 1, 1, 1, 0, 1] and legal.tolist() == [True, False]
    assert parted(np.array([0.5]), 2)[1].all()
