"""Players of action values in a league: Ape-X DQN on tic-tac-toe, and DQN beside V-trace on Kuhn poker.

A DQN nearly always plays one action. In a game of hidden cards that can be exploited, however well it is learnt; the
mean of its snapshots mixes as those of fictitious play do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report
from league.agents.torch_runtime import prepare_process
from league.config.loading import load_config
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.exact.behaviours import Fields, PolicyFunction, members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import small_game
from league.policies.loading import OpenRun, load_from_run, load_selection, open_run
from league.policies.select import Selection
from league.run import launch
from league.run.budget import Limits

CONFIGS = Path(__file__).parents[2] / "configs"
GAMES, GAME_SEED = 400, 4242
TIC_TAC_TOE_CORE_S, KUHN_CORE_S = 120, 60
UNIFORM = 0.9167
"""NashConv of uniform play in Kuhn poker, in chips."""
VISIT_S = 600.0
"""Longest time to visit every history of tic-tac-toe, which takes 14 core-seconds."""
GATE = {"min_steps": 50_000, "timeout_steps": 100_000}
PLAYED: dict[str, Any] = {
    "role": "main_agent",
    "matchmaker": {"self_play": 0.6, "pfsp": 0.4, "verification": 0.0, "weighting": "uniform"},
    "opponents_per_lease": 2,
    "gate": GATE,
}
KUHN_DQN: dict[str, Any] = {
    "network": {"head": {"kind": "q_values", "dueling": True, "epsilon": 0.02}},
    "learner": {
        "algorithm": {"kind": "dqn", "target": "double", "n_steps": 3},
        "row_source": {"kind": "replay", "capacity": 16_384, "min_rows": 64, "samples_per_insert": 2, "alpha": 0.0},
        "batch_rows": 64,
        "learning_rate": 1e-3,
        "learning_rate_end": 1e-4,
        "target_every": 100,
        "target_rate": 1.0,
        "max_grad_norm": 40,
    },
    "actors": {"acting": {"kind": "epsilon_greedy", "epsilon": 0.4, "alpha": 7}},
}
"""Sections of the second player's own; the first one's are those of configs/kuhn.yaml."""
KUHN_PLAYERS = [{**PLAYED, "name": "vtrace"}, {**PLAYED, "name": "dqn", **KUHN_DQN}]


def q_league(folder: Path) -> Report:
    """The rows of this part."""
    prepare_process()
    report = Report()
    tic_tac_toe(report, folder / "tic-tac-toe")
    kuhn(report, folder / "kuhn")
    return report


def tic_tac_toe(report: Report, run_dir: Path) -> None:
    """Scores of the greedy main agent against bots, from both seats and from the empty board."""
    run = _trained("lineage/apex_dqn.yaml", run_dir, f"budget.core_seconds={TIC_TAC_TOE_CORE_S}")
    state, policy = run.state, load_from_run(run, "main-0", greedy=True)
    snapshots = sum(info.player == "main-0" for info in state.snapshots.values())
    report.add("Ape-X DQN in a league on tic-tac-toe: snapshots of the main agent", snapshots, "", at_least=2)
    report.add("the same: decisions of the main agent learnt from", state.players["main-0"].trained_steps, "")
    ((_, noisy),) = members_of(policy)
    played = {"uniform play": _uniform, "the main agent": noisy, "its likeliest actions": _likeliest(noisy)}
    for name, exact in played.items():
        exploited = small_game(run.env, limit_s=VISIT_S).nash_conv(exact)
        report.add(f"the same: exact NashConv of {name}", exploited, "of 2")
    for bot, least in (("random", 0.9), ("tactical", None), ("minimax", None)):
        players = [policy.as_seat_policy(), bot_policy(bot, seed=GAME_SEED)]
        wins, draws, losses = Match(run.env, players, seed=GAME_SEED, opening_plies=0).play(GAMES).counts()
        score = (wins + 0.5 * draws) / (wins + draws + losses)
        report.add(f"the same: score against {bot}", score, "of 1", at_least=least)
        report.add(f"the same: games lost to {bot}", losses / (wins + draws + losses), "of 1")


def _uniform(fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.float64]:
    del fields
    shares: NDArray[np.float64] = legal / legal.sum(1, keepdims=True)
    return shares


def _likeliest(policy: PolicyFunction) -> PolicyFunction:
    """The policy that always takes the likeliest action of another one."""
    return lambda fields, legal: np.eye(legal.shape[1])[policy(fields, legal).argmax(1)]


def kuhn(report: Report, run_dir: Path) -> None:
    """NashConv of both players, of the newest weights and of the mean over their newer snapshots."""
    players = f"league.players={json.dumps(KUHN_PLAYERS)}"
    run = _trained("kuhn.yaml", run_dir, f"budget.core_seconds={KUHN_CORE_S}", players)
    for player in ("vtrace-0", "dqn-0"):
        newest = nash_conv(run.env, members_of(load_from_run(run, player)))
        bound = UNIFORM if player == "vtrace-0" else None
        report.add(f"Kuhn, one league: NashConv of {player}", newest, "chips", at_most=bound)
        mean, count = _mean_of_snapshots(run, player)
        report.add(f"Kuhn, one league: NashConv of the mean of {count} newer snapshots of {player}", mean, "chips")
        steps = run.state.players[player].trained_steps
        report.add(f"Kuhn, one league: decisions learnt from by {player}", steps, "")


def _mean_of_snapshots(run: OpenRun, player: str) -> tuple[float, int]:
    """NashConv of the uniform mixture over the newer half of a player's snapshots, and how many they are."""
    made = [info for info in run.state.snapshots.values() if info.player == player]
    newer = made[len(made) // 2 :]
    policies = [load_selection(run, Selection(info.snapshot_id, ((1.0, info),), "")) for info in newer]
    return nash_conv(run.env, [(1.0, members_of(policy)[0][1]) for policy in policies]), len(newer)


def _trained(name: str, run_dir: Path, *settings: str) -> OpenRun:
    source = CONFIGS / name
    config = load_config(source, overrides=["evaluation.bots=[]", *settings])
    launch.start(config, {}, source=source, run_dir=run_dir, limits=Limits())
    return open_run(run_dir)
