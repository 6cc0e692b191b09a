"""Team games through whole runs: seats of different kinds learn, and the shipped configurations train."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from league.agents.acting.policy import BotPolicy
from league.envs.bots import make_bot
from league.envs.protocol import EnvConfig
from league.judge.matches.match import Match
from league.policies.exact.load_policy import load_policy
from league.run.budget import Limits
from league.run.launch import train
from league.see.reports.verify import verify_run
from tests.league.commands import league
from tests.league.tiny_runs import GATE, ONE_PLAYER, start, state_of, tiny

CONFIGS = Path(__file__).parents[2] / "configs"
HERE = "tests.integration.test_team_games"
LENGTH = 4


class Signals(ParallelEnv):
    """Every seat is shown a number and earns 1 for naming it: two reds one of two, a blue one of four, from 3 on."""

    metadata: ClassVar[dict[str, Any]] = {"name": "signals"}
    choices: ClassVar[dict[str, int]] = {"red_0": 2, "red_1": 2, "blue_0": 4}

    def __init__(self) -> None:
        self.possible_agents = list(self.choices)

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 1, (self.choices[agent],), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(self.choices[agent], start=3 if agent == "blue_0" else 0)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.rng, self.steps, self.agents = np.random.default_rng(seed), 0, list(self.choices)
        return self.draw(), {agent: {} for agent in self.agents}

    def draw(self) -> dict[str, np.ndarray]:
        self.wanted = {agent: int(self.rng.integers(count)) for agent, count in self.choices.items()}
        return {agent: np.eye(count, dtype=np.float32)[self.wanted[agent]] for agent, count in self.choices.items()}

    def step(self, actions: dict[str, Any]) -> Any:
        self.steps += 1
        right = {
            agent: float(action - self.action_space(agent).start == self.wanted[agent])
            for agent, action in actions.items()
        }
        over = dict.fromkeys(actions, self.steps == LENGTH)
        shown = self.draw()
        self.agents = [] if self.steps == LENGTH else self.agents
        return shown, right, over, dict.fromkeys(actions, False), {agent: {} for agent in actions}


@pytest.mark.parametrize(("core", "share"), [("none", 0.9), ("lstm", 0.4)])
def test_seats_of_different_kinds_learn_in_one_policy(core: str, share: float, tmp_path: Path) -> None:
    env = {"id": f"{HERE}:Signals", "teams": [["red_*"], ["blue_*"]]}
    plain = tiny(
        env=env,
        network={"hidden": [32], "core": core, "core_size": 8},
        learner={"unroll_length": 4, "batch_rows": 64, "learning_rate": 2e-2, "entropy_cost": 0.05},
        actors={"num_envs": 48},
        league=ONE_PLAYER,
        budget={"env_steps": 12_000},
    )
    start(tmp_path, plain, env_steps=12_000)
    config = EnvConfig(env["id"], teams=(("red_*",), ("blue_*",)))  # type: ignore[arg-type]
    policy, bot = (
        load_policy(tmp_path / "run", "main-0").as_seat_policy(greedy=True),
        BotPolicy(make_bot("random", seed=0)),
    )
    result = Match(config, [policy, bot], seed=1).play(80)
    red, blue = result.returns_by_team(0)
    assert red > (1.0 + share) * LENGTH, "two seats, each right half of the time by chance"
    assert blue > share * LENGTH, "right a quarter of the time by chance"
    assert max(result.returns_by_team(1)) < 1.5 * LENGTH


@pytest.mark.parametrize(("name", "package", "env_steps"), [("simple_tag", "mpe2", 800), ("battle", "magent2", 600)])
def test_the_shipped_configurations_train(name: str, package: str, env_steps: int, tmp_path: Path) -> None:
    pytest.importorskip(package)
    overrides = ("actors.num_envs=4", "learner.batch_rows=8", "evaluation.bots=[]", "wandb.mode=disabled")
    train(CONFIGS / f"{name}.yaml", overrides=overrides, run_dir=tmp_path / "run", limits=Limits(env_steps=env_steps))
    state = state_of(tmp_path / "run")
    assert len(set(state.teams)) == 2 < len(state.teams)
    assert state.totals.games > 0
    assert state.players["main-0"].trained_steps > 0
    assert verify_run(tmp_path / "run").problems == ()


def test_stages_and_teams_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        f"env: {{id: '{HERE}:Signals'}}\nnetwork: {{hidden: [8]}}\nactors: {{num_envs: 4}}\nwandb: {{mode: disabled}}\n"
        f"league: {{players: [{{gate: {{min_steps: {GATE['min_steps']}, timeout_steps: {GATE['timeout_steps']}}}}}]}}\n"
    )
    refused = league(
        "train",
        config,
        "--run-dir",
        tmp_path / "run",
        "-s",
        "learner.pipeline.stages=2",
        "-s",
        "learner.microbatches=2",
    )
    assert refused.code == 2
    assert "learner.pipeline.stages: 2 stages are for one network, but the 2 seat groups" in refused.err
    refused = league("train", config, "--run-dir", tmp_path / "run", "-s", "env.teams=[[red_*]]")
    assert refused.code == 2
    assert "env.teams: blue_0 in no team" in refused.err


FAST = ("--steps", "20", "--seconds", "0")


def test_check_env_shows_teams_and_networks(tmp_path: Path) -> None:
    tried = league("check-env", f"{HERE}:Signals", "--teams", "[[red_*], [blue_0]]", *FAST)
    assert tried.code == 0, tried.err
    assert "sides red_0+red_1, blue_0" in tried.out
    assert "networks of red: red_0, red_1; observation [2]; 2 numbered actions" in tried.out
    assert "suggest env.teams: [[red_*], [blue_0]]" in league("check-env", f"{HERE}:Signals", *FAST).out
    assert "--teams: 'red' is no list" in league("check-env", f"{HERE}:Signals", "--teams", "red", *FAST).err
