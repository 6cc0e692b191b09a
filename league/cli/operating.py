"""The commands that operate runs: up, down, restart, ps, logs, top and label."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, NoEval, Overrides, RunArgument, with_trust
from league.errors import LeagueError

Wait = Annotated[float, typer.Option("--wait", min=0.0, help="Longest wait in seconds.")]
NewTokens = Annotated[
    bool, typer.Option("--new-tokens", help="Make other tokens for its control door and its page; the old ones end.")
]
NoRestart = Annotated[bool, typer.Option("--no-restart", help="Do not start again after a crash.")]


@with_trust("target")
def up(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|RUN", help="YAML configuration, id of a game, or a run folder.", show_default=False
        ),
    ],
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Run folder; by default one under runs/.")] = None,
    no_restart: NoRestart = False,
    no_eval: NoEval = False,
    page: Annotated[bool, typer.Option("--page", help="Serve its web page too, as control.page says.")] = False,
    new_tokens: NewTokens = False,
    wait: Wait = 60.0,
) -> None:
    """Start a run in the background, or continue one; it survives its terminal and is started again after a crash."""
    from league.config.auto.resolve import run_name
    from league.policies.trust import is_trusted
    from league.run.control.lifecycle import bring_up
    from league.store.run_folder import RunFolder, new_run_path

    options = [*(["--no-eval"] if no_eval else []), *(["--trust"] if is_trusted(target) else [])]
    given = [*(overrides or []), *(["control.page=true"] if page else [])]
    settings = [word for setting in given for word in ("-s", setting)]
    if RunFolder(target).config_path.is_file():
        if run_dir is not None:
            raise LeagueError(f"{target} is a run: --run-dir is for a new one.")
        path, first = target.absolute(), []
    else:
        name = run_name(str(target), overrides or [])  # the process that trains looks at the game
        path = (run_dir or new_run_path(name, now=datetime.now())).absolute()
        if RunFolder(path).config_path.exists():
            raise LeagueError(f"{path} already holds a run: `league up {path}` continues it.")
        source = str(target.absolute()) if target.is_file() else str(target)
        first = ["train", source, "--run-dir", str(path), *settings, *options]
        settings = []
    status = bring_up(
        path,
        first=first,
        again=["resume", str(path), *options],
        settings=settings,
        restart=not no_restart,
        new_tokens=new_tokens,
        wait_s=wait,
    )
    if status is None:
        typer.echo(f"{path} is still starting: `league logs -f {path}` shows how far it is.")
    elif status.budget_spent is not None and status.budget_spent >= 1.0:
        typer.echo(
            f"{path} trains no more, as its budget is spent: `league logs {path}` names the setting that raises it."
        )
    else:
        typer.echo(f"{path} is up (pid {status.daemon.pid}): `league logs -f {path}`, `league top {path}`.")
    if page:
        typer.echo(f"`league serve {path}` prints the address of its page.")


def down(
    run: RunArgument,
    now: Annotated[
        bool, typer.Option("--now", help="Leave at once: what was learnt since the last restart states is lost.")
    ] = False,
    evaluates: Annotated[
        bool, typer.Option("--eval", help="Then play its policies against bots and each other, as `league eval` does.")
    ] = False,
    wait: Wait = 180.0,
) -> None:
    """Stop a run within seconds: games in hand end, everything is saved, and no others are played."""
    from league.cli.evaluation import evaluate
    from league.run.control.lifecycle import take_down

    typer.echo(take_down(run, now=now, wait_s=wait))
    if evaluates:
        evaluate(run)


@with_trust("run")
def restart(
    run: RunArgument,
    no_restart: NoRestart = False,
    no_eval: NoEval = False,
    new_tokens: NewTokens = False,
    wait: Wait = 180.0,
) -> None:
    """Stop a run, without an evaluation, and start it again in the background, with the options of its `league up`."""
    from league.store.run_folder import RunFolder
    from league.store.supervision import read_supervision

    down(run, wait=wait)
    last = read_supervision(RunFolder.open(run))
    if last is not None:
        no_restart, no_eval = no_restart or last.no_restart, no_eval or last.no_eval
    up(run, no_restart=no_restart, no_eval=no_eval, new_tokens=new_tokens)


def ps(
    everything: Annotated[bool, typer.Option("-a", "--all", help="Also runs that have ended.")] = False,
    as_json: Json = False,
) -> None:
    """List the runs of this user on this machine."""
    from league.run.control.lifecycle import rows_json, rows_text, run_rows

    rows = run_rows(everything=everything)
    typer.echo(rows_json(rows) if as_json else rows_text(rows))


def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow until the run has ended.")] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="NAME", help="Log of that host, or daemon; --list names them.")
    ] = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Last lines to show first.")] = 50,
    list_names: Annotated[bool, typer.Option("--list", help="Names of the logs.")] = False,
) -> None:
    """Show the log of a run."""
    from league.run.control.lifecycle import row_of
    from league.run.control.log_files import following, last_lines, log_names, log_path
    from league.store.run_folder import RunFolder

    folder = RunFolder.open(run)
    if list_names:
        typer.echo("\n".join(log_names(folder)))
        return
    path = log_path(folder, host)
    for line in last_lines(path, lines):
        typer.echo(line)
    if not follow:
        return

    def goes_on() -> bool:
        row = row_of(folder)
        return row.live or row.supervised

    try:
        for piece in following(path, goes_on=goes_on):
            typer.echo(piece, nl=False)
    except KeyboardInterrupt:
        raise typer.Exit from None


def top(
    run: RunArgument, once: Annotated[bool, typer.Option("--once", help="Show it one time and leave.")] = False
) -> None:
    """Show the live table of a run, whoever started it."""
    import time

    from league.run.monitor.console import RunConsole
    from league.see.reports.live_view import watch_run

    with RunConsole(sys.stdout, clock=time.monotonic) as console:
        try:
            watch_run(run, console, once=once)
        except KeyboardInterrupt:
            raise typer.Exit from None


def label(
    run: RunArgument,
    labels: Annotated[
        str | None,
        typer.Argument(
            metavar="[LABELS]", help="Divided by commas, in the place of those it has; '' for none.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the labels of a run, or give it others: words by which the table of runs is searched."""
    import msgspec

    from league.run.control.run_labels import read_labels, write_labels
    from league.store.run_folder import RunFolder

    path = RunFolder.open(run).path
    if labels is not None:
        write_labels(path, labels.split(","))
    found = read_labels(path)
    typer.echo(msgspec.json.encode({"labels": found}).decode() if as_json else ", ".join(found) or "no label")
