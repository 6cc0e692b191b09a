"""The one door to games: a match between policies, in parts of so many games each or until their time is over.

Shape letters: T teams, G games in one batch, S seats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import Policy
from league.envs.failures import FaultTolerant
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec
from league.envs.registry import make, spec_of
from league.judge.matches.game_batch import PlayedBatch, distinct, play_once
from league.judge.matches.game_moves import GameSink
from league.judge.matches.match_result import MatchResult, merged, score_games
from league.judge.recording.recorder import ReplayRecorder
from league.judge.recording.recording import Recording

logger = logging.getLogger(__name__)

MAX_BATCH = 512
"""Games stepped together; more gain no speed and tree-searching bots hold a tree for each."""

T = TypeVar("T")
Progress = Callable[[int], None]
"""Called with the number of games that have ended since the last call."""


class Match:
    """Games between contenders who take each team in turn.

    Games r * G + i of all rotations r form a group: the same seed of the env, the same random opening. A game that the
    env fails in costs its group, which is logged, and is left out of the recording.

    Args:
      env: the game.
      policies: one per team; where there are fewer, the last one takes the remaining teams. So home and away are
        enough for any game of two teams or more.
      seed: of the games, the openings and the sampled actions. Bots have streams of their own.
      opening_plies: uniformly random legal plies before any policy acts, in games in which one seat acts at a time
        and that mask illegal actions; no effect in others. A game that ends inside its opening starts again. What a
        seat sees in its opening moves the memory of its policy on.
      on_game: given every finished game, where actions are numbers.
      recording: where the games are recorded for replays; None records nothing.
    Raises:
      ValueError: more contenders than teams.
    """

    def __init__(
        self,
        env: EnvConfig,
        policies: Sequence[Policy],
        *,
        seed: int,
        opening_plies: int = 2,
        on_game: GameSink | None = None,
        recording: Recording | None = None,
    ) -> None:
        self._env, self._spec = env, spec_of(env)
        self._seed, self._opening_plies = seed, opening_plies
        self._on_game, self._recording = on_game, recording
        self._parts: list[MatchResult] = []
        if not 1 <= len(policies) <= self.teams:
            raise ValueError(f"{len(policies)} contenders do not fit the {self.teams} teams of {env.id}")
        self._policies = [*policies, *[policies[-1]] * (self.teams - len(policies))]

    @property
    def teams(self) -> int:
        """Teams of the game."""
        return self._spec.num_teams

    @property
    def result(self) -> MatchResult | None:
        """The result of all parts that have ended; None before the first."""
        return merged(self._parts) if self._parts else None

    def play(
        self, games: int, *, still: Callable[[], bool] = lambda: True, progress: Progress | None = None
    ) -> MatchResult:
        """Play a part of the match, with games that no other part has; returns its result.

        Args:
          games: rounded up to a multiple of the teams.
          still: asked before every turn; the part is given up once it says no.
          progress: see `Progress`.
        Raises:
          OutOfTime: the part was given up; it does not count.
          ValueError: `games` is not positive.
          EnvError: from the env, its games do not end, or it failed in every group.
        """
        if games < 1:
            raise ValueError(f"games is {games}: a match of {self._env.id} needs a positive number")
        number, groups = len(self._parts), whole_groups(games, self.teams) // self.teams
        seed = int(np.random.default_rng([self._seed, number]).integers(2**31)) if number else self._seed
        waves = []
        for wave, start in enumerate(range(0, groups, MAX_BATCH)):
            env = _made(self._env, num_envs=min(MAX_BATCH, groups - start))
            try:
                rotations = []
                for rotation in range(self.teams):
                    rotations.append(self._rotation(env, (seed, wave, rotation), still))
                    if progress is not None:
                        progress(env.num_envs)
                if self._on_game is not None:
                    _show_games([batch for _, batch in rotations], start, self._on_game)
                _note_lost(env, [batch for _, batch in rotations])
                waves.append(_scored(self._spec, self._policies, rotations))
            finally:
                env.close()
        self._parts.append(merged(waves))
        return self._parts[-1]

    def _rotation(
        self, env: BatchedEnv, seeds: tuple[int, int, int], still: Callable[[], bool]
    ) -> tuple[list[Policy], PlayedBatch]:
        """The games of one rotation of a wave, and who held the seats. seeds: as of `play_once`."""
        holders = seat_holders(self._spec, self._policies, seeds[2])
        recorder = None if self._recording is None else ReplayRecorder(self._env, env)
        keep, plies = self._on_game is not None, self._opening_plies
        batch = play_once(env, holders, seeds=seeds, opening_plies=plies, still=still, keep=keep, recorder=recorder)
        if self._recording is not None and recorder is not None:
            _record(self._recording, recorder, seeds[2], batch)
        return holders, batch


def whole_groups(games: int, teams: int) -> int:
    """So many games, rounded up to whole groups: to a multiple of the teams."""
    return -(-games // teams) * teams


def _made(env_config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """The games of a wave. A game that fails is lost alone, where the env can do that."""
    env = make(env_config, num_envs=num_envs)
    if isinstance(env, FaultTolerant):
        env.tolerate_failures()
    return env


def _record(recording: Recording, recorder: ReplayRecorder, rotation: int, batch: PlayedBatch) -> None:
    """Hand over the games of one rotation, with their seats named as `seat_holders` fills them.

    A game in which the env fails after its end counts, but it is left out too: what it fails in would be played again.
    """
    failed = {*np.flatnonzero(batch.lost).tolist(), *(failure.game for failure in batch.failures)}
    if len(failed) == recorder.num_envs:
        return
    teams = recorder.spec.num_teams
    named = [*recording.contenders, *[recording.contenders[-1]] * (teams - len(recording.contenders))]
    holders = seat_holders(recorder.spec, named, rotation)
    recording.take(recorder.replay(holders, tags=recording.tags, failed=failed))


def _scored(
    spec: EnvSpec, policies: Sequence[Policy], rotations: Sequence[tuple[list[Policy], PlayedBatch]]
) -> MatchResult:
    """The result of a wave: groups in which every game ended by its rules, and who failed in the others."""
    whole = np.all([(batch.failed < 0) & ~batch.lost for _, batch in rotations], axis=0)
    returns = [_by_contender(spec, batch.returns[whole], rotation) for rotation, (_, batch) in enumerate(rotations)]
    aborted = [0] * len(policies)
    for holders, batch in rotations:
        who = distinct(holders)
        for place in batch.failed[batch.failed >= 0].tolist():
            aborted[next(i for i, policy in enumerate(policies) if policy is who[place])] += 1
    result = score_games(np.stack(returns), sum(int(batch.steps[whole].sum()) for _, batch in rotations))
    return replace(result, aborted=tuple(aborted))


def _note_lost(env: BatchedEnv, rotations: Sequence[PlayedBatch]) -> None:
    """Log how many groups the env failed in.

    Raises:
      EnvError: in all of them.
    """
    groups = int(np.any([batch.lost for batch in rotations], axis=0).sum())
    if groups:
        told = (failure.text() for batch in rotations for failure in batch.failures)
        reason = next(told, "it did not say why")
        if groups == env.num_envs:
            raise EnvError(f"every game of a match failed: {reason}")
        of = f"{groups} of {env.num_envs} " + ("groups of games" if len(rotations) > 1 else "games")
        logger.warning("%s failed and count for nobody: %s", of, reason)


def _show_games(rotations: Sequence[PlayedBatch], first_group: int, on_game: GameSink) -> None:
    for game in range(len(rotations[0].failed)):
        for rotation, batch in enumerate(rotations):
            if batch.history is not None and batch.failed[game] < 0 and not batch.lost[game]:
                returns = batch.returns[game].tolist()
                on_game(batch.history.played(game, group=first_group + game, rotation=rotation, returns=returns))


def seat_holders(spec: EnvSpec, contenders: Sequence[T], rotation: int) -> list[T]:
    """[S], the contender on each seat: contender e holds the seats of team (e + rotation) % T."""
    places = team_places(spec)
    return [contenders[(place - rotation) % len(contenders)] for place in places.tolist()]


def team_places(spec: EnvSpec) -> NDArray[np.int64]:
    """int64 [S], the team of each seat, numbered from 0 without gaps."""
    places: NDArray[np.int64] = np.unique(np.asarray(spec.teams), return_inverse=True)[1].astype(np.int64)
    return places


def team_sizes(spec: EnvSpec) -> tuple[int, ...]:
    """[T] number of seats of each team."""
    return tuple(np.bincount(team_places(spec)).tolist())


def _by_contender(spec: EnvSpec, returns: NDArray[np.float32], rotation: int) -> NDArray[np.float64]:
    """float64 [G, T], the summed return of each contender's team; of a lone team the mean return of its seats."""
    places = team_places(spec)
    if not places.any():
        return np.asarray(returns.mean(axis=1, keepdims=True), np.float64)
    teams = int(places.max()) + 1
    member = (places[:, None] == np.arange(teams)).astype(np.float64)
    return np.roll(returns.astype(np.float64) @ member, -rotation, axis=1)
