"""A population that is chosen by measurement, beside one that is always there and none: where it helps and elsewhere.

`python -m benchmarks.strength.population --runs DIR --json`. Each game is a study (`league study`) of three arms with
the defaults but for `league.population.choice`: *measured*, *always* and *never*. Its folder lies in `--runs`. The same
command continues what was interrupted, and more seeds may follow. `--results` keeps the values of each run.

Required: where opponents help, measured is within noise of always, and elsewhere within noise of never. Noise is twice
the standard error of the mean difference over the seeds, and at least what `least` says of the game. What opponents
bring, the difference of always and never, stands beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Report
from league.lab.study.referee import TournamentReferee
from league.lab.study.study import Study
from league.lab.study.study_config import ArmConfig, CompareConfig, StudyConfig
from league.lab.study.study_report import StudyReport
from league.lab.trials.process_runner import ProcessRunner
from league.store.storage import Storage

MEASURED, ALWAYS, NEVER = "measured", "always", "never"


@dataclass(frozen=True)
class Case:
    """A game of the table.

    Fields:
      game: its id. core_seconds: budget of each run. compare: how exports are judged, always those of `auto`.
      helps: whether opponents beside the newest weights help there. settings: of the game.
    """

    game: str
    core_seconds: float
    compare: CompareConfig
    helps: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


def _exact(least: float) -> CompareConfig:
    return CompareConfig(by="exact", least=least)


BOTS = CompareConfig(by="yardsticks", least=0.03, games=300, bots=("tactical", "mcts:25"))
CASES: Mapping[str, Case] = {
    "trap": Case("team_matrix", 40.0, _exact(0.05), helps=True),
    "random teams": Case("team_matrix", 40.0, _exact(0.05), helps=True, settings={"env.kwargs": {"seed": 1}}),
    "random teams of four actions": Case(
        "team_matrix", 40.0, _exact(0.05), helps=True, settings={"env.kwargs": {"seed": 2, "num_actions": 4}}
    ),
    "teams with one best choice": Case(
        "team_matrix", 40.0, _exact(0.05), settings={"env.kwargs": {"seed": 2, "num_actions": 2}}
    ),
    "connect_four, attacked": Case(
        "connect_four", 120.0, CompareConfig(by="exploiter", least=0.1, games=400, core_seconds=24.0), helps=True
    ),
    "kuhn": Case("kuhn_poker", 30.0, _exact(0.02)),
    "leduc": Case("leduc_poker", 60.0, _exact(0.1)),
    "blotto": Case("openspiel:blotto(coins=6,fields=3)", 40.0, _exact(0.02)),
    "tic_tac_toe": Case("tic_tac_toe", 30.0, BOTS),
    "othello": Case("othello", 60.0, BOTS),
    "cartpole": Case("gymnasium:CartPole-v1", 30.0, CompareConfig(by="yardsticks", least=25.0, games=100)),
}
"""Name -> game. Of a lone seat there is no opponent, so that all arms are one."""


def study_of(case: Case, seeds: Sequence[int]) -> StudyConfig:
    """The study of a game."""
    arms = [ArmConfig(arm, settings={"league.population.choice": arm}) for arm in (MEASURED, ALWAYS, NEVER)]
    settings = {"wandb.mode": "disabled", "evaluation.bots": [], "runtime.kind": "inprocess", **case.settings}
    return StudyConfig(
        arms=tuple(arms),
        core_seconds=case.core_seconds,
        base=case.game,
        settings=settings,
        seeds=tuple(seeds),
        compare=case.compare,
    )


def add_rows(report: Report, name: str, case: Case, values: Mapping[str, Mapping[int, float]]) -> None:
    """The rows of one game. values: arm -> seed -> its measure, of which more is better."""
    for arm, found in values.items():
        report.add(f"{name}: {arm}, mean of {len(found)} seeds", statistics.fmean(found.values()), case.compare.by)
    report.add(f"{name}: always less never", statistics.fmean(_differences(values, ALWAYS, NEVER)), case.compare.by)
    other = ALWAYS if case.helps else NEVER
    behind = [-difference for difference in _differences(values, MEASURED, other)]
    noise = noise_of(behind, least=case.compare.least)
    report.add(f"{name}: measured behind {other}, over noise", statistics.fmean(behind) / noise, "ratio", at_most=1.0)


def noise_of(differences: Sequence[float], *, least: float) -> float:
    """Twice the standard error of the mean of differences, or the least that matters where that is more."""
    if len(differences) < 2:
        return least
    return max(2.0 * statistics.stdev(differences) / math.sqrt(len(differences)), least)


def _differences(values: Mapping[str, Mapping[int, float]], one: str, two: str) -> list[float]:
    return [values[one][seed] - values[two][seed] for seed in values[one] if seed in values[two]]


def values_of(report: StudyReport) -> dict[str, dict[int, float]]:
    """Arm -> seed -> measure, of a study's report. Raises SystemExit where a run failed."""
    failed = [run.error for arm in report.arms for run in arm.runs if run.error]
    if failed:
        raise SystemExit(f"{report.folder}: {failed[0]}")
    return {arm.name: {run.seed: run.value for run in arm.runs} for arm in report.arms}


def measure(options: argparse.Namespace, *, runs: Path) -> Report:
    """Train and judge the games that are asked for."""
    report = Report()
    for name in options.games:
        case, folder = CASES[name], name.replace(" ", "-").replace(",", "")
        study = study_of(case, options.seeds)
        kept = None if options.results is None else options.results / f"{folder}.json"
        if options.stored:
            if kept is None or not kept.is_file():
                continue
            stored = json.loads(kept.read_text())["values"]
            values = {arm: {int(seed): value for seed, value in found.items()} for arm, found in stored.items()}
        else:
            referee = TournamentReferee(case.compare, jobs=options.jobs)
            runner = ProcessRunner(runs / folder / "logs")
            run = Study(runs / folder, study, runner=runner, referee=referee, show=lambda text, part: None)
            values = values_of(run.run(jobs=options.jobs))
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                content = {"core_seconds": case.core_seconds, "by": case.compare.by, "values": values}
                Storage().atomic_write_bytes(kept, json.dumps(content, indent=1).encode())
        add_rows(report, name, case, values)
        print(f"{name}: done", file=sys.stderr, flush=True)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.population", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--runs", type=Path, help="where studies are kept; a temporary folder if not given")
    parser.add_argument("--results", type=Path, help="where the values of each game are kept")
    parser.add_argument("--stored", action="store_true", help="show the values in --results and train nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as passing:
        report = measure(options, runs=options.runs or Path(passing))
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
