"""How strong the best policy of a run is after a fixed budget, against bots that it never trained with.

One run per training seed through `league train`, one after the other. The best snapshot by rating then plays the
likeliest action of one forward pass, without search, from random two-ply openings and from both seats, on an evaluation
seed that no run has seen.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from report import Report
from rich.console import Console
from run_to_end import run_to_end

from envs.protocol import EnvConfig
from league.eval.load import open_run
from league.eval.match import play_match
from league.eval.report import EvalReport, evaluate_run
from league.eval.tournament import bot_entrant

ROOT = Path(__file__).resolve().parent.parent
START_UP_S = 300.0
"""Allowed beside the budget: bringing up hosts, draining, final ratings."""


@dataclass(frozen=True)
class Game:
    """What is trained and whom the result meets. gates: bot -> least median score over the training seeds."""

    config: Path
    env: EnvConfig
    bots: tuple[str, ...]
    gates: Mapping[str, float]


GAMES = {
    "connect_four": Game(
        config=ROOT / "configs" / "connect_four.yaml",
        env=EnvConfig("connect_four"),
        bots=("random", "tactical", "mcts:25", "mcts:100"),
        gates={"tactical": 0.80, "mcts:100": 0.45},
    ),
}


def train(game: Game, *, seed: int, seconds: float, run_dir: Path) -> None:
    """Train one run to the end of its budget.

    Raises:
      SystemExit: the command failed or overran; its last lines are shown.
    """
    settings = [f"seed={seed}", f"budget.seconds={seconds:g}", "evaluation.games=2", "evaluation.bots=[random]"]
    command = [str(Path(sys.executable).with_name("league")), "train", str(game.config), "--run-dir", str(run_dir)]
    for setting in [*settings, "wandb.mode=disabled"]:
        command += ["-s", setting]
    log = run_dir.with_suffix(".log")
    run_to_end(command, log=log, timeout_s=seconds + START_UP_S)


def measure(
    game: Game, *, seeds: Sequence[int], seconds: float, games: int, evaluation_seed: int, folder: Path
) -> Report:
    """Train and evaluate each seed; collect the rows."""
    report = Report()
    scores: dict[str, list[float]] = {bot: [] for bot in game.bots}
    for seed in seeds:
        run_dir = folder / f"{game.env.id}-seed-{seed}"
        train(game, seed=seed, seconds=seconds, run_dir=run_dir)
        env_steps = open_run(run_dir).state.totals.env_steps
        report.add(f"seed {seed}: env steps in {seconds:g} s", env_steps, "steps")
        found = evaluate_run(run_dir, players=["best"], bots=game.bots, games=games, seed=evaluation_seed, greedy=True)
        _say(found)
        for bot in game.bots:
            score = found.row("best", bot).score
            scores[bot].append(score.value)
            report.add(f"seed {seed}: best v {bot}", score.value, "score")
    for bot in game.bots:
        gate = game.gates.get(bot)
        middle = statistics.median(scores[bot])
        report.add(f"best v {bot}, median of {len(seeds)} training seeds", middle, "score", at_least=gate)
        report.add(f"best v {bot}, worst of {len(seeds)} training seeds", min(scores[bot]), "score")
    for bot in game.bots:
        chance = play_match(
            game.env,
            [bot_entrant("random", seed=evaluation_seed + 1), bot_entrant(bot, seed=evaluation_seed)],
            games=games,
            seed=evaluation_seed,
        )
        report.add(f"random play v {bot}", chance.score().value, "score")
    return report


def _say(found: EvalReport) -> None:
    """The scores of one seed with their intervals, as soon as they are there."""
    console = Console()
    console.print(found.table())
    console.print(f"best is {found.players[0].reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=sorted(GAMES), default="connect_four")
    parser.add_argument("--seeds", default="0,1,2", help="training seeds, comma-separated")
    parser.add_argument("--seconds", type=float, default=180.0, help="training budget of each seed, wall time")
    parser.add_argument("--games", type=int, default=400, help="games of each match")
    parser.add_argument("--evaluation-seed", type=int, help="default: a new one, printed")
    parser.add_argument("--runs", type=Path, help="keep the run folders here (default: a folder that is removed)")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    evaluation_seed = options.evaluation_seed if options.evaluation_seed is not None else secrets.randbelow(2**31)
    print(f"evaluation seed {evaluation_seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="league-strength-") as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = measure(
            GAMES[options.game],
            seeds=seeds,
            seconds=options.seconds,
            games=options.games,
            evaluation_seed=evaluation_seed,
            folder=folder,
        )
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
