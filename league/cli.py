"""The `league` command. Everything heavy is imported by the command that needs it, so that `--help` answers at once."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from league.cli_reference import add_reference
from league.command_line import run_command
from league.errors import LeagueError

if TYPE_CHECKING:
    from league.run.launch import Ended

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="KEY=VALUE", help="Set a dotted configuration key; may be repeated."),
]
For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="Stop after so long, as 90, 180s, 3m or 2h.")]
EnvSteps = Annotated[int | None, typer.Option("--env-steps", min=1, help="Stop after so many more env steps.")]
CoreSeconds = Annotated[
    float | None, typer.Option("--core-seconds", min=0.0, help="Stop after so many more processor seconds.")
]
NoEval = Annotated[
    bool,
    typer.Option("--no-eval", help="No games against bots at the end (else a fifth of the time, at most 60 s)."),
]
At = Annotated[
    str, typer.Option("--at", metavar="EVENT", help="Event number, snapshot:NAME, or latest.", show_default=False)
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="bradley-terry (pairs of teams), openskill (teams of several seats, more than two teams) or meta-game "
        "(Nash averaging, alpha-rank and cycles, where strength is not one number).",
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Load code that a folder names although you did not train it: it runs as you.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="YAML configuration.", show_default=False)],
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Run folder; by default one under runs/.")] = None,
    for_time: For = None,
    env_steps: EnvSteps = None,
    core_seconds: CoreSeconds = None,
    no_eval: NoEval = False,
    trust: Trust = False,
) -> None:
    """Start a run. Schedules follow the configuration's budget; the limits only say when this command stops."""
    limits = _limits(for_time, env_steps, core_seconds)
    from league.run.launch import train as start

    ended = start(config, overrides=overrides or [], run_dir=run_dir, limits=limits, trust=trust)
    _show_end(ended, evaluates=not no_eval)


@app.command()
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
    trust: Trust = False,
) -> None:
    """Continue a run after a stop, a crash or a kill; a key that is set is changed from here on."""
    limits = _limits(for_time, env_steps, core_seconds)
    from league.run.launch import resume as go_on

    ended = go_on(run, limits=limits, overrides=overrides or [], restore_config=restore_config, trust=trust)
    _show_end(ended, evaluates=not no_eval)


@app.command()
def status(run: RunArgument, as_json: Json = False) -> None:
    """Show the state of a run, its daemon and its progress."""
    from league.reports.status import read_status

    report = read_status(run)
    typer.echo(report.to_json() if as_json else report.text())


@app.command()
def ratings(run: RunArgument, model: Model = "bradley-terry", as_json: Json = False) -> None:
    """Ratings of all snapshots, strongest first: Elo with 95 % intervals, skills by openskill, or the meta-game."""
    from league.reports.rating_models import read_rating_model

    report = read_rating_model(run, model)
    typer.echo(report.to_json() if as_json else report.text())


@app.command()
def payoff(
    run: RunArgument,
    homes: Annotated[
        list[str] | None, typer.Option("--home", metavar="POLICY", help="Its row; repeatable (default: every player).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show win rates as matchmaking and gates see them, games, and scores by seat; hardest opponents first."""
    from league.reports.payoff import read_payoff

    report = read_payoff(run, homes=tuple(homes or ()))
    typer.echo(report.to_json() if as_json else report.text())


@app.command("eval")
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or that of a snapshot.", show_default=False)],
    players: Annotated[
        str, typer.Option(help="Comma-separated: best, mixture, average, players, snapshots, FOLDER:NAME of another.")
    ] = "best,mixture",
    bots: Annotated[str, typer.Option(help="Comma-separated; empty for none.")] = "random,tactical,mcts:25,mcts:100",
    games: Annotated[int, typer.Option(min=2, help="Games against each bot, half from either seat.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    greedy: Annotated[
        bool | None,
        typer.Option(
            "--greedy/--sample",
            help="Take the likeliest action, or draw one.",
            show_default="--sample where several seats act at once",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write a line for each match here.")] = None,
    trust: Trust = False,
) -> None:
    """Play policies of a run against bots and each other, seats paired, with intervals."""
    from league.eval.report import evaluate_run
    from league.eval.report_table import report_csv
    from league.reports.tables import print_report

    with _games_line() as progress:
        report = evaluate_run(
            run,
            players=names_in(players),
            bots=names_in(bots),
            games=games,
            seed=seed,
            greedy=greedy,
            trust=trust,
            progress=progress,
        )
    print_report(report)
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")
    if csv_file is not None:
        csv_file.write_text(report_csv(report))


@app.command()
def exploit(
    run: RunArgument,
    player: Annotated[
        str, typer.Option(help="The prey: best, mixture, average, a player or a snapshot of the run.")
    ] = "best",
    for_time: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Train so long; by default a fifth of the run's budget.")
    ] = None,
    env_steps: Annotated[int | None, typer.Option("--env-steps", min=1, help="Train so many env steps.")] = None,
    core_seconds: Annotated[
        float | None, typer.Option("--core-seconds", min=0.0, help="Train so many processor seconds.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Run folder of the exploiter; by default one beside RUN.")
    ] = None,
    overrides: Overrides = None,
    games: Annotated[int, typer.Option(min=2, help="Games of the match after the training.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the match.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
    trust: Trust = False,
) -> None:
    """Train a new player only against a frozen policy and report its score; repeat the command to continue."""
    from league.config.run_config import BudgetConfig
    from league.run.exploit import exploit_run

    budget = BudgetConfig(
        seconds=None if for_time is None else seconds_of(for_time), core_seconds=core_seconds, env_steps=env_steps
    )
    with _games_line() as progress:
        report = exploit_run(
            run,
            player=player,
            run_dir=run_dir,
            budget=budget,
            overrides=overrides or [],
            games=games,
            seed=seed,
            trust=trust,
            progress=progress,
        )
    if report is None:
        raise LeagueError("the training was interrupted: give the same command again to continue it.")
    typer.echo(report.text())
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")


@app.command()
def verify(run: RunArgument, as_json: Json = False) -> None:
    """Check that the journal replays to the stored state and that every stored digest holds; exit 1 if not."""
    from league.reports.verify import verify_run

    report = verify_run(run)
    typer.echo(report.to_json() if as_json else report.text())
    if report.problems:
        raise typer.Exit(1)


@app.command("check-env")
def check_env_command(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="As in env.id of a configuration.", show_default=False)],
    kwargs: Annotated[
        list[str] | None, typer.Option("-k", "--kwarg", metavar="NAME=VALUE", help="Option of the env; repeatable.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Turns to play at random; more where episodes are long.")] = 200,
    as_json: Json = False,
) -> None:
    """Try an environment against the contract; exit 1 where it breaks it."""
    from league.reports.env_check import check_environment

    report = check_environment(env_id, kwargs or [], steps=steps)
    typer.echo(report.to_json() if as_json else report.text())
    if report.problems:
        raise typer.Exit(1)


@app.command()
def lineage(
    run: RunArgument,
    as_json: Json = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print a Graphviz graph.")] = False,
    of: Annotated[
        str | None, typer.Option("--of", metavar="SNAPSHOT", help="Only its ancestors, and whom they met in all.")
    ] = None,
) -> None:
    """Show the lineage of snapshots: parents, resets, transplants, the gates' evidence, and the opponents met."""
    from league.reports.lineage import read_lineage

    report = read_lineage(run, of=of)
    typer.echo(report.to_json() if as_json else report.to_dot() if dot else report.text())


@app.command()
def fork(
    run: RunArgument,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the new run.", show_default=False)],
    at: At,
    overrides: Overrides = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Begin a new run as the past of another, which may be live: its journal, snapshots and restart states."""
    from league.history.fork import fork_run

    report = fork_run(run, new, at=at, overrides=overrides or [], trust=trust)
    typer.echo(report.to_json() if as_json else report.text())


@app.command()
def rewind(
    run: RunArgument,
    at: At,
    as_json: Json = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a run back to an earlier event; what came after is set aside in a folder of the run."""
    from league.history.rewind import RewindReport, rewind_run

    def confirm(plan: RewindReport) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise LeagueError("no terminal to ask on: nothing was changed; add --yes.")
        typer.echo(plan.text(), err=True)
        return typer.confirm("Take it back?", err=True)

    report = rewind_run(run, at=at, confirm=confirm)
    if report is None:
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(1)
    typer.echo(report.to_json() if as_json else report.text())


@app.command()
def doctor(run: RunArgument, as_json: Json = False) -> None:
    """Diagnose a league: likely faults with their evidence, and the setting to change."""
    from league.reports.doctor import examine_run

    report = examine_run(run)
    typer.echo(report.to_json() if as_json else report.text())


@app.command()
def simulate(
    config: Annotated[Path, typer.Argument(help="YAML configuration.", show_default=False)],
    for_time: Annotated[str, typer.Option("--for", metavar="TIME", help="Virtual time, as 12h or 90d.")] = "1d",
    overrides: Overrides = None,
    world: Annotated[str, typer.Option(help="Simulated learners: skill, disc or matrix.")] = "disc",
    as_json: Json = False,
) -> None:
    """Predict days of a configuration's league in seconds or minutes, with simulated learners."""
    from league.config.loading import load_config
    from league.monitor.progress import ProgressLine
    from league.simulation.simulate import simulate as try_out

    if world not in ("skill", "disc", "matrix"):
        raise LeagueError(f"there is no simulated world {world!r}: use skill, disc or matrix.")
    seconds = seconds_of(for_time)
    if seconds <= 0:
        raise LeagueError("there is nothing to simulate in no time: give --for 12h, 7d or the like.")
    settings = load_config(config, overrides=overrides or [])
    line = ProgressLine(sys.stderr)

    def elapsed(done_s: float, total_s: float) -> None:
        line.show(f"{done_s / total_s:.0%} of the simulated time")

    report = try_out(settings, seconds, world=world, progress=elapsed)
    line.close()
    typer.echo(report.to_json() if as_json else report.text())


add_reference(app)


def main() -> NoReturn:
    """Run the command; a user's mistake is one sentence and exit code 2, never a traceback."""
    run_command(app)


def _limits(for_time: str | None, env_steps: int | None, core_seconds: float | None):  # type: ignore[no-untyped-def]
    from league.run.budget import Limits

    seconds = None if for_time is None else seconds_of(for_time)
    for option, limit in (("--for", seconds), ("--core-seconds", core_seconds)):
        if limit is not None and limit <= 0:
            raise LeagueError(f"{option} 0 leaves no time to train: give more, or leave it out for the whole budget.")
    return Limits(seconds=seconds, core_seconds=core_seconds, env_steps=env_steps)


def seconds_of(text: str) -> float:
    """A time such as 90, 180s, 3m, 2h or 1d in seconds.

    Raises:
      LeagueError: it is none.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text.strip())
    if found is None:
        raise LeagueError(f"{text!r} is not a time: write 90, 180s, 3m, 2h or 1d.")
    return float(found[1]) * _UNITS[found[2]]


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list, each once; spaces round them and empty ones do not count."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


@contextlib.contextmanager
def _games_line() -> Iterator[Callable[[int, int], None]]:
    """Shows how many games of a match have ended."""
    from league.monitor.progress import ProgressLine

    line = ProgressLine(sys.stderr)
    yield lambda done, total: line.show(f"{done:,} of {total:,} games")
    line.close()


def _show_end(ended: Ended, *, evaluates: bool) -> None:
    """The league table, the score against bots, and what to do next."""
    from league.reports.run_summary import evaluation_limit_s, show_end

    limit_s = evaluation_limit_s(ended.seconds) if evaluates else None
    with _games_line() as progress:
        show_end(ended.folder.path, ended.reason, limit_s=limit_s, progress=progress)
