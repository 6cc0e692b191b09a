"""N games in W child processes as one `BatchedEnv`: the same games as in one process, whatever W is.

A process that dies, hangs or grows too large is replaced. The game that it was in loses its unfinished episode; the
others are put back where they were, see `league.envs.workers.replay`.

Shape letters: N games, W processes, S seats, K slots.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.failures import MAX_KEPT, FailureCount, GameFailure, none_left
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec, FinalObservation, Turn
from league.envs.workers.channel import RESET, RESUME, STEP
from league.envs.workers.episode_seeds import episode_seed
from league.envs.workers.process import MIB, GamesProcess, ProcessDeadlines, Stopped
from league.envs.workers.replay import ReplayedPosition, StepLog, digest, plain
from league.envs.workers.shared_turn import action_dtype

MAX_WORKERS = 1024
MEMORY_SHARE = 0.5
"""Of the machine's memory: all processes, where env.worker_memory_mib is not given."""

MIN_MEMORY_MIB = 512


def make_workers(config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """Make the games of `config` in `config.workers` processes, or in as many as there are games.

    Raises:
      EnvError: they cannot be made, or their kwargs cannot be sent to a process.
    """
    if not isinstance(config.workers, int) or not 1 <= config.workers <= MAX_WORKERS:
        raise EnvError(f"{config.id}: env.workers: {config.workers} must be auto or in [0, {MAX_WORKERS}]")
    return WorkerEnv(config, num_envs=num_envs, num_workers=min(config.workers, num_envs))


class Share:
    """The games [first, first + n) of the batch: their process, and what is needed to replace it.

    Attributes:
      log: actions of the episodes in progress. count: failures of the process, with the strikes of its games.
      restarts: replacements so far. slots: K of its part of the turn.
    """

    def __init__(self, process: GamesProcess, spec: EnvSpec) -> None:
        self.process = process
        process.attach(spec)
        strikes = process.shared.strikes.data
        self.count = FailureCount(process.num_games, strikes=strikes, may_lose_all=True)
        self.log = StepLog(process.num_games)
        self.restarts = 0
        self.slots = 0

    def positions(self, turn: Turn | None, next_episode: Mapping[int, int]) -> list[ReplayedPosition | None]:
        """[n] Where each game is to be put in a new process.

        Args:
          turn: of all games, whose answers are in the log; None if the games were just being reset.
          next_episode: game -> the episode that it starts, in place of one that was lost.
        """
        found: list[ReplayedPosition | None] = []
        for game, episode in enumerate(self.process.shared.episodes.tolist()):
            answers = None if turn is None else self.log.answers(game)
            if game in self.count.quarantined:
                found.append(None)
            elif game in next_episode:
                found.append(ReplayedPosition(next_episode[game], lost=turn is not None))
            elif turn is None:
                found.append(ReplayedPosition(episode))
            elif answers is None:
                found.append(ReplayedPosition(episode + 1, lost=True))
            else:
                rows = np.flatnonzero(turn.env_index == self.process.first + game)
                found.append(ReplayedPosition(episode, answers, digest(turn, rows)))
        return found


class WorkerEnv:
    """See the module. Games cannot be copied or saved: they are in other processes."""

    def __init__(self, config: EnvConfig, *, num_envs: int, num_workers: int) -> None:
        self.num_envs = num_envs
        self._id = config.id
        self._seed = 0
        self._tolerant = False
        self._failures: list[GameFailure] = []
        self._turn: Turn | None = None
        self._waits_for: Share | None = None
        self._asked: list[Share] | None = None
        processes = games_processes(config, num_envs, num_workers)
        with contextlib.ExitStack() as opened:
            for process in processes:
                opened.callback(process.close)
                process.start()
            specs = [self._made(process) for process in processes]
            opened.pop_all()  # the caller closes them from here on
        self.spec: EnvSpec = specs[0]
        self._shares = [Share(process, self.spec) for process in processes]
        self._firsts = [process.first for process in processes]

    def reset(self, seed: int) -> Turn:
        if self._asked is not None:
            self.step_wait()
        self._seed = seed
        for share in self._shares:
            share.log = StepLog(share.process.num_games)
            share.process.shared.episodes[:] = 0
            if not share.process.is_running:
                self._start(share.process)
            share.process.send(RESET, {"seed": seed, "tolerant": self._tolerant})
        return self._collect(self._shares, before=None)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: NDArray[np.generic]) -> None:
        before = self._turn
        assert before is not None, "call reset first"
        assert self._asked is None, "the step before is not over"
        chosen, start, now, asked = self._checked(actions, before), 0, time.monotonic(), []
        for share in self._shares:
            own = slice(start, start + share.slots)
            start += share.slots
            if not share.slots:  # all its games are quarantined
                share.process.shared.clear()
                continue
            share.log.take(before.env_index[own] - share.process.first, chosen[own])
            if share.process.is_too_large(now=now):
                self._make_smaller(share, before)
                continue
            share.process.shared.actions[: share.slots] = chosen[own]
            share.process.send(STEP)
            asked.append(share)
        self._asked = asked

    def step_wait(self) -> Turn:
        asked, self._asked = self._asked, None
        assert asked is not None, "no step was begun"
        return self._collect(asked, before=self._turn)

    def close(self) -> None:
        """End all processes; may be called twice."""
        for share in self._shares:
            share.process.leave()
        for share in self._shares:
            share.process.close()

    def whereabouts(self) -> tuple[str, int, int, int]:
        """As in `Located`: the call of the process that is waited for."""
        share = self._waits_for
        if share is None:
            return "step", 0, 0, 0
        _, game, episode, step = share.process.shared.place.tolist()
        return "step" if step else "reset", share.process.first + max(game, 0), episode, step

    def tolerate_failures(self, count: FailureCount | None = None) -> None:
        """As in `FaultTolerant`; strikes are counted in shared memory."""
        self._tolerant = True

    def take_failures(self) -> tuple[GameFailure, ...]:
        taken, self._failures = tuple(self._failures), []
        return taken

    def _collect(self, asked: list[Share], *, before: Turn | None) -> Turn:
        """Wait for the shares that were asked, replace what failed, and join all turns. before: None for a reset."""
        error: EnvError | None = None
        for share in asked:
            self._waits_for = share
            try:
                self._answer(share, before)
            except EnvError as failed:  # the others' answers must not stay in their pipes
                error = error or failed
        self._waits_for = None
        if error is not None:
            raise error
        turns = [share.process.shared.read() for share in self._shares]
        for share, turn in zip(self._shares, turns, strict=True):
            share.slots = turn.env_index.size
            share.log.ended(turn.ended if turn.aborted is None else turn.ended | turn.aborted)
        self._turn = merged(turns, self._firsts)
        return self._turn

    def _answer(self, share: Share, before: Turn | None) -> None:
        try:
            self._note(share.process.answer())
            share.count.succeeded()
        except Stopped as stopped:
            self._replace(share, stopped, before)
        except EnvError as error:
            if not self._tolerant or share.process.shared.place[1] >= 0:
                raise
            share.process.kill()  # a batched env: its games are all in an unknown state
            self._replace(share, Stopped(f"failed: {error}", ""), before)

    def _replace(self, share: Share, stopped: Stopped, before: Turn | None) -> None:
        """Put the games of a process that is gone into a new one; the game that it was in loses its episode.

        Raises:
          EnvError: failures are not tolerated, or no game is left, or new processes end as well.
        """
        next_episode: dict[int, int] = {}
        while True:
            self._strike(share, stopped, next_episode)
            if len(share.count.quarantined) == share.process.num_games:
                share.process.shared.clear()
                return
            self._start(share.process)
            try:
                self._resume(share, before, next_episode)
            except Stopped as again:
                stopped = again
            else:
                return

    def _resume(self, share: Share, before: Turn | None, next_episode: Mapping[int, int]) -> None:
        share.restarts += 1
        positions = [plain(position) for position in share.positions(before, next_episode)]
        share.process.send(RESUME, {"seed": self._seed, "positions": positions, "restarts": share.restarts})
        self._note(share.process.answer())
        share.count.succeeded()

    def _make_smaller(self, share: Share, before: Turn) -> None:
        """Replace a process that has grown too large between two steps; no game loses anything."""
        share.process.kill()
        self._start(share.process)
        try:
            self._resume(share, before, {})
        except Stopped as stopped:
            self._replace(share, stopped, before)
        share.process.check_room()

    def _strike(self, share: Share, stopped: Stopped, next_episode: dict[int, int]) -> None:
        """Count the failure of a process against the game it was in, or against all its games if they are one batch."""
        process = share.process
        _, struck, episode, step = process.shared.place.tolist()
        game = max(struck, 0)
        failure = GameFailure(
            env_id=self._id,
            game=process.first + game,
            seed=episode_seed((self._seed,), game=process.first + game, episode=episode) if struck >= 0 else self._seed,
            episode=episode,
            step=step,
            call="step" if step else "reset",
            reason=stopped.reason,
            traceback=stopped.traceback,
        )
        if not self._tolerant:
            raise EnvError(f"{failure.text()}{_last_line(stopped.traceback)}")
        for each in range(process.num_games) if struck < 0 else (game,):
            if each not in share.count.quarantined:
                next_episode[each] = (episode if struck >= 0 else int(process.shared.episodes[each])) + 1
                share.count.strike(each, failure)
        self._note([vars(counted) for counted in share.count.take()[:1]])

    def _note(self, failures: list[dict[str, Any]] | None) -> None:
        """Keep failures for the next report. Raises EnvError if no game is left."""
        for failure in failures or ():
            counted = GameFailure(**failure)
            if len(self._failures) < MAX_KEPT:
                self._failures.append(counted)
            if counted.quarantined and all(
                len(share.count.quarantined) == share.process.num_games for share in self._shares
            ):
                raise EnvError(f"{none_left(self.num_envs)}. The last one: {counted.text()}")

    def _start(self, process: GamesProcess) -> None:
        """Start a process that is gone again.

        Raises:
          EnvError: its games cannot be made any more.
        """
        process.start()
        self._made(process)

    def _made(self, process: GamesProcess) -> EnvSpec:
        try:
            spec = process.spec()
        except Stopped as stopped:
            raise EnvError(f"{self._id}: making it {stopped.reason}{_last_line(stopped.traceback)}") from stopped
        process.check_room()
        return spec

    def _checked(self, actions: NDArray[np.generic], turn: Turn) -> NDArray[np.generic]:
        """The actions, if they answer the slots; their legality is checked where the games are."""
        chosen, code = np.asarray(actions), self.spec.actions
        expected, dtype = (turn.env_index.size, *code.shape), action_dtype(self.spec)
        if chosen.shape != expected or chosen.dtype.kind not in ("f" if code.kind == "box" else "iu"):
            raise EnvError(f"{self._id}: actions are {chosen.dtype} {chosen.shape}, expected {dtype} {expected}")
        return chosen.astype(dtype, copy=False)


def games_processes(config: EnvConfig, num_envs: int, num_workers: int) -> list[GamesProcess]:
    """One process for each share, not started; the first shares have a game more where they cannot be equal.

    Raises:
      EnvError: there are no such processes here, or the kwargs cannot be sent to one.
    """
    if sys.platform != "linux":
        raise EnvError(f"{config.id}: env.workers needs Linux; use workers: 0")
    plain_config = dataclasses.asdict(dataclasses.replace(config, workers=0))
    try:
        json.dumps(plain_config)
    except (TypeError, ValueError) as error:
        raise EnvError(
            f"{config.id}: its kwargs cannot be sent to a child process ({error}); use workers: 0"
        ) from error
    limit = config.worker_memory_mib
    deadlines = ProcessDeadlines(
        reset_s=config.reset_deadline_s,
        step_s=config.step_deadline_s,
        memory_mib=limit if limit is not None else _memory_share(num_workers),
    )
    bounds = [num_envs * worker // num_workers for worker in range(num_workers + 1)]
    return [
        GamesProcess(plain_config, num_games=stop - first, first=first, deadlines=deadlines)
        for first, stop in itertools.pairwise(bounds)
    ]


def _memory_share(num_workers: int) -> int:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MIB
    return max(int(MEMORY_SHARE * whole / num_workers), MIN_MEMORY_MIB)


def _last_line(traceback: str) -> str:
    """The innermost place of a traceback of `faulthandler`, for a sentence."""
    places = [line.strip() for line in traceback.splitlines() if line.strip().startswith("File")]
    return f"; it was in {places[0]}" if places else ""


def merged(turns: Sequence[Turn], firsts: Sequence[int]) -> Turn:
    """One turn, in new arrays. firsts: number of the first game of each share."""
    finals = [(turn.final, first) for turn, first in zip(turns, firsts, strict=True) if turn.final is not None]
    aborted = np.concatenate([turn.aborted for turn in turns if turn.aborted is not None])
    rejoined = np.concatenate([turn.rejoined for turn in turns if turn.rejoined is not None])
    masks = [turn.action_mask for turn in turns if turn.action_mask is not None]
    return Turn(
        env_index=np.concatenate([turn.env_index + first for turn, first in zip(turns, firsts, strict=True)]),
        seat=np.concatenate([turn.seat for turn in turns]),
        obs={name: np.concatenate([turn.obs[name] for turn in turns]) for name in turns[0].obs},
        action_mask=np.concatenate(masks) if masks else None,
        rewards=np.concatenate([turn.rewards for turn in turns]),
        terminated=np.concatenate([turn.terminated for turn in turns]),
        truncated=np.concatenate([turn.truncated for turn in turns]),
        returns=np.concatenate([turn.returns for turn in turns]),
        final=_merged_final(finals) if finals else None,
        rejoined=rejoined if rejoined.any() else None,
        aborted=aborted if aborted.any() else None,
    )


def _merged_final(finals: Sequence[tuple[FinalObservation, int]]) -> FinalObservation:
    return FinalObservation(
        env_index=np.concatenate([final.env_index + first for final, first in finals]),
        seat=np.concatenate([final.seat for final, _ in finals]),
        obs={name: np.concatenate([final.obs[name] for final, _ in finals]) for name in finals[0][0].obs},
    )
