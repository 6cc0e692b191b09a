"""Stable-Baselines3 in one process on one core: A2C with its own defaults, DQN and TD3 with the settings of its zoo."""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

from benchmarks.lineage.judged_games import JudgedGames
from benchmarks.report import Report

GAMES = 16
WARM_STEPS, STEPS = 2_000, 20_000
CARTPOLE, RETURN = "CartPole-v1", 475.0
ENDLESS = 10**9
DQN: dict[str, Any] = {
    "learning_rate": 2.3e-3,
    "batch_size": 64,
    "buffer_size": 100_000,
    "learning_starts": 1_000,
    "gamma": 0.99,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16 * 50_000 / ENDLESS,
    "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}
"""Source: RL Baselines3 Zoo, hyperparams/dqn.yml, CartPole-v1; exploration ends after 16 % of its 50,000 steps."""
TD3: dict[str, Any] = {
    "gamma": 0.98,
    "buffer_size": 200_000,
    "learning_starts": 10_000,
    "gradient_steps": 1,
    "train_freq": 1,
    "learning_rate": 1e-3,
    "policy_kwargs": {"net_arch": [400, 300]},
}
"""Source: RL Baselines3 Zoo, hyperparams/td3.yml, Pendulum-v1; its action noise is normal with deviation 0.1."""


def is_installed() -> bool:
    """True where it can be imported."""
    return importlib.util.find_spec("stable_baselines3") is not None


def add_a2c(report: Report, *, budget_core_s: float) -> None:
    """Its speed with 16 games x 5 steps, and its core-seconds to the return; not measured where it is not installed."""
    speed, core_s = None, None
    if is_installed():
        model = _a2c()
        model.learn(WARM_STEPS)
        begun = time.process_time()
        model.learn(STEPS)
        speed = STEPS / (time.process_time() - begun)
        core_s = _core_s_to_return(budget_core_s)
    report.add(f"sb3 a2c: env steps, {GAMES} games x 5 steps", speed, "/core-s")
    report.add(f"sb3 a2c: CartPole to {RETURN:g}, within {budget_core_s:g}", core_s, "core-s")


def dqn(seed: int, *, core_s: float) -> float | None:
    """Core-seconds of DQN to the return on CartPole, judged by greedy games; None where the budget does not do."""
    return _judged("DQN", CARTPOLE, seed, JudgedGames(CARTPOLE, core_s=core_s, enough=RETURN), DQN).reached_s


def td3(seed: int, *, core_s: float) -> float:
    """Return of greedy games on Pendulum after so many core-seconds of TD3."""
    np = importlib.import_module("numpy")
    noise = importlib.import_module("stable_baselines3.common.noise").NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
    games = JudgedGames("Pendulum-v1", core_s=core_s)
    return _judged("TD3", "Pendulum-v1", seed, games, {**TD3, "action_noise": noise}).score


def _judged(name: str, env_id: str, seed: int, games: JudgedGames, settings: dict[str, Any]) -> JudgedGames:
    importlib.import_module("torch").set_num_threads(1)
    learner = getattr(importlib.import_module("stable_baselines3"), name)
    model = learner("MlpPolicy", env_id, device="cpu", seed=seed, **settings)

    def continues(local: dict[str, Any], shared: dict[str, Any]) -> bool:
        del local, shared
        return not games.is_over(lambda seen: model.predict(seen, deterministic=True)[0])

    model.learn(ENDLESS, callback=continues)
    return games


def _a2c() -> Any:
    importlib.import_module("torch").set_num_threads(1)
    vec_env = importlib.import_module("stable_baselines3.common.env_util").make_vec_env(CARTPOLE, n_envs=GAMES)
    return importlib.import_module("stable_baselines3").A2C("MlpPolicy", vec_env, n_steps=5, device="cpu", seed=0)


def _core_s_to_return(budget_core_s: float) -> float | None:
    model, begun = _a2c(), time.process_time()
    reached = []

    def continues(local: dict[str, Any], shared: dict[str, Any]) -> bool:
        del shared
        newest = local["self"].ep_info_buffer
        if len(newest) >= 100 and sum(episode["r"] for episode in newest) / len(newest) >= RETURN:
            reached.append(time.process_time() - begun)
        return not reached and time.process_time() - begun < budget_core_s

    model.learn(ENDLESS, callback=continues)
    return reached[0] if reached else None
