"""Deals the batches of a round out to those who play them, and takes each in as it ends."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

from league.core.state.records import bot_name
from league.envs.protocol import EnvConfig
from league.judge.contenders.contender import Contender, Game
from league.judge.matches.contest import ContestConditions
from league.judge.matches.match import Progress
from league.judge.tournaments.batches import BatchJob, BatchOutcome, BatchPlayers, Field, PlayHere, Where, player_of
from league.judge.tournaments.records import BatchPlayed, played_batch
from league.judge.tournaments.tournament import Tournament
from league.policies.trust import names_of_manifest
from league.processes.task_processes import TaskProcesses


def play_round(
    state: Tournament,
    players: BatchPlayers,
    *,
    record: Callable[[BatchOutcome, BatchPlayed], object] = lambda outcome, event: None,
    tick: Callable[[], object] = lambda: None,
) -> None:
    """Play every batch of the present round.

    Args:
      record: called when a batch has ended, before it counts. tick: after every batch and every moment of waiting.
    """
    due = deque(state.due())
    while due or players.num_busy:
        while due and players.has_room:
            key, games = due.popleft()
            if state.is_due(key):
                players.give(BatchJob(key, state.seed_number(key), games))
        if players.num_busy:
            for outcome in players.wait():
                job = outcome.job
                event = played_batch(job.key, job.seed_number, job.games, outcome.result)
                record(outcome, event)
                state.add(event)
        tick()


def field_of(
    env: EnvConfig, contenders: tuple[Contender, ...], conditions: ContestConditions, *, record: bool
) -> Field:
    """The field of these contenders, with the code that their manifests name, which was admitted here."""
    names = (name.entry for one in contenders for copy in one.copies for name in names_of_manifest(copy.manifest))
    return Field(env, contenders, conditions, record, tuple(dict.fromkeys(names)))


def players_of(
    field: Field, game: Game, where: Where, *, progress: Progress | None = None
) -> AbstractContextManager[BatchPlayers]:
    """Players of batches.

    Args:
      progress: called with the games that have ended since, where they are played in this process.
    """
    jobs = where.jobs or len(os.sched_getaffinity(0))

    def name_of(job: BatchJob) -> str:
        return f"games of {', '.join(field.contenders[place].name for place in job.key.lineup)}"

    players: object
    if where.ray:
        players = _on_ray(field, where, name_of)
    elif jobs == 1:
        players = PlayHere(field, game, progress=progress)
    else:
        players = TaskProcesses[BatchJob, BatchOutcome](player_of, field, jobs=jobs, name_of=name_of)
    return cast(AbstractContextManager[BatchPlayers], players)


def _on_ray(field: Field, where: Where, name_of: Callable[[BatchJob], str]) -> object:
    from league.hosts.on_ray.tasks import RayTasks

    own = (field.env.id, *(bot_name(one.name) for one in field.contenders), *field.admitted)
    return RayTasks[BatchJob, BatchOutcome](
        where.ray,
        player_of,
        field,
        max_processes=where.jobs,
        allow_tokenless=where.allow_tokenless,
        own_names=own,
        name_of=name_of,
    )
