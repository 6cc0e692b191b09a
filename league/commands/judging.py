"""The commands that let contenders of any origin play: `league match` and `league tournament`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.commands.options import Trust, games_line
from league.errors import LeagueError

Contenders = Annotated[
    list[str],
    typer.Argument(
        metavar="CONTENDER...",
        help="RUN:NAME, a folder of a snapshot, of several or of an exported policy, or bot:NAME.",
        show_default=False,
    ),
]
Env = Annotated[str | None, typer.Option("--env", metavar="ENV_ID", help="The game, where no contender brings one.")]
Greedy = Annotated[
    bool | None,
    typer.Option(
        "--greedy/--sample",
        help="Networks take the likeliest action, or draw one.",
        show_default="--sample where several seats act at once",
    ),
]
OpeningPlies = Annotated[int, typer.Option("--opening-plies", min=0, help="Random legal moves before anyone acts.")]
TEST_WORDS = ("elo0=", "elo1=", "alpha=", "beta=")
"""Beginnings of the words of a test, which may follow --sprt as words of their own."""


def add_judging(app: typer.Typer) -> None:
    """Adds the commands to the `league` command."""
    app.command("match")(match)


def match(
    contenders: Contenders,
    games: Annotated[int, typer.Option(min=1, help="Most games, shared by the seats.")] = 400,
    env: Env = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and draws.")] = 0,
    opening_plies: OpeningPlies = 2,
    greedy: Greedy = None,
    sprt: Annotated[
        str | None,
        typer.Option(
            metavar="TEST",
            help="Stop as soon as a test decides: elo0=0 elo1=10, with alpha=0.05 beta=0.05 unless given.",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the report here.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write a line for each contender here.")] = None,
    trust: Trust = False,
) -> None:
    """Play contenders of any run against each other: seats paired, common openings, intervals."""
    from envs.protocol import EnvConfig
    from league.contenders.finding import find_contenders, game_of, remarks_on, require_playable
    from league.eval.contest import ContestConditions, acts_at_once
    from league.eval.head_to_head import head_to_head_csv, head_to_head_lines, play_head_to_head

    words = [word for word in contenders if sprt is not None and word.startswith(TEST_WORDS)]
    test = None if sprt is None else sprt_of(" ".join([sprt, *words]))
    found = find_contenders([name for name in contenders if name not in words], trust=trust)
    game = game_of(found, env=None if env is None else EnvConfig(env))
    require_playable(found, game)
    conditions = ContestConditions(seed, opening_plies, not acts_at_once(game.env) if greedy is None else greedy)
    with games_line() as progress:
        report = play_head_to_head(
            game,
            found,
            conditions,
            games=games,
            sprt=test,
            notes=remarks_on(found, game),
            progress=progress,
        )
    typer.echo("\n".join(head_to_head_lines(report)))
    if json_file is not None:
        json_file.write_text(report.to_json() + "\n")
    if csv_file is not None:
        csv_file.write_text(head_to_head_csv(report))


def sprt_of(text: str):  # type: ignore[no-untyped-def]
    """The test that words such as "elo0=0 elo1=10 alpha=0.05" ask for.

    Raises:
      LeagueError: a word is no setting of the test, or the settings do not fit together.
    """
    from league.eval.sprt import SprtConfig

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
