"""The commands `league train` and `league resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.cli.options import (
    CoreSeconds,
    EnvSteps,
    For,
    NoEval,
    Overrides,
    RunArgument,
    games_line,
    limits_of,
    with_trust,
)
from league.errors import PREEMPTED

if TYPE_CHECKING:
    from league.run.session import Ended


@with_trust("source")
def train(
    source: Annotated[
        str, typer.Argument(metavar="CONFIG", help="YAML configuration, or the id of a game.", show_default=False)
    ],
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Run folder; by default one under runs/.")] = None,
    for_time: For = None,
    env_steps: EnvSteps = None,
    core_seconds: CoreSeconds = None,
    no_eval: NoEval = False,
) -> None:
    """Start a run. What the configuration leaves open is fitted to game and budget; a limit is the budget where it
    has none, else it only says when this command stops."""
    from league.envs.workers.forks import shared_imports
    from league.hosts.on_ray.fork_server import early_fork

    limits = limits_of(for_time, env_steps, core_seconds)
    with shared_imports():
        from league.run import launch
    with early_fork.held():
        ended = launch.train(source, overrides=overrides or [], run_dir=run_dir, limits=limits)
    _show_end(ended, evaluates=not no_eval)


@with_trust("run")
def resume(
    run: RunArgument,
    for_time: For = None,
    env_steps: EnvSteps = None,
    core_seconds: CoreSeconds = None,
    no_eval: NoEval = False,
    overrides: Overrides = None,
    restore_config: Annotated[
        bool, typer.Option("--restore-config", help="Write config.yaml again as the journal has it.")
    ] = False,
) -> None:
    """Continue a run after a stop, a crash or a kill; a key that is set is changed from here on."""
    from league.envs.workers.forks import shared_imports
    from league.hosts.on_ray.fork_server import early_fork

    limits = limits_of(for_time, env_steps, core_seconds)
    with shared_imports():
        from league.run import launch
    with early_fork.held():
        ended = launch.resume(run, limits=limits, overrides=overrides or [], restore_config=restore_config)
    _show_end(ended, evaluates=not no_eval)


def _show_end(ended: Ended, *, evaluates: bool) -> None:
    """The league table, the score against bots, and what to do next; leaves with its own code where it was stopped."""
    from league.run.budget import SIGNAL
    from league.see.reports.run_summary import evaluation_limit_s, show_end

    limit_s = evaluation_limit_s(ended.seconds) if evaluates and ended.reason != SIGNAL else None
    show_end(ended.folder.path, ended.reason, spent=ended.spent, limit_s=limit_s, games_line=games_line)
    if ended.reason == SIGNAL:
        raise typer.Exit(PREEMPTED)
