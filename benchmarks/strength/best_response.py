"""Learnt best responses beside exact ones: whether a fresh player's gain orders policies as NashConv does.

`python -m benchmarks.strength.best_response --runs DIR --results DIR --json`. For each game one run is trained, and its
snapshots and random mixtures of them are the policies. A fresh player trains against each for `--core-seconds`. Its
gain is its mean return less that of its prey, over both seats. It stands beside the exact NashConv, which it cannot
pass but by chance. Finished runs in `--runs` are used again, and figures in `--results` are not found again.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.strength.robustness import main_snapshots
from benchmarks.strength.runs import ROOT, core_budget, finished_run, stored_or_found, wall_limit
from league.config.run_config import BudgetConfig
from league.core.metagame.ratings import INTERVAL_Z
from league.lab.exploit.best_response import QUIET, reply_settings
from league.lab.exploit.exploit import exploit_run
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.loading import OpenRun, load_from_run, open_run

GAMES: Mapping[str, Path] = {name: ROOT / "configs" / f"{name}.yaml" for name in ("kuhn", "leduc")}
POLICIES = 15
"""Of each game; two in five are mixtures."""
MEMBERS = (2, 4)
"""Least and most snapshots of a mixture."""
MATCH_GAMES = 4_000
SEED = 20_261_128
CORRELATION_REQUIRED = 0.8


def measure(names: Sequence[str], options: argparse.Namespace, *, runs: Path) -> Report:
    """Train, exploit and compare. names: of the games."""
    report = Report()
    results: Path = options.results or runs
    results.mkdir(parents=True, exist_ok=True)
    for name in names:
        run_dir = runs / f"{name}-prey"
        settings = ["seed=0", core_budget(options.train_core_seconds), "evaluation.bots=[]"]
        settings += ["runtime={kind: inprocess, snapshots_per_budget: 20}"]
        finished_run(GAMES[name], run_dir=run_dir, settings=settings, timeout_s=wall_limit(options.train_core_seconds))
        run = open_run(run_dir)
        learnt, exact, errors = [], [], []
        for number, player in enumerate(policies_of(run, options.policies)):
            path = results / f"{name}-{number:02d}.json"
            conditions = {"settings": settings, "player": player, "core_seconds": options.core_seconds}
            figures = stored_or_found(
                path,
                conditions=conditions,
                find=functools.partial(_figures, run, player, number, options),
                replace=False,
            )
            learnt.append(figures["learnt"])
            exact.append(figures["exact"])
            errors.append(figures["error"])
        add_rows(report, name, np.array(learnt), np.array(exact), np.array(errors))
    return report


def policies_of(run: OpenRun, number: int) -> list[str]:
    """So many policies as `--player` takes them: evenly spread snapshots, then random mixtures of snapshots."""
    names = [snapshot.snapshot_id for snapshot in main_snapshots(run)]
    places = np.unique(np.linspace(0, len(names) - 1, round(0.6 * number)).round().astype(int))
    rng = np.random.default_rng(SEED)
    mixtures = []
    for _ in range(number - len(places)):
        chosen = rng.choice(
            len(names), size=min(int(rng.integers(MEMBERS[0], MEMBERS[1] + 1)), len(names)), replace=False
        )
        mixtures.append("+".join(f"{names[place]}*{rng.integers(1, 5)}" for place in chosen))
    return [*(names[place] for place in places), *mixtures]


def _figures(run: OpenRun, player: str, number: int, options: argparse.Namespace) -> dict[str, float]:
    """Exact NashConv of a policy, and the margin of a fresh player with half its 95 % interval."""
    assert run.config is not None, "the folder of a run"
    exact = nash_conv(run.env, members_of(load_from_run(run, player)))
    report = exploit_run(
        run.path,
        player=player,
        run_dir=run.path.with_name(f"{run.path.name}-exploiter-{number:02d}"),
        budget=BudgetConfig(core_seconds=options.core_seconds),
        overrides=(*QUIET, *reply_settings(run.config)),
        games=MATCH_GAMES,
        seed=SEED,
    )
    if report is None:
        raise SystemExit("interrupted: run the same command again.")
    margin = report.match.margin
    assert margin is not None
    print(f"{run.path.name}, {player}: exact {exact:.4f}, learnt {margin.value:.4f}", flush=True)
    return {"exact": exact, "learnt": margin.value, "error": margin.high - margin.value}


def add_rows(report: Report, name: str, learnt: np.ndarray, exact: np.ndarray, errors: np.ndarray) -> None:
    """The rows of one game. learnt, exact, errors: float64 [P], of each policy."""
    count = len(exact)
    report.add(f"{name}: exact NashConv, least of {count} policies", float(exact.min()), "a game")
    report.add(f"{name}: exact NashConv, largest", float(exact.max()), "a game")
    report.add(f"{name}: learnt gain over exact, mean", float((learnt / exact).mean()), "ratio")
    above = float(((learnt - exact) / np.maximum(errors / INTERVAL_Z, 1e-9)).max())
    report.add(f"{name}: most that a learnt gain passes the exact one by", above, "standard errors", at_most=4.0)
    found = correlation(learnt, exact)
    report.add(f"{name}: correlation of learnt and exact", found, "", at_least=CORRELATION_REQUIRED)
    report.add(f"{name}: the same of their ranks", correlation(ranks(learnt), ranks(exact)), "")


def ranks(values: np.ndarray) -> np.ndarray:
    """float64 [P], the place of each value in their order, from 0."""
    return np.argsort(np.argsort(values)).astype(np.float64)


def correlation(one: np.ndarray, two: np.ndarray) -> float:
    """Pearson's, of [P] and [P]; of ranks it is Spearman's."""
    return float(np.corrcoef(one, two)[0, 1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.best_response", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--policies", type=int, default=POLICIES, help="of each game")
    parser.add_argument("--core-seconds", type=float, default=6.0, help="of each fresh player")
    parser.add_argument("--train-core-seconds", type=float, default=40.0, help="of each run that is exploited")
    parser.add_argument("--runs", type=Path, help="where run folders are kept; a temporary folder if not given")
    parser.add_argument("--results", type=Path, help="where figures are kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as passing:
        report = measure(options.games, options, runs=options.runs or Path(passing))
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
