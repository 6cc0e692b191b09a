"""A2C of Stable-Baselines3 on CartPole, with its own defaults, for a comparison in one process on one core."""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

from benchmarks.report import Report

GAMES = 16
WARM_STEPS, STEPS = 2_000, 20_000
RETURN = 475.0


def add_rows(report: Report, *, budget_core_s: float) -> None:
    """Its speed with 16 games x 5 steps, and its core-seconds to the return; not measured where it is not installed."""
    speed, core_s = None, None
    if importlib.util.find_spec("stable_baselines3") is not None:
        model = _model()
        model.learn(WARM_STEPS)
        begun = time.process_time()
        model.learn(STEPS)
        speed = STEPS / (time.process_time() - begun)
        core_s = _core_s_to_return(budget_core_s)
    report.add(f"sb3 a2c: env steps, {GAMES} games x 5 steps", speed, "/core-s")
    report.add(f"sb3 a2c: CartPole to {RETURN:g}, within {budget_core_s:g}", core_s, "core-s")


def _model() -> Any:
    importlib.import_module("torch").set_num_threads(1)
    vec_env = importlib.import_module("stable_baselines3.common.env_util").make_vec_env("CartPole-v1", n_envs=GAMES)
    return importlib.import_module("stable_baselines3").A2C("MlpPolicy", vec_env, n_steps=5, device="cpu", seed=0)


def _core_s_to_return(budget_core_s: float) -> float | None:
    model, begun = _model(), time.process_time()
    reached = []

    def goes_on(local: dict[str, Any], shared: dict[str, Any]) -> bool:
        del shared
        newest = local["self"].ep_info_buffer
        if len(newest) >= 100 and sum(episode["r"] for episode in newest) / len(newest) >= RETURN:
            reached.append(time.process_time() - begun)
        return not reached and time.process_time() - begun < budget_core_s

    model.learn(10**9, callback=goes_on)
    return reached[0] if reached else None
