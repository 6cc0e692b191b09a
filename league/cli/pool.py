"""The commands of a rating pool: its policies, its play and workers, its table, and tests of one against another."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import For, Json, Reason, seconds_of, with_trust
from league.errors import LeagueError

PoolArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the pool.", show_default=False)]


@with_trust("folder", "game")
def init(
    folder: PoolArgument,
    game: Annotated[
        str,
        typer.Option(
            "--game", metavar="ID", help="The game, as env.id; or a run, for its game and seats.", show_default=False
        ),
    ],
    anchor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BOT=ELO",
            help="A bot, engine or served policy whose rating is fixed; may be repeated.",
            show_default="bot:random=0",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("-s", "--set", metavar="KEY=VALUE", help="An option of the game; may be repeated."),
    ] = None,
    opening_plies: Annotated[int, typer.Option(min=0, max=100, help="Random plies before the policies act.")] = 2,
) -> None:
    """Make an empty pool for a game."""
    from league.judge.pools.members import make_pool

    typer.echo(
        make_pool(
            folder,
            env_id=game,
            options=overrides or [],
            anchors=anchor or ["bot:random=0"],
            opening_plies=opening_plies,
        )
    )


@with_trust("folder", "contenders")
def add(
    folder: PoolArgument,
    contenders: Annotated[
        list[str],
        typer.Argument(
            metavar="CONTENDER...",
            help="RUN, RUN:NAME, a snapshot's folder, bot:NAME, or an engine or served policy as of `league match`.",
            show_default=False,
        ),
    ],
) -> None:
    """Have policies join; those of a live pool join by its inbox."""
    from league.judge.pools.members import add_contenders

    for sentence in add_contenders(folder, contenders):
        typer.echo(sentence)


@with_trust("source")
def push(
    folder: PoolArgument,
    source: Annotated[
        str, typer.Argument(metavar="RUN[:NAME]", help="A run, or a policy of it by any name.", show_default=False)
    ],
) -> None:
    """Put frozen policies into the inbox of a pool, live or not."""
    from league.judge.pools.members import push as push_policies

    for sentence in push_policies(folder, source):
        typer.echo(sentence)


@with_trust("folder")
def run(
    folder: PoolArgument,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes that play.")] = 1,
    for_time: For = None,
) -> None:
    """Play where the ratings are least sure, until a signal or the time given."""
    from league.judge.pools.service.run_command import run_pool

    typer.echo(run_pool(folder, seconds=_seconds(for_time), jobs=jobs))


@with_trust("folder")
def serve(
    folder: PoolArgument,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where workers reach it; beyond this machine with a certificate.")
    ] = "127.0.0.1:8710",
    token_file: Annotated[
        Path | None, typer.Option(help="The token of workers; made where it is missing.", show_default="DIR/token")
    ] = None,
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="Certificate in PEM.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Its key in PEM.")] = "",
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that workers use for this machine; may be repeated."),
    ] = None,
) -> None:
    """Serve a pool to workers, until a signal. It plays nothing itself."""
    from league.http.address import Listening
    from league.judge.pools.service.run_command import serve_pool

    where = Listening.at(listen, tls_cert=tls_cert, tls_key=tls_key, hosts=tuple(host or ()))
    typer.echo(serve_pool(folder, where, token_file=token_file))


@with_trust("url")
def work(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of a served pool.", show_default=False)],
    token_file: Annotated[Path, typer.Option(help="File with the pool's token.", show_default=False)],
    tls_ca: Annotated[
        str, typer.Option(metavar="FILE", help="Certificates to trust for https, in the place of the system's.")
    ] = "",
    for_time: For = None,
) -> None:
    """Play for a pool that another process serves, until a signal."""
    from league.judge.pools.service.run_command import work_for

    typer.echo(work_for(url, token_file=token_file, ca_file=tls_ca, seconds=_seconds(for_time)))


@with_trust("folder", "first", "second")
def test(
    folder: PoolArgument,
    first: Annotated[
        str, typer.Argument(metavar="FIRST", help="A policy of the pool, or as of `pool add`.", show_default=False)
    ],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The one that it is tested against.")],
    sprt: Annotated[
        str, typer.Option(metavar="TEST", help="Hypotheses in Elo and errors, as of `league match`.")
    ] = "elo0=0 elo1=10 alpha=0.05 beta=0.05",
    games: Annotated[int, typer.Option(min=2, help="After so many games it ends undecided.")] = 40_000,
    reason: Reason = "",
) -> None:
    """Begin a sequential test of two policies, which the workers of the pool play; the pool may be live."""
    from league.cli.judging import sprt_of
    from league.judge.pools.core.rules import BeginTest
    from league.judge.pools.folder import PoolFolder
    from league.judge.pools.tests_table import submit_test
    from league.store.known_runs import this_user

    asked = BeginTest(first, second, sprt_of(sprt), games, by=this_user(), reason=reason)
    for sentence in submit_test(PoolFolder(folder), asked):
        typer.echo(sentence)


def tests(folder: PoolArgument, json_: Json = False) -> None:
    """Show the tests of a pool, newest first, with their log-likelihood ratios; the pool may be live."""
    from league.judge.pools.folder import PoolFolder
    from league.judge.pools.journaled_pool import read_pool
    from league.judge.pools.tests_table import rows_json, rows_text, test_rows

    rows = test_rows(read_pool(PoolFolder(folder)))
    typer.echo(rows_json(rows) if json_ else rows_text(rows))


def withdraw(
    folder: PoolArgument,
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Of the test.", show_default=False)],
) -> None:
    """End a test before it is decided; its games stay in the ratings. The pool may be live."""
    from league.judge.pools.folder import PoolFolder
    from league.judge.pools.request_file import PoolRequest
    from league.judge.pools.tests_table import ask_pool

    typer.echo(ask_pool(PoolFolder(folder), PoolRequest(withdraw=number)))


def _seconds(for_time: str | None) -> float | None:
    return None if for_time is None else seconds_of(for_time)


def list_(
    folder: PoolArgument,
    json_: Json = False,
    csv_: Annotated[bool, typer.Option("--csv", help="Print a line for each policy.")] = False,
) -> None:
    """Show ratings with 95 % intervals; the pool may be live."""
    from league.judge.pools.folder import PoolFolder
    from league.judge.pools.journaled_pool import read_pool
    from league.judge.pools.table import pool_table

    if json_ and csv_:
        raise LeagueError("give --json or --csv, not both.")
    table = pool_table(read_pool(PoolFolder(folder)))
    with contextlib.suppress(BrokenPipeError):
        typer.echo(table.to_json() if json_ else table.to_csv().rstrip("\n") if csv_ else table.text())
