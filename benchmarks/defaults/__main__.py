"""The shipped defaults on public games of many kinds: the league against its controls at equal processor seconds.

A run is given the id of its game with its kwargs, the budget and a seed, and nothing else; budgets of 60 core-seconds
are trained in one process. Populations: the defaults ("league"); the preset `self_play` at the same defaults
("latest"); half of the games against the uniform past ("half", for the longest budget); the tuned configuration of this
repository, where there is one ("tuned").

Judged by NashConv where the whole game can be solved; else by scores against bots, the worst case over the own past,
the control, and an exploiter. The exploiter starts from random weights and has a fifth of the budget. Games of one seat
are judged by returns. Every export is judged, and uniform play beside them.

Run folders and figures are kept under the digest of the rules that made them: finished runs are used again,
interrupted ones resumed, and figures of other rules only shown by `--rules`. `--set`, `--games`, `--seeds`,
`--budgets` and `--populations` choose a part; bounds that lack a run are not met. With `--stored` nothing is trained.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.defaults import games, measure, required, table
from benchmarks.defaults.games import ALL, SETS, Game
from benchmarks.defaults.judge import Evaluation
from benchmarks.defaults.measure import HALF, LATEST, LEAGUE, TUNED, Job, Place
from benchmarks.defaults.rules import rules_digest
from benchmarks.report import Report
from benchmarks.strength.runs import ROOT
from league.processes.child_process import end_with_parent

POPULATIONS = (LEAGUE, LATEST, HALF, TUNED)
RESULTS = ROOT / "benchmarks" / "results" / "defaults"
EVALUATION_SEED = 771203

Figures = dict[Job, dict[str, float]]


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """The runs that were asked for: cheapest budget first, the populations of a game and seed side by side.

    A core-second is worth a fourth less on a machine that is busy, so runs that are compared run at the same time.
    """
    asked = [
        Job(core_seconds, name, population, seed)
        for core_seconds in options.budgets
        for name in games.chosen(options.games, SETS[options.set])
        if core_seconds != required.LONG_BUDGET or ALL[name].is_long
        for population in options.populations
        if population != TUNED or ALL[name].tuned is not None
        if population != HALF or (ALL[name].is_long and core_seconds == required.LONG_BUDGET)
        for seed in options.seeds
    ]
    return sorted(asked, key=lambda job: (job.core_seconds, job.seed, job.game, job.population))


def find_all(jobs: Sequence[Job], place: Place, evaluation: Evaluation, *, workers: int) -> list[str]:
    """Train and judge what is not known yet; returns a sentence for each failure."""
    failures = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        started: dict[Future[dict[str, float]], str] = {}
        for name in dict.fromkeys(job.game for job in jobs):
            started[pool.submit(measure.reference, name, place, evaluation)] = f"{name}-uniform"
        for job in jobs:
            started[pool.submit(measure.measure, job, place, evaluation)] = job.name
        for future in as_completed(started):
            error = future.exception()
            if error is not None:
                failures.append(f"{started[future]}: {type(error).__name__}: {error}")
                print(failures[-1], flush=True)
        pairs = [job for job in jobs if job.population == LEAGUE and measure.is_compared(ALL[job.game])]
        for job in pairs:
            control = Job(job.core_seconds, job.game, LATEST, job.seed)
            if all(measure.path_of(each, place).is_file() for each in (job, control)):
                pool.submit(measure.compare, job, place, evaluation).result()
    return failures


def known_figures(
    place: Place, evaluation: Evaluation, known: Mapping[str, Game], *, budgets: Sequence[float]
) -> tuple[Figures, dict[str, dict[str, float]]]:
    """Stored figures of every run of these games, and of uniform play."""
    figures: Figures = {}
    for core_seconds in budgets:
        for name in required.games_of(core_seconds, known):
            for job in (Job(core_seconds, name, word, seed) for word in POPULATIONS for seed in required.SEEDS):
                found = measure.stored(measure.path_of(job, place), measure.conditions_of(job, place, evaluation))
                if found is not None:
                    figures[job] = found | measure.stored_games(job, place, evaluation)
    return figures, {name: measure.stored_reference(name, place, evaluation) for name in known}


def report_of(
    figures: Figures, uniform: dict[str, dict[str, float]], known: Mapping[str, Game], *, budgets: Sequence[float]
) -> Report:
    """Every figure, and the bounds."""
    report = Report()
    for name, found in uniform.items():
        for figure, value in found.items():
            report.add(f"{name}: uniform play: {figure}", value, "")
    for job, found in sorted(figures.items()):
        for figure, value in found.items():
            report.add(
                f"{job.core_seconds:g} core-seconds: {job.game}, {job.population}, seed {job.seed}: {figure}", value, ""
            )
    required.add_rows(report, figures, uniform, known, budgets=budgets)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    evaluation = Evaluation(options.matches, options.evaluation_seed)
    digests = options.rules or (rules_digest(),)
    places = [
        Place(options.runs.resolve() / digest, options.results.resolve() / digest, tuple(options.settings))
        for digest in digests
    ]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers, which start later
    print(f"rules {', '.join(digests)}", flush=True)
    failures = []
    if not options.stored:
        failures = find_all(jobs_of(options), places[0], evaluation, workers=options.jobs)
    known = SETS[options.set]
    budgets = sorted({*required.BUDGETS, required.LONG_BUDGET, *options.budgets})
    figures: Figures = {}
    uniform: dict[str, dict[str, float]] = {}
    for place in reversed(places):  # of a run that several have, that of the first counts
        found, references = known_figures(place, evaluation, known, budgets=budgets)
        figures.update(found)
        uniform.update({name: one for name, one in references.items() if one or name not in uniform})
    report = report_of(figures, uniform, known, budgets=budgets)
    if options.readme is not None:
        named = ", ".join(digests)
        table.write_into(options.readme, table.tables(figures, uniform, known, budgets=budgets, rules=named))
    report.print(sys.stdout, as_json=options.json)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if report.failed or failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.defaults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=SETS, default="public", help="games that shaped the rules, or that did not")
    parser.add_argument("--games", help="comma-separated names of games of the set (default: all)")
    parser.add_argument("--seeds", type=_whole, default=required.SEEDS, help="training seeds, comma-separated")
    parser.add_argument(
        "--budgets", type=_numbers, default=(*required.BUDGETS, required.LONG_BUDGET), help="core-seconds"
    )
    parser.add_argument("--populations", type=_populations, default=POPULATIONS, help=", ".join(POPULATIONS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--matches", type=int, default=400, help="games of each match")
    parser.add_argument("--evaluation-seed", type=int, default=EVALUATION_SEED)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "defaults", help="folder of the run folders")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the figures")
    parser.add_argument(
        "-s", "--settings", action="append", default=[], help="key=value for every run, for trials: needs a --results"
    )
    parser.add_argument("--stored", action="store_true", help="train nothing: what is missing is said to be")
    parser.add_argument(
        "--rules",
        type=lambda text: tuple(text.split(",")),
        help="digests of the rules whose figures are shown, the preferred first (default: today's)",
    )
    parser.add_argument("--readme", type=Path, help="write the tables into this file, between their marks")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    return parser


def _whole(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _populations(text: str) -> tuple[str, ...]:
    words = tuple(part.strip() for part in text.split(","))
    unknown = [word for word in words if word not in POPULATIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown populations {', '.join(unknown)}; known: {', '.join(POPULATIONS)}")
    return words


if __name__ == "__main__":
    sys.exit(main())
