"""The process of a trial: `python -m league.lab.trials.trial_process`, with its job as JSON on the standard input.

Trains the run up to the rung, measures it, and writes the result. It ends in order when its parent dies.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec

from league.config.run_config import BudgetConfig
from league.envs.protocol import EnvError
from league.errors import LeagueError
from league.lab.trials.objective import TrialObjective
from league.lab.trials.trial_job import TrialJob, TrialResult
from league.processes.child_process import end_with_parent
from league.run.budget import BUDGET, Limits
from league.run.launch import has_spent_its_budget, resume, spent_by, train
from league.store.run_folder import RunFolder
from league.store.storage import Storage

SLACK = 0.02
"""Part of a rung's training that may be missing: a run stops between two leases."""


def train_to(job: TrialJob) -> bool:
    """Train up to the rung; False where it was interrupted before."""
    run = Path(job.run)
    is_last = job.until >= job.core_seconds
    reason = ""
    if not RunFolder(run).config_path.is_file():
        limits = Limits() if is_last else Limits(core_seconds=job.until)
        reason = train(job.source, overrides=_overrides(job), run_dir=run, limits=limits).reason
    elif not has_spent_its_budget(RunFolder.open(run)) and (is_last or _missing(job) > 0.0):
        limits = Limits() if is_last else Limits(core_seconds=job.until - spent_by(run).core_seconds)
        reason = resume(run, limits=limits).reason
    return reason == BUDGET or has_spent_its_budget(RunFolder.open(run)) or (not is_last and _missing(job) <= 0.0)


def measure(job: TrialJob) -> tuple[float, str]:
    """The value of the objective, and a line on it."""
    objective, run = job.objective, Path(job.run)
    if objective.kind == "exact":
        return _exact(run)
    if objective.kind == "exploiter":
        return _exploiter(run, job.rung, objective, seed=job.seed)
    if objective.kind == "column":
        return _column(run, objective.column)
    return _yardsticks(run, objective, seed=job.seed)


def _column(run: Path, column: str) -> tuple[float, str]:
    from league.lab.diff.runs import COSTS, costs_of
    from league.run.monitor.jsonl_sink import last_value

    folder = RunFolder.open(run)
    value = costs_of(folder)[column] if column in COSTS else last_value(folder.metrics_path, column)
    if value is None:
        raise LeagueError(f"{run} has no column {column}: metrics.jsonl names them, and {', '.join(COSTS)} are known.")
    return value, column


def _yardsticks(run: Path, objective: TrialObjective, *, seed: int) -> tuple[float, str]:
    from league.judge.matches.evaluation import evaluate_run

    report = evaluate_run(run, players=("auto",), bots=objective.bots, games=objective.games, seed=seed)
    if report.returns:
        return report.returns[0].mean_return.value, f"mean return of {report.returns[0].games:,} games"
    if not report.pairs:
        raise LeagueError(f"none of the bots {', '.join(objective.bots)} can play {report.env_id}: give --bots.")
    scores = {row.away: row.score.value for row in report.pairs}
    return sum(scores.values()) / len(scores), ", ".join(f"{bot} {score:.2f}" for bot, score in scores.items())


def _exploiter(run: Path, rung: int, objective: TrialObjective, *, seed: int) -> tuple[float, str]:
    from league.lab.exploit.exploit import exploit_run

    report = exploit_run(
        run,
        player="auto",
        run_dir=run.with_name(f"{run.name}-exploiter-{rung}"),
        budget=BudgetConfig(core_seconds=objective.core_seconds),
        games=objective.games,
        seed=seed,
    )
    if report is None:
        raise InterruptedError
    return 1.0 - report.match.score.value, f"a new exploiter scores {report.match.score.value:.3f}"


def _exact(run: Path) -> tuple[float, str]:
    from league.policies.exact.behaviours import members_of
    from league.policies.exact.exploitability import nash_conv
    from league.policies.exact.exports import ExportSearch, open_to_play
    from league.policies.loading import load_selection

    opened = open_to_play(run, ["auto"], search=ExportSearch())
    chosen = opened.choose("auto")
    value = nash_conv(opened.env, members_of(load_selection(opened, chosen)))
    return -value, f"NashConv {value:.4f} of {chosen.reason.partition(',')[0]}"


def _overrides(job: TrialJob) -> list[str]:
    return [*job.overrides, f"budget={{core_seconds: {job.core_seconds}}}"]


def _missing(job: TrialJob) -> float:
    return (1.0 - SLACK) * job.until - spent_by(Path(job.run)).core_seconds


def carry_out(job: TrialJob) -> TrialResult:
    """Train and measure; a user's mistake becomes the sentence of the result."""
    try:
        if not train_to(job):
            return TrialResult(is_interrupted=True)
        value, detail = measure(job)
    except InterruptedError:
        return TrialResult(is_interrupted=True)
    except (LeagueError, EnvError) as error:
        return TrialResult(error=" ".join(str(error).split()))
    return TrialResult(value, spent_by(Path(job.run)).core_seconds, detail)


def main() -> int:
    """Serve one job."""
    end_with_parent(signal.SIGTERM)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=TrialJob)
    if os.getppid() == 1:
        return 1  # the parent has died before it could be noticed
    result = carry_out(job)
    if not result.is_interrupted:
        Storage().atomic_write_bytes(Path(job.result), msgspec.json.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
