"""The programs of docs/examples/keep_your_trainer play in a league, continue it, and are played by a tournament."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from league.core.state.events import SnapshotAdded
from league.judge.contenders.contender import OpenConditions
from league.judge.contenders.finding import find_contenders, game_of
from league.judge.matches.match import Match
from league.policies.loading import PolicyMismatch, load_from_run, open_run
from league.see.reports.status.status_report import read_status
from tests.docs.pages import ROOT
from tests.league.see.page.page_runs import OPERATOR, page_of
from tests.league.tiny_runs import events_of, state_of

EXAMPLES = ROOT / "docs" / "examples" / "keep_your_trainer"


def example(name: str) -> ModuleType:
    if str(EXAMPLES) not in sys.path:  # as for a program that is started there: they share one_seat.py
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(f"keep_your_trainer_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of plain_ppo.py, stopped and continued."""
    path, program = tmp_path_factory.mktemp("own") / "run", example("plain_ppo")
    program.GAMES = 8
    program.train(path, matches=2)
    program.train(path, matches=2)
    return path


def test_plain_ppo_plays_in_a_league_and_continues_it(run: Path) -> None:
    state = state_of(run)
    assert (state.totals.games, state.totals.rating_games) == (4 * 8 + 2 * 4, 2 * 4)  # none before two are frozen
    assert [info.reason for info in state.snapshots.values()] == ["initial", "manual", "manual"]
    assert state.players["main-0"].trained_steps == state.snapshots["main-0-s2"].trained_steps > 4 * 8 * 5
    assert state.token == 2


def test_the_reports_of_a_run_read_its_folder(run: Path) -> None:
    status = read_status(run)
    assert (status.daemon.status.phase, status.league.snapshots) == ("stopped", 3)


@pytest.mark.parametrize(
    "section", ["overview", "table", "strength", "payoff", "lineage", "player", "doctor", "events"]
)
def test_the_page_shows_its_folder(run: Path, section: str) -> None:
    library, page = page_of(run)
    try:
        client = TestClient(page, base_url="http://127.0.0.1:8420")  # type: ignore[arg-type]
        assert client.post("/api/v1/session", json={"token": OPERATOR.token}).status_code in (200, 204)
        answer = client.get(f"/api/v1/runs/{run.name}/sections/{section}")
        assert answer.status_code == 200, answer.text
    finally:
        library.close()


def tournament_games(run: Path) -> int:
    """The games of a snapshot, made by its loader, against a bot."""
    contenders = find_contenders([f"{run}:main-0-s0", f"{run}:main-0-s2", "bot:random"])
    game = game_of(contenders)
    first, last, bot = contenders
    assert (first.copies, first.game, bot.game) == ((), game, None)
    conditions = OpenConditions(seed=1, greedy=False)
    with last.open(game, conditions) as policy, bot.open(game, conditions) as other:
        return Match(game.env, [policy, other], seed=0, opening_plies=0).play(20).games


def test_a_tournament_plays_its_snapshots_by_their_loader(run: Path) -> None:
    assert tournament_games(run) == 20


def test_its_snapshots_are_no_networks_of_ours(run: Path) -> None:
    with pytest.raises(PolicyMismatch, match="a file of the program that trained it"):
        load_from_run(open_run(run), "main-0-s0")


class Stand:
    """A stand-in where Stable-Baselines3 is absent: its interface as the example uses it, playing at random."""

    saved = 0

    def __init__(self, policy: str, env: Any, n_steps: int) -> None:
        self.env, self.num_timesteps, self.rng = env, 0, np.random.default_rng(1)

    @classmethod
    def load(cls, path: Path, env: Any = None) -> Stand:
        loaded = cls("MlpPolicy", env, 0)
        loaded.num_timesteps = int(Path(path).read_text())
        return loaded

    def save(self, path: Path) -> None:
        path.write_text(str(self.num_timesteps))

    def predict(self, observation: np.ndarray) -> tuple[int, None]:
        return int(self.rng.integers(9)), None

    def learn(self, steps: int, *, reset_num_timesteps: bool) -> None:
        assert not reset_num_timesteps
        seen, _ = self.env.reset()
        for _ in range(steps):
            empty = np.flatnonzero(seen.sum(axis=2).reshape(-1) == 0)
            seen, _, ended, _, _ = self.env.step(int(self.rng.choice(empty)))
            if ended:
                seen, _ = self.env.reset()
        self.num_timesteps += steps


HAS_SB3 = importlib.util.find_spec("stable_baselines3") is not None


@pytest.mark.parametrize(
    "trainer", [pytest.param("sb3", marks=pytest.mark.skipif(not HAS_SB3, reason="SB3 is absent")), "stand-in for sb3"]
)
def test_the_example_of_sb3_plays_in_a_league(trainer: str, tmp_path: Path) -> None:
    program = example("sb3")
    program.ROLLOUT = 60
    algorithm = importlib.import_module("stable_baselines3").PPO if trainer == "sb3" else Stand
    for _ in range(3):
        program.train(tmp_path / "run", rollouts=2, algorithm=algorithm)
    state = state_of(tmp_path / "run")
    assert state.players["main-0"].trained_steps == 6 * 60
    assert sum(isinstance(event, SnapshotAdded) for event in events_of(tmp_path / "run")) == 4
    assert state.players["main-0"].episodes.games > 6 * 8
    assert state.totals.rating_games >= 4 * 8, "from the second frozen policy on"
    if trainer == "sb3":
        assert tournament_games(tmp_path / "run") == 20


@pytest.mark.skipif(importlib.util.find_spec("dm_tree") is None, reason="RLlib is absent: `pip install ray[rllib]`")
def test_the_example_of_rllib_plays_in_a_league(tmp_path: Path) -> None:
    program = example("rllib")
    for _ in range(2):
        program.train(tmp_path / "run", rollouts=2)
    state = state_of(tmp_path / "run")
    assert state.players["main-0"].trained_steps == 4 * program.ROLLOUT
    assert tournament_games(tmp_path / "run") == 20
