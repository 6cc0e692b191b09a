"""Plays a tournament to its end: begins or continues its folder, deals batches out, and records each as it ends."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import cast

from envs.plugins import is_admitted
from envs.protocol import EnvConfig
from envs.registry import spec_of
from league.config.plugin_names import outside_names
from league.contenders.contender import Contender, Game, plain_game
from league.contenders.finding import find_contenders, game_of, require_playable, runs_a_program
from league.errors import LeagueError
from league.eval.contest import ContestConditions, should_sample
from league.policies.trust import names_of_manifest
from league.tournament.batches import BatchJob, BatchOutcome, BatchPlayers, Field, PlayHere
from league.tournament.folder import Begun, TournamentFolder, require_same
from league.tournament.formats import format_named
from league.tournament.game_records import records_of
from league.tournament.page import tournament_page
from league.tournament.processes import PlayInProcesses
from league.tournament.records import TournamentConfig, TournamentCreated, played_batch
from league.tournament.report import TournamentReport, report_of, tournament_csv
from league.tournament.tournament import Tournament

Progress = Callable[[Callable[[], TournamentReport], int, int], None]
"""Called after every batch and every moment of waiting: a function that makes the report so far, games, games known."""


def play_tournament(
    path: Path,
    config: TournamentConfig | None,
    *,
    jobs: int = 0,
    trust: bool = False,
    progress: Progress | None = None,
) -> TournamentReport:
    """Play a tournament in a folder, from where it stands.

    Args:
      path: of the folder, which is made where there is none.
      config: None continues the tournament of the folder.
      jobs: processes that play, 0 for one per core; 1 plays in this process.
      trust: whether to load code that folders name, regardless of their authors.
    Returns:
      The report, which does not depend on the number of processes or on interruptions. It is also left in the folder
      as report.json, standings.csv and report.html.
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
            contenders, begun = _begin(folder, config, trust=trust)
        else:
            if config is not None:
                require_same(config, begun.created.config, path)
            elif not trust:
                _require_no_program(begun.created, path)
            contenders = tuple(folder.contender(enrolled, trust=trust) for enrolled in begun.created.contenders)
        report = _play(folder, begun, contenders, jobs=jobs or _cores(), progress=progress)
        folder.write("report.json", report.to_json() + "\n")
        folder.write("standings.csv", tournament_csv(report))
        folder.write("report.html", tournament_page(report))
        return report


def _require_no_program(created: TournamentCreated, path: Path) -> None:
    """Refuse to run programs and games that only the folder names: it may be somebody else's."""
    games = outside_names({"env": {"id": created.env_id, "kwargs": created.env_kwargs}})
    programs = (one.name for one in created.contenders if runs_a_program(one.name))
    named = [*(game.name for game in games if not is_admitted(game.entry)), *programs]
    if named:
        raise LeagueError(f"{path} names the program {named[0]}: give --trust to run it, or the contenders again.")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _begin(folder: TournamentFolder, config: TournamentConfig, *, trust: bool) -> tuple[tuple[Contender, ...], Begun]:
    contenders = find_contenders(config.written, trust=trust)
    game = game_of(contenders, env=EnvConfig(config.env_id, dict(config.env_kwargs)) if config.env_id else None)
    teams = len(set(game.spec.teams))
    if len(contenders) < 2:
        raise LeagueError(f"a tournament needs two contenders or more, {len(contenders)} given.")
    if config.anchor and config.anchor not in [one.name for one in contenders]:
        raise LeagueError(f"--anchor: {config.anchor} is none of the contenders.")
    format_named(config.format)(len(contenders), teams, (), config.rounds)
    require_playable(contenders, game)
    greedy = not should_sample(game.env) if config.greedy is None else config.greedy
    enrolled = tuple(folder.enrol(contender) for contender in contenders)
    created = TournamentCreated(config, enrolled, game.env.id, dict(game.env.kwargs), greedy)
    folder.record(created)
    return contenders, Begun(created, ())


def _play(
    folder: TournamentFolder,
    begun: Begun,
    contenders: tuple[Contender, ...],
    *,
    jobs: int,
    progress: Progress | None,
) -> TournamentReport:
    created, config = begun.created, begun.created.config
    env = _env_of(created, contenders)
    game = plain_game(env, spec_of(replace(env, workers=0)))
    teams = len(set(game.spec.teams))
    state = Tournament(config, contenders=len(contenders), teams=teams, format=format_named(config.format))
    for event in begun.played:
        while event.key.round > state.round:
            state.close_round()
        state.add(event)
    field = Field(
        env,
        contenders,
        ContestConditions(config.seed, config.opening_plies, created.greedy),
        config.record,
        _names_of(contenders),
    )

    def report() -> TournamentReport:
        return report_of(created, state, teams=teams)

    def records(outcome: BatchOutcome) -> str:
        names = [contenders[place].name for place in outcome.job.key.lineup]
        return records_of(game, outcome.job.key, names, outcome.played)

    def tick() -> None:
        if progress is not None:
            progress(report, state.games_played, state.games_known)

    with _players(field, game, jobs) as players:
        while not state.is_over:
            _play_round(folder, state, players, records=records, tick=tick)
            state.close_round()
    folder.gather_records(state.keys())
    return report()


def _play_round(
    folder: TournamentFolder,
    state: Tournament,
    players: BatchPlayers,
    *,
    records: Callable[[BatchOutcome], str],
    tick: Callable[[], object],
) -> None:
    """Play every batch of the present round; each is recorded when it ends, and only then counts."""
    due = deque(state.due())
    while due or players.num_busy:
        while due and players.has_room:
            key, games = due.popleft()
            if not any(state.is_retired(one) for one in key.lineup):
                players.give(BatchJob(key, state.seed_number(key), games))
        if players.num_busy:
            for outcome in players.wait():
                job = outcome.job
                if outcome.replays:
                    folder.write_games(job.key, outcome.replays, records(outcome))
                event = played_batch(job.key, job.seed_number, job.games, outcome.result)
                folder.record(event)
                state.add(event)
        tick()


def _players(field: Field, game: Game, jobs: int) -> AbstractContextManager[BatchPlayers]:
    players = PlayHere(field, game) if jobs == 1 else PlayInProcesses(field, jobs=jobs)
    return cast(AbstractContextManager[BatchPlayers], players)


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


def _names_of(contenders: tuple[Contender, ...]) -> tuple[str, ...]:
    """Names of code from outside that the contenders' manifests hold; they were admitted in this process."""
    names = (name.entry for one in contenders for copy in one.copies for name in names_of_manifest(copy.manifest))
    return tuple(dict.fromkeys(names))
