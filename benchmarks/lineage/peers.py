"""Other libraries: DQN, TD3 and IMPALA by the yardstick of `q_learning`, AlphaZero by that of `search`.

Run it by a Python that has them installed; each is measured where it is.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.lineage import open_spiel_alpha_zero, rllib, sb3, tianshou_dqn
from benchmarks.report import Report

SEEDS = (0, 1)
DQN_CORE_S, TD3_CORE_S, SEARCH_CORE_S = 180.0, 300.0, 120.0


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
    for name in ("DQN", "IMPALA"):
        for seed in SEEDS:
            reached = rllib.core_s_to_return(name, seed, core_s=DQN_CORE_S) if rllib.is_installed() else None
            report.add(
                f"rllib {name} on CartPole, seed {seed}: core-seconds to 475, within {DQN_CORE_S:g}", reached, "s"
            )
    for seed in SEEDS:
        score = sb3.td3(seed, core_s=TD3_CORE_S) if sb3.is_installed() else None
        report.add(f"sb3 TD3 on Pendulum, seed {seed}: return after {TD3_CORE_S:g} core-seconds", score, "")
    found = open_spiel_alpha_zero.alpha_zero(core_s=SEARCH_CORE_S) if open_spiel_alpha_zero.is_installed() else None
    name = f"open_spiel alpha_zero on Connect Four, {SEARCH_CORE_S:g} core-seconds"
    report.add(f"{name}: plies", None if found is None else found.plies_per_core_s, "/core-s")
    report.add(f"{name}: critical positions kept", None if found is None else found.kept, "")
    return report
