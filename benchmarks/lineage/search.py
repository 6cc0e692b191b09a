"""Search on Connect Four: positions and simulations per core-second, and how well a trained network plays with it.

`python -m benchmarks.lineage --only search` measures the speed. `python -m benchmarks.lineage.search --train RUN`
trains `configs/lineage/gumbel_alphazero.yaml` for 1,800 core-seconds, continues a run that was stopped, and then plays.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.strength.positions import moves_keep, stored_positions
from benchmarks.strength.runs import core_budget, finished_run, wall_limit
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs
from league.agents.acting.search.config import SearchConfig
from league.agents.acting.search.search_policy import SearchPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.games.connect_four import ConnectFour
from league.envs.protocol import EnvConfig
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.loading import load_from_run, open_run

MANY, FEW_SIMULATIONS, SIMULATIONS, ALONE = 1024, 16, 50, 100
CONFIG = Path(__file__).resolve().parents[2] / "configs" / "lineage" / "gumbel_alphazero.yaml"
CORE_SECONDS, GAMES, YARDSTICK = 1_800.0, 100, "mcts:1000"


@dataclass(frozen=True)
class Rates:
    """Per core-second: moves that were searched, and simulations that were made for them."""

    positions: float
    simulations: float


def search_rows(folder: Path) -> Report:
    """Positions and simulations per core-second, of many games and of one."""
    del folder
    report = Report()
    for reuse, note in ((False, "a new tree for each move, target 10,000"), (True, "trees kept between moves")):
        found = rates_of(MANY, SearchConfig(simulations=FEW_SIMULATIONS, reuse=reuse), turns=12)
        bound = None if reuse else 6_000.0
        report.add(f"{MANY:,} games x {FEW_SIMULATIONS}, {note}", found.positions, "positions/core-s", at_least=bound)
    found = rates_of(MANY, SearchConfig(simulations=SIMULATIONS, reuse=False), turns=4)
    name, unit = f"{MANY:,} games x {SIMULATIONS}, target 200,000", "simulations/core-s"
    report.add(name, found.simulations, unit, at_least=120_000.0)
    found = rates_of(1, SearchConfig(simulations=ALONE, reuse=False), turns=30)
    report.add(f"one game x {ALONE}, target 12,000", found.simulations, unit, at_least=4_000.0)
    return report


def rates_of(num_games: int, config: SearchConfig, *, turns: int) -> Rates:
    """Search every move of so many games for some turns, as for learning; games that end begin again."""
    env = ConnectFour(num_envs=num_games)
    network = build_network(env.spec, NetworkConfig(hidden=(128, 128)), seed=0)
    policy = SearchPolicy(NetworkPolicy(network), config, explores=True)
    rng, turn, slots = np.random.default_rng(0), env.reset(0), np.arange(num_games)
    none, plies = np.zeros((num_games, 0), np.float32), np.zeros(num_games, np.int64)
    seconds, first = 0.0, 0
    for number in range(turns + 2):
        begun = time.process_time()
        turn = env.step(policy.act(ActInputs(env, turn, slots, none, plies=plies), rng).actions)
        plies = np.where(turn.ended, 0, plies + 1)
        if number < 2:  # the first turns build kernels
            first = policy.num_simulations
            continue
        seconds += time.process_time() - begun
    return Rates(num_games * turns / seconds, (policy.num_simulations - first) / seconds)


def strength_rows(run_dir: Path, *, seed: int, core_seconds: float) -> Report:
    """Train to the budget, or continue what was stopped, and play with the newest weights."""
    settings = [core_budget(core_seconds), f"seed={seed}"]
    finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=wall_limit(core_seconds))
    policy = load_from_run(open_run(run_dir), "last")
    positions, report = stored_positions(), Report()
    raw = moves_keep(policy.as_seat_policy(greedy=True), positions)
    report.add("critical positions kept by the network alone", raw, "")
    searching = policy.as_seat_policy(search=ALONE)
    report.add(f"critical positions kept with {ALONE} simulations", moves_keep(searching, positions), "", at_least=0.90)
    bot = bot_policy(YARDSTICK, seed=0)
    score = Match(EnvConfig("connect_four"), [searching, bot], seed=0, opening_plies=2).play(GAMES).score()
    report.add(f"score against {YARDSTICK} with {ALONE} simulations, {GAMES} games", score.value, "", at_least=0.85)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, metavar="RUN", required=True, help="folder of the run; may be begun")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--core-seconds", type=float, default=CORE_SECONDS)
    options = parser.parse_args()
    report = strength_rows(options.train, seed=options.seed, core_seconds=options.core_seconds)
    report.print(sys.stdout, as_json=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
