"""The commands that let contenders of any origin play: `league match` and `league tournament`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.cli.options import Json, SearchOption, games_line, with_trust
from league.errors import LeagueError

if TYPE_CHECKING:
    from league.judge.matches.sprt import SprtConfig
    from league.judge.tournaments.batches import Where
    from league.judge.tournaments.records import TournamentConfig
    from league.judge.tournaments.tournament_report import TournamentReport

Contenders = Annotated[
    list[str],
    typer.Argument(
        metavar="CONTENDER...",
        help="RUN:NAME, a folder of a snapshot, of several or of an exported policy, bot:NAME, uci:PROGRAM, "
        "gtp:PROGRAM, http://HOST:PORT or unix:SOCKET.",
        show_default=False,
    ),
]
Env = Annotated[str | None, typer.Option("--env", metavar="ENV_ID", help="The game, where no contender brings one.")]
Greedy = Annotated[
    bool | None,
    typer.Option(
        "--greedy/--sample",
        help="Networks take the likeliest action, or draw one.",
        show_default="--sample where seats act at once or hide something",
    ),
]
OpeningPlies = Annotated[int, typer.Option("--opening-plies", min=0, help="Random legal moves before anyone acts.")]
Sprt = Annotated[
    str | None,
    typer.Option(
        metavar="TEST",
        help="Stop as soon as a test decides: elo0=0 elo1=10, with alpha=0.05 beta=0.05 unless given.",
    ),
]
Anchor = Annotated[
    str, typer.Option(metavar="NAME=RATING", help="Contender whose rating is fixed.", show_default="random play at 0")
]
Format = Annotated[
    str, typer.Option("--format", metavar="NAME", help="round-robin, gauntlet (the first against all), ladder, swiss.")
]
JOBS_HELP = "Processes that play; 0 for one per core, or on Ray for each CPU of its machines."
Ray = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Play on Ray: auto, local, HOST:PORT or ray://HOST:PORT, as runtime.address.",
        show_default=False,
    ),
]
Tokenless = Annotated[bool, typer.Option("--allow-tokenless", help="Join a cluster that obeys any client.")]
TEST_WORDS = ("elo0=", "elo1=", "alpha=", "beta=")
"""Beginnings of the words of a test, which may follow --sprt as words of their own."""


@with_trust("contenders")
def match(
    contenders: Contenders,
    games: Annotated[int, typer.Option(min=1, help="Most games, shared by the seats.")] = 400,
    env: Env = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    opening_plies: OpeningPlies = 2,
    greedy: Greedy = None,
    search: SearchOption = 0,
    sprt: Sprt = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=0, help=JOBS_HELP, show_default="1, on Ray 0")] = None,
    ray: Ray = "",
    allow_tokenless: Tokenless = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write a line for each contender here.")] = None,
) -> None:
    """Play contenders of any run against each other: seats paired, common openings, intervals."""
    from league.agents.torch_runtime import prepare_process
    from league.config.plugin_names import absolute_game
    from league.envs.protocol import EnvConfig
    from league.judge.contenders.finding import find_contenders, game_of, remarks_on, require_playable
    from league.judge.matches.contest import ContestConditions
    from league.judge.tournaments.head_to_head import head_to_head_csv, head_to_head_lines, play_head_to_head

    prepare_process()
    names, test = names_and_test(contenders, sprt)
    where = where_of(jobs, ray, allow_tokenless=allow_tokenless, alone=1)
    found = find_contenders(names)
    game = game_of(found, env=None if env is None else EnvConfig(absolute_game(env, (Path.cwd(),))))
    require_playable(found, game, search=search)
    conditions = ContestConditions(seed, opening_plies, not game.must_mix if greedy is None else greedy, search)
    with games_line() as progress:
        report = play_head_to_head(
            game,
            found,
            conditions,
            games=games,
            sprt=test,
            notes=remarks_on(found, game),
            progress=progress,
            where=where,
        )
    typer.echo("\n".join(head_to_head_lines(report)))
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")
    if csv_file is not None:
        csv_file.write_text(head_to_head_csv(report))


def where_of(jobs: int | None, ray: str, *, allow_tokenless: bool, alone: int = 0) -> Where:
    """The place to play. alone: processes without Ray where no number is given.

    Raises:
      LeagueError: the address is none.
    """
    from league.config.ray_address import is_ray_address
    from league.judge.tournaments.batches import Where

    if ray and not is_ray_address(ray):
        raise LeagueError(f"--ray {ray}: write auto, local, HOST:PORT or ray://HOST:PORT.")
    return Where(jobs if jobs is not None else 0 if ray else alone, ray, allow_tokenless)


def names_and_test(words: Sequence[str], sprt: str | None) -> tuple[list[str], SprtConfig | None]:
    """The contenders among some words, and the test that the others and the option ask for. Raises as `sprt_of`."""
    test = [word for word in words if sprt is not None and word.startswith(TEST_WORDS)]
    names = [word for word in words if word not in test]
    return names, None if sprt is None else sprt_of(" ".join([sprt, *test]))


def sprt_of(text: str) -> SprtConfig:
    """The test that words such as "elo0=0 elo1=10 alpha=0.05" ask for.

    Raises:
      LeagueError: a word is no setting of the test, or the settings do not fit together.
    """
    from league.judge.matches.sprt import SprtConfig

    values = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        try:
            if not equals or f"{name}=" not in TEST_WORDS:
                raise ValueError
            values[name] = float(value)
        except ValueError:
            raise LeagueError(f"--sprt: {word!r} is none of elo0=N, elo1=N, alpha=P and beta=P.") from None
    try:
        return SprtConfig(**values)
    except ValueError as error:
        raise LeagueError(f"--sprt: {error}.") from None


@with_trust("contenders", "out")
def tournament(
    contenders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONTENDER]...", help="As of `league match`; none to continue --out.", show_default=False
        ),
    ] = None,
    form: Format = "round-robin",
    rounds: Annotated[int, typer.Option(min=0, help="Of swiss or ladder; 0 for as many as it needs.")] = 0,
    games: Annotated[int, typer.Option(min=1, help="Games of each pairing.")] = 100,
    batch_games: Annotated[int, typer.Option("--batch-games", min=1, help="Games recorded together.")] = 50,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the tournament.")] = Path("tournament"),
    jobs: Annotated[int, typer.Option("--jobs", min=0, help=JOBS_HELP)] = 0,
    ray: Ray = "",
    allow_tokenless: Tokenless = False,
    anchor: Anchor = "",
    env: Env = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    opening_plies: OpeningPlies = 2,
    greedy: Greedy = None,
    search: SearchOption = 0,
    sprt: Sprt = None,
    record: Annotated[bool, typer.Option("--record", help="Keep every game as a replay, and as PGN.")] = False,
    as_json: Json = False,
) -> None:
    """Play contenders in a tournament; the same command continues one that was interrupted.

    DIR holds its journal, and at the end report.json, standings.csv and report.html. With --sprt each pairing ends as
    soon as its test decides, after --games at the latest.
    """
    from league.agents.torch_runtime import prepare_process
    from league.judge.tournaments.records import TournamentConfig
    from league.judge.tournaments.tournament_report import tournament_lines

    prepare_process()
    names, test = names_and_test(contenders or (), sprt)
    name, rating = anchor_of(anchor, names)
    config = TournamentConfig(
        written=tuple(names),
        env_id=env or "",
        format=form,
        rounds=rounds,
        games=games,
        batch_games=batch_games,
        seed=seed,
        opening_plies=opening_plies,
        greedy=greedy,
        anchor=name,
        anchor_elo=rating,
        record=record,
        sprt=test,
        search=search,
    )
    where = where_of(jobs, ray, allow_tokenless=allow_tokenless)
    done = _shown_live(out, config if names else None, where)
    typer.echo(done.to_json() if as_json else "\n".join(tournament_lines(done)))


def _shown_live(out: Path, config: TournamentConfig | None, where: Where) -> TournamentReport:
    """Play a tournament while its table is shown."""
    import sys

    from league.judge.tournaments.run_tournament import play_tournament
    from league.judge.tournaments.tournament_report import table_of, tournament_head
    from league.run.monitor.live_table import LiveTable, TableView

    with LiveTable(sys.stderr) as table:

        def show(report: Callable[[], TournamentReport], done: int, known: int) -> None:
            def view() -> TableView:
                made = report()
                return TableView(f"{tournament_head(made)} ({done:,} of {known:,} so far)", *table_of(made))

            table.show(view)

        return play_tournament(out, config, where=where, progress=show)


def anchor_of(text: str, contenders: Sequence[str]) -> tuple[str, float]:
    """The contender and the rating of NAME=RATING, or of NAME alone at 0.

    Raises:
      LeagueError: the rating is no number.
    """
    if not text or text in contenders:
        return text, 0.0
    name, _, rating = text.rpartition("=")
    try:
        return name, float(rating)
    except ValueError:
        raise LeagueError(f"--anchor: {text!r} is no contender with a rating: write bot:random=0.") from None
