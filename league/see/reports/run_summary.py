"""The last thing a training command shows: the league table, the score against bots, and what to try next."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.envs.guard.settings import working_folder
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.matches.bots_to_play import chosen_bots
from league.policies.auto_export import AUTO, LAST
from league.run.budget import Limits, Spent, budget_spent, train_on_command
from league.run.monitor.names import EVAL_GAMES, EVAL_HIGH, EVAL_LOW, EVAL_SCORE
from league.see.reports.ratings import read_ratings
from league.see.reports.status.status_report import read_status
from league.store.run_folder import RunFolder

if TYPE_CHECKING:
    from league.judge.matches.evaluation import EvalReport

MAX_RATED = 12
OWN = "game"
"""Stands for the opponent in a game of one team."""
LONGER_GAMES = 1000
"""Of a match in the evaluation that is proposed."""
EVALUATION_FRACTION = 0.2
MAX_EVALUATION_S = 60.0
"""Longest last evaluation, as a fraction of the command's training time and in seconds."""
MIN_EVALUATION_S = 0.1
MATCH_FRACTION = 0.25
"""Of these seconds: as many more for the matches that "auto" chooses by where strength decides."""


def evaluation_limit_s(trained_s: float) -> float | None:
    """The longest that the last evaluation of a command may take that trained so long; None if no game fits in it."""
    limit_s = min(EVALUATION_FRACTION * trained_s, MAX_EVALUATION_S)
    return limit_s if limit_s >= MIN_EVALUATION_S else None


def show_end(
    path: Path,
    reason: str,
    *,
    spent: Spent,
    limit_s: float | None,
    games_line: Callable[..., contextlib.AbstractContextManager[Callable[[int, int], None]]],
) -> None:
    """Print how a run stands now that a command has ended. An evaluation that fails is one sentence in it.

    Args:
      path: of the run. reason: why the command ended.
      spent: by the run since its first start.
      limit_s: of the games against bots; None plays none.
      games_line: shows the progress of these games within `limit_s`, given (games finished, games in all).
    Raises:
      LeagueError: the run cannot be read.
    """
    from league.judge.matches.evaluation import evaluate_run
    from league.judge.matches.export_match import keep_export_matches
    from league.judge.matches.report_table import print_report
    from league.policies.exact.exports import ExportSearch, open_to_play

    config = parse_config(RunFolder.open(path).read_config(), source=str(path))
    typer.echo(f"\nTraining ended: {reason}.\n")
    if limit_s is not None:
        with _failure_said():
            run = open_to_play(path, [AUTO], search=ExportSearch(limit_s))
            keep_export_matches(run, limit_s=MATCH_FRACTION * limit_s)
    status = read_status(path)
    typer.echo(status.text())
    rated = read_ratings(path).text().splitlines()
    typer.echo("\n" + "\n".join(rated[: MAX_RATED + 1]))
    bots = chosen_bots(config.evaluation, spec_of(config.env))
    if bots and status.league.snapshots and limit_s is not None:
        typer.echo(f"\nThe last evaluation, {limit_s:.0f} s at most:", err=True)
        with _failure_said():
            with games_line(limit_s=limit_s) as progress:
                report = evaluate_run(
                    path,
                    players=(AUTO, LAST),
                    limit_s=limit_s,
                    progress=progress,
                )
            print_report(report)
            track_scores(path, config, report, env_steps=spent.env_steps)
    typer.echo(f"\nThe run lies in {path}. To try next:")
    for command in next_commands(config, _as_typed(path), spent=spent, has_policies=bool(status.league.snapshots)):
        typer.echo(f"  {command}")


def track_scores(path: Path, config: RunConfig, report: EvalReport, *, env_steps: int) -> None:
    """Hand the scores of a run's last evaluation to all of its trackers, as one more row. env_steps: of the run."""
    from league.run.monitor.metric_sinks import open_sinks

    with contextlib.closing(open_sinks(config, RunFolder.open(path), say=typer.echo)) as sinks:
        sinks.log(env_steps, score_values(report))


def score_values(report: EvalReport) -> dict[str, float]:
    """Name of the metric -> value, of every match of an evaluation or, in a game of one team, of every return."""
    found = [(row.home, row.away, row.score, row.games) for row in report.pairs]
    found += [(row.name, OWN, row.mean_return, row.games) for row in report.returns]
    values: dict[str, float] = {}
    for home, away, score, games in found:
        pairs = ((EVAL_SCORE, score.value), (EVAL_LOW, score.low), (EVAL_HIGH, score.high), (EVAL_GAMES, float(games)))
        values.update({metric.of(_part(home), opponent=_part(away)): value for metric, value in pairs})
    return values


def _part(name: str) -> str:
    """The name of a contender as one part of a metric's name."""
    return name.replace("/", "_")


@contextlib.contextmanager
def _failure_said() -> Iterator[None]:
    """Prints why an evaluation failed: the training before it has ended well and is saved."""
    try:
        yield
    except (LeagueError, EnvError) as error:
        typer.echo(f"The last evaluation failed: {error}", err=True)


def next_commands(config: RunConfig, run: str, *, spent: Spent, has_policies: bool) -> list[str]:
    """The commands to try after training, each of which works for this run.

    Args:
      run: its path as typed. spent: by it since its first start.
      has_policies: whether it has a snapshot, which can be watched and played against.
    """
    from league.see.games.session import accepts_moves_by_hand

    is_spent = budget_spent(config.budget, spent, limits=Limits())
    commands = [train_on_command(run, config.budget, spent) if is_spent else f"league resume {run} --for 180s"]
    spec = spec_of(config.env)
    if has_policies:
        commands.append(f"league watch {run}")
        if accepts_moves_by_hand(spec):
            commands.append(f"league play {run}")
    bots = "" if config.evaluation.bots else " --bots random"
    commands.append(f"league eval {run}{bots} --games {LONGER_GAMES}")
    return [*commands, f"league ratings {run}"] if spec.num_teams > 1 else commands


def _as_typed(path: Path) -> str:
    """A path as one would type it here: from the current folder where it lies below it, quoted where it must be."""
    here = working_folder()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
