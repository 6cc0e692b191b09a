"""Batches of games that are played somewhere: the jobs, what comes of them, and the player in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from league.envs.plugins import admit
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.contenders.contender import Contender, Game, plain_game
from league.judge.matches.contest import ContestConditions, open_batch
from league.judge.matches.game_moves import PlayedGame
from league.judge.matches.match import Progress
from league.judge.matches.match_result import MatchResult
from league.judge.recording.recording import Recording
from league.judge.recording.replay import Replay, SeatHolder
from league.judge.tournaments.records import BatchKey
from league.processes.tasks import SignOfLife


@dataclass(frozen=True)
class BatchJob:
    """A batch to be played. seed_number: see `open_batch`; games: as many."""

    key: BatchKey
    seed_number: int
    games: int


@dataclass(frozen=True)
class BatchOutcome:
    """A batch that has been played.

    Fields:
      played: its games with their moves; empty where they are not kept, or have no numbers.
      replays: of its games, one for each rotation; empty where they are not kept.
    """

    job: BatchJob
    result: MatchResult
    played: tuple[PlayedGame, ...]
    replays: tuple[Replay, ...]


@dataclass(frozen=True)
class Field:
    """Everything that the games of a tournament have in common.

    Fields:
      env: the game. contenders: everyone.
      conditions: of all games. record: whether games are kept.
      admitted: names of code from outside that may be loaded for them.
    """

    env: EnvConfig
    contenders: tuple[Contender, ...]
    conditions: ContestConditions
    record: bool
    admitted: tuple[str, ...]


@dataclass(frozen=True)
class Where:
    """The place where batches are played; results do not depend on it.

    Fields:
      jobs: processes; 0 for one per core, or on Ray per CPU of its machines. 1 without Ray plays in this process.
      ray: address of a Ray as of `runtime.address`; empty for processes of this machine.
      allow_tokenless: whether that Ray may obey any client.
    """

    jobs: int = 0
    ray: str = ""
    allow_tokenless: bool = False


class BatchPlayers(Protocol):
    """Players of batches, in this process or in others; a context manager that ends them."""

    @property
    def num_busy(self) -> int:
        """Batches that have been given and have not come back."""
        ...

    @property
    def has_room(self) -> bool:
        """True if another batch would begin at once."""
        ...

    def give(self, job: BatchJob) -> None:
        """Let a batch be played; only while there is room."""
        ...

    def wait(self) -> Sequence[BatchOutcome]:
        """Wait a moment for batches that have ended.

        Raises:
          LeagueError: a contender cannot play, or a process failed again and again.
        """
        ...


def play_job(
    field: Field, game: Game, job: BatchJob, *, still: SignOfLife, progress: Progress | None = None
) -> BatchOutcome:
    """Play a batch in this process. still: as of `Match.play`. Raises as `open_batch` and `Match.play`."""
    played: list[PlayedGame] = []
    replays: list[Replay] = []
    lineup = [field.contenders[place] for place in job.key.lineup]
    seats = tuple(SeatHolder(one.name, one.identity) for one in lineup)
    with open_batch(
        game,
        lineup,
        field.conditions,
        number=job.seed_number,
        on_game=played.append if field.record else None,
        recording=Recording(seats, replays.append) if field.record else None,
    ) as match:
        result = match.play(job.games, still=still, progress=progress)
    return BatchOutcome(job, result, tuple(played), tuple(replays))


def player_of(field: Field) -> Callable[[BatchJob, SignOfLife], BatchOutcome]:
    """A function that plays batches in this process, given a sign of life to call.

    Raises:
      EnvError: the game cannot be made here.
    """
    admit(field.admitted)
    game = plain_game(field.env, spec_of(replace(field.env, workers=0)))
    return lambda job, still: play_job(field, game, job, still=still)


class PlayHere:
    """Plays batches in this process, one after the other. progress: called with the games that have ended since."""

    def __init__(self, field: Field, game: Game, *, progress: Progress | None = None) -> None:
        self._field = field
        self._game = game
        self._progress = progress
        self._job: BatchJob | None = None

    def __enter__(self) -> PlayHere:
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing: there is nothing to end."""

    @property
    def num_busy(self) -> int:
        return 0 if self._job is None else 1

    @property
    def has_room(self) -> bool:
        return self._job is None

    def give(self, job: BatchJob) -> None:
        self._job = job

    def wait(self) -> Sequence[BatchOutcome]:
        job, self._job = self._job, None
        if job is None:
            return ()
        return (play_job(self._field, self._game, job, still=lambda: True, progress=self._progress),)
