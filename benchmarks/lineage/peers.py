"""DQN and TD3 of other libraries by the yardstick of `q_learning`; run it by a Python that has them installed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.lineage import sb3, tianshou_dqn
from benchmarks.report import Report

SEEDS = (0, 1)
DQN_CORE_S, TD3_CORE_S = 180.0, 300.0


def peers(folder: Path) -> Report:
    """The rows of this part; not measured where a library is not installed."""
    del folder
    report = Report()
    for seed in SEEDS:
        reached = sb3.dqn(seed, core_s=DQN_CORE_S) if sb3.is_installed() else None
        report.add(f"sb3 DQN on CartPole, seed {seed}: core-seconds to 475, within {DQN_CORE_S:g}", reached, "s")
    for seed in SEEDS:
        reached = tianshou_dqn.dqn(seed, core_s=DQN_CORE_S) if tianshou_dqn.is_installed() else None
        report.add(f"tianshou DQN on CartPole, seed {seed}: core-seconds to 475, within {DQN_CORE_S:g}", reached, "s")
    for seed in SEEDS:
        score = sb3.td3(seed, core_s=TD3_CORE_S) if sb3.is_installed() else None
        report.add(f"sb3 TD3 on Pendulum, seed {seed}: return after {TD3_CORE_S:g} core-seconds", score, "")
    return report
