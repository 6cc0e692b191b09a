"""The last thing a training command shows: the league table, the score against bots, and what to try next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from league.config import parse_config
from league.inspection import StatusReport, read_ratings, read_status
from league.store.run_folder import RunFolder

MAX_RATED = 12
LONGER_GAMES = 1000
"""Of a match in the evaluation that is proposed."""
WORTH_SHOWING = 0.1
"""Part of a player's training since its newest snapshot above which the player itself is evaluated too."""


def show_end(path: Path, reason: str, *, progress: Callable[[int, int], None]) -> None:
    """Print how a run stands now that a command has ended.

    Args:
      path: of the run. reason: why the command ended. progress: called with (games finished, games in all).
    Raises:
      LeagueError, EnvError: from the evaluation.
    """
    from league.eval.report import evaluate_run
    from league.monitor.tables import print_report

    config = parse_config(RunFolder.open(path).read_config(), source=str(path))
    typer.echo(f"\nTraining ended: {reason}.\n")
    status = read_status(path)
    typer.echo(status.text())
    rated = read_ratings(path).text().splitlines()
    typer.echo("\n" + "\n".join(rated[: MAX_RATED + 1]))
    if config.evaluation.bots and status.snapshots:
        typer.echo("")
        report = evaluate_run(
            path,
            players=_entrants(status),
            bots=config.evaluation.bots,
            games=config.evaluation.games,
            progress=progress,
        )
        print_report(report)
    typer.echo(f"\nThe run lies in {path}. To try next:")
    for command in (
        f"league resume {path} --for 180s",
        f"league eval {path} --bots {','.join(config.evaluation.bots) or 'random'} --games {LONGER_GAMES}",
        f"league ratings {path}",
    ):
        typer.echo(f"  {command}")


def _entrants(status: StatusReport) -> tuple[str, ...]:
    """Best and mixture, and the first player as it stands where no snapshot shows what it has learnt since."""
    first = status.players[0]
    much = first.unfrozen_steps > WORTH_SHOWING * first.trained_steps
    return ("best", "mixture", first.player) if much else ("best", "mixture")
