"""Plays a tournament to its end: begins or continues its folder, deals batches out, and records each as it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from league.config.plugin_names import absolute_game, outside_names
from league.envs.notation.game_record import game_record
from league.envs.notation.notation import notation_of
from league.envs.plugins import is_admitted
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.contenders.contender import Contender, Game, plain_game
from league.judge.contenders.finding import find_contenders, game_of, require_playable, runs_a_program
from league.judge.matches.contest import ContestConditions
from league.judge.matches.game_moves import PlayedGame
from league.judge.matches.match import seat_holders
from league.judge.tournaments.batches import BatchOutcome, Where
from league.judge.tournaments.folder import Begun, TournamentFolder, require_same
from league.judge.tournaments.formats import format_named
from league.judge.tournaments.page import tournament_page
from league.judge.tournaments.play_round import field_of, play_round, players_of
from league.judge.tournaments.records import BatchKey, BatchPlayed, TournamentConfig, TournamentCreated
from league.judge.tournaments.tournament import Tournament
from league.judge.tournaments.tournament_report import TournamentReport, report_of, sprt_csv, tournament_csv
from league.policies.trust import is_trusted

EVERY_CORE = Where()
Progress = Callable[[Callable[[], TournamentReport], int, int], None]
"""Called after every batch and every moment of waiting: a function that makes the report so far, games, games known."""


def play_tournament(
    path: Path,
    config: TournamentConfig | None,
    *,
    where: Where = EVERY_CORE,
    progress: Progress | None = None,
) -> TournamentReport:
    """Play a tournament in a folder, from where it stands.

    Args:
      path: of the folder, which is made where there is none.
      config: None continues the tournament of the folder.
      where: games are played.
    Returns:
      The report, which does not depend on where games are played or on interruptions. It is also left in the folder
      as report.json, standings.csv, tests.csv (of sequential tests) and report.html.
    Raises:
      LeagueError: the folder holds another tournament or is in use, or a contender cannot be had or cannot play.
      EnvError: the game cannot be made.
    """
    if config is None and not (path / "tournament.db").exists():
        raise LeagueError(f"{path} holds no tournament: name the contenders of a new one.")
    with TournamentFolder(path) as folder:
        begun = folder.begun()
        if begun is None:
            if config is None:
                raise LeagueError(f"the tournament in {path} never began: name its contenders again.")
            contenders, begun = _begin(folder, config)
        else:
            if config is not None:
                require_same(config, begun.created.config, path)
            elif not is_trusted(path):
                _require_no_program(begun.created, path)
            contenders = tuple(folder.contender(enrolled) for enrolled in begun.created.contenders)
        report = _play(folder, begun, contenders, where=where, progress=progress)
        folder.write("report.json", report.to_json() + "\n")
        folder.write("standings.csv", tournament_csv(report))
        if report.config.sprt is not None:
            folder.write("tests.csv", sprt_csv(report))
        folder.write("report.html", tournament_page(report))
        return report


def _require_no_program(created: TournamentCreated, path: Path) -> None:
    """Refuse to run programs and games that only the folder names: it may be somebody else's."""
    games = outside_names({"env": {"id": created.env_id, "kwargs": created.env_kwargs}})
    programs = (one.name for one in created.contenders if runs_a_program(one.name))
    named = [*(game.name for game in games if not is_admitted(game.entry)), *programs]
    if named:
        raise LeagueError(f"{path} names the program {named[0]}: give --trust to run it, or the contenders again.")


def _begin(folder: TournamentFolder, config: TournamentConfig) -> tuple[tuple[Contender, ...], Begun]:
    contenders = find_contenders(config.written)
    env_id = absolute_game(config.env_id, (Path.cwd(),))
    game = game_of(contenders, env=EnvConfig(env_id, dict(config.env_kwargs)) if env_id else None)
    teams = game.spec.num_teams
    if len(contenders) < 2:
        raise LeagueError(f"a tournament needs two contenders or more, {len(contenders)} given.")
    if config.anchor and config.anchor not in [one.name for one in contenders]:
        raise LeagueError(f"--anchor: {config.anchor} is none of the contenders.")
    if config.sprt is not None and teams != 2:
        raise LeagueError(f"--sprt needs a game of two teams, {game.env.id} has {teams}: leave it out.")
    format_named(config.format)(len(contenders), teams, (), config.rounds)
    require_playable(contenders, game, search=config.search)
    greedy = not game.must_mix if config.greedy is None else config.greedy
    enrolled = tuple(folder.enrol(contender) for contender in contenders)
    created = TournamentCreated(config, enrolled, game.env.id, dict(game.env.kwargs), greedy)
    folder.record(created)
    return contenders, Begun(created, ())


def _play(
    folder: TournamentFolder,
    begun: Begun,
    contenders: tuple[Contender, ...],
    *,
    where: Where,
    progress: Progress | None,
) -> TournamentReport:
    created, config = begun.created, begun.created.config
    env = _env_of(created, contenders)
    game = plain_game(env, spec_of(replace(env, workers=0)))
    teams = game.spec.num_teams
    state = Tournament(config, contenders=len(contenders), teams=teams, format=format_named(config.format))
    for event in begun.played:
        while event.key.round > state.round:
            state.close_round()
        state.add(event)
    conditions = ContestConditions(config.seed, config.opening_plies, created.greedy, config.search)
    field = field_of(env, contenders, conditions, record=config.record)

    def report() -> TournamentReport:
        return report_of(created, state, teams=teams)

    def record(outcome: BatchOutcome, event: BatchPlayed) -> None:
        if outcome.replays:
            names = [contenders[place].name for place in event.key.lineup]
            folder.write_games(event.key, outcome.replays, records_of(game, event.key, names, outcome.played))
        folder.record(event)

    def tick() -> None:
        if progress is not None:
            progress(report, state.games_played, state.games_known)

    with players_of(field, game, where) as players:
        while not state.is_over:
            play_round(state, players, record=record, tick=tick)
            state.close_round()
    folder.remove_games(state.surplus())
    folder.gather_records(state.keys())
    return report()


def _env_of(created: TournamentCreated, contenders: tuple[Contender, ...]) -> EnvConfig:
    """The game as it was when the tournament began, with the options of the contender that brings it."""
    plain = EnvConfig(created.env_id, dict(created.env_kwargs))
    return next(
        (
            one.game.env
            for one in contenders
            if one.game is not None and (one.game.env.id, one.game.env.kwargs) == (plain.id, plain.kwargs)
        ),
        plain,
    )


EVENT = "League tournament"


def records_of(game: Game, key: BatchKey, names: Sequence[str], played: Sequence[PlayedGame]) -> str:
    """The records of games of two seats; empty where their moves have no names.

    Args:
      names: of the contenders in the batch's lineup.
    """
    notation = notation_of(game.env, game.spec) if game.spec.num_seats == 2 else None
    if notation is None or len(names) != 2:
        return ""
    return "\n".join(
        game_record(
            notation,
            one.moves,
            names=seat_holders(game.spec, names, one.rotation),
            returns=one.returns,
            tags={
                "Event": EVENT,
                "Site": "?",
                "Date": "????.??.??",
                "Round": f"{key.round + 1}.{key.number + 1}.{one.group + 1}",
                "Opening": f"{one.opening} random moves",
            },
        )
        for one in played
    )
