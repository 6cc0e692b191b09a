"""`league chaos`: breaks a run of its own on purpose and says what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Overrides, names_in, seconds_of, with_trust
from league.errors import LeagueError


@with_trust("target")
def chaos(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|RUN", help="YAML configuration, or a run folder, which is copied.", show_default=False
        ),
    ],
    overrides: Overrides = None,
    for_time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Strike for so long, as 90s, 10m or 2h.")
    ] = "10m",
    strikes: Annotated[int | None, typer.Option("--strikes", min=1, help="Most faults that find their target.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of the plan; by default a new one, printed.")
    ] = None,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Comma-separated kinds of faults.")
    ] = "kill,stop,slow,fill,corrupt",
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", help="Keep the run here; by default it is removed unless something was found."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Break a run of its own by a plan with a seed, then audit it: exit code 1 where anything was lost."""
    import secrets
    import shutil
    import signal
    import sys
    import tempfile

    from league.operate.chaos.chaos import Chaos, run_chaos
    from league.operate.chaos.plan import FAULTS, StrikePlan
    from league.operate.chaos.prepare import prepare

    known = tuple(dict.fromkeys(kind for kind, _, _ in FAULTS))
    chosen = names_in(kinds)
    if not chosen or not set(chosen) <= set(known):
        raise LeagueError(f"--kinds takes {', '.join(known)}, not {kinds!r}.")
    for_s = seconds_of(for_time)
    number = secrets.randbelow(2**31) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="league-chaos-"))
    prepared = prepare(target, run_dir or folder / "run", overrides=overrides or [])
    plan = StrikePlan(number, kinds=chosen, targets=prepared.targets)

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    say(f"seed {number}, run {prepared.run}, log {folder / 'chaos.log'}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # the run is ended all the same
    struck = Chaos(prepared.run, first=prepared.first, folder=folder)
    verdict = run_chaos(struck, plan, seed=number, for_s=for_s, strikes=strikes, say=say)
    if verdict.holds:
        shutil.rmtree(folder, ignore_errors=True)
    typer.echo(verdict.to_json() if as_json else verdict.text())
    if not verdict.holds:
        raise typer.Exit(1)
