"""A learner host: holds the learners of some players and time-slices between them. Knows nothing of processes.

This one does everything in the caller's thread, so that equal calls have equal results; `streaming_host` overlaps.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from agents.learner.build import build_learner
from agents.learner.learner import Learner, UpdateReport
from agents.learner.workers.worker_group import ProcessWorkerGroup, WorkerGroupLauncher
from agents.unroll.codec import ChunkError, ChunkHeader, Lz4Codec
from agents.unroll.unroll import Unrolls, concatenate
from agents.weights import Weights
from envs.protocol import EnvSpec
from envs.registry import spec_of
from league.core.state.records import Hyperparameter, Progress
from league.runtime.hyperparameters import tuned
from league.runtime.protocol import Arrays, CheckpointTaken, HostSetup, LearnerProgress


@dataclass(frozen=True)
class Workers:
    """How a learner's stages and replicas are started, and where they compute (None: wherever there is room)."""

    launcher: WorkerGroupLauncher = ProcessWorkerGroup
    device: torch.device | None = None


class UnknownPlayer(Exception):  # noqa: N818
    """A chunk or order for a player that this host does not hold (any more)."""


class LearnerHost:
    """Learners by player.

    Args:
      setup: what to build.
      dtype: compute type of the forward passes.
      workers: of learners that are cut into stages or replicas.
      clock: seconds, for the share of time in which there was nothing to learn from.

    Attributes:
      budget_fraction: part of the budget spent, in [0, 1]; set by the owner, read by every update.
    """

    def __init__(
        self,
        setup: HostSetup,
        *,
        dtype: torch.dtype,
        workers: Workers | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.budget_fraction = 0.0
        self._setup = setup
        self._workers = workers or Workers()
        self._dtype = dtype
        self._clock = clock
        self._spec = spec_of(setup.env)
        self._codec = Lz4Codec()
        self._learners: dict[str, Learner] = {}
        self._waiting: dict[str, list[Unrolls]] = {}
        self._newest: dict[str, UpdateReport] = {}
        self._published: dict[str, Weights] = {}
        self._first_version: dict[str, int] = {}
        self._busy_s = 0.0
        self._since = clock()

    def install(
        self,
        player: str,
        *,
        saved: Arrays | None,
        weights: Weights | None,
        hyperparameters: tuple[Hyperparameter, ...] = (),
        trained_steps: int = 0,
    ) -> None:
        """Hold a player's learner, from a checkpoint, from weights, or newly initialised."""
        self._drop(player)
        self._learners[player] = player_learner(
            player,
            self._setup,
            self._spec,
            saved=saved,
            weights=weights,
            hyperparameters=hyperparameters,
            trained_steps=trained_steps,
            dtype=self._dtype,
            workers=self._workers,
        )
        self._waiting[player] = []

    def push(self, player: str, chunk: bytes) -> Weights:
        """Learn from a chunk; returns the newest weights.

        Raises:
          UnknownPlayer: not held here.
          ChunkError: the bytes are no chunk of this run and player.
          NonFiniteError: from the learner.
        """
        start = self._clock()
        learner = self._learner(player)
        header, unrolls = self._codec.decode(chunk)
        check_address(header, run=self._setup.run, player=player)
        check_versions(header, unrolls)
        if header.version_max < self._first_version.get(player, 0):
            return self.weights(player)
        waiting = self._waiting[player]
        waiting.append(unrolls)
        rows = self._setup.learner.batch_rows
        if sum(part.num_rows for part in waiting) >= rows:
            self._learn(player, learner, concatenate(waiting))
        self._busy_s += self._clock() - start
        return self.weights(player)

    def weights(self, player: str) -> Weights:
        """The newest weights of a player; the same object until the version changes."""
        learner = self._learner(player)
        held = self._published.get(player)
        if held is None or held.version != learner.version:
            self._published[player] = learner.publish()
        return self._published[player]

    def progress_of(self, player: str) -> Progress:
        """How far a player is."""
        learner = self._learner(player)
        return Progress(player=player, version=learner.version, trained_steps=learner.trained_steps)

    def progress(self) -> list[LearnerProgress]:
        """How far every player is, and the share of the time since the last call in which there was nothing to do."""
        now = self._clock()
        idle = 1.0 - self._busy_s / max(now - self._since, 1e-9)
        self._busy_s, self._since = 0.0, now
        return [
            LearnerProgress(
                progress=self.progress_of(player),
                update=self._newest.get(player),
                skipped=learner.skipped_updates,
                idle_fraction=min(max(idle, 0.0), 1.0),
            )
            for player, learner in self._learners.items()
        ]

    def reset(self, player: str, weights: Weights) -> None:
        """Start a player again from given weights; unrolls of its past self, also those still to come, are dropped."""
        learner = self._learner(player)
        learner.reset(weights)
        learner.version += 1
        self._first_version[player] = learner.version
        self._waiting[player] = []

    def checkpoint(self, player: str) -> CheckpointTaken:
        """A player's restart state."""
        return CheckpointTaken(progress=self.progress_of(player), saved=self._learner(player).save())

    def close(self) -> None:
        """Release every learner; may be called twice."""
        for player in list(self._learners):
            self._drop(player)

    def _learn(self, player: str, learner: Learner, unrolls: Unrolls) -> None:
        rows = self._setup.learner.batch_rows
        stop = unrolls.num_rows - unrolls.num_rows % rows
        for start in range(0, stop, rows):
            batch = unrolls.rows(start, start + rows)
            self._newest[player] = learner.update(batch, budget_fraction=self.budget_fraction)
        left = unrolls.rows(stop, unrolls.num_rows)
        self._waiting[player] = [left] if left.num_rows else []

    def _learner(self, player: str) -> Learner:
        if player not in self._learners:
            raise UnknownPlayer(f"player {player} is not held by this learner host")
        return self._learners[player]

    def _drop(self, player: str) -> None:
        learner = self._learners.pop(player, None)
        if learner is not None:
            learner.close()
        for table in (self._waiting, self._newest, self._published, self._first_version):
            table.pop(player, None)


def player_learner(
    player: str,
    setup: HostSetup,
    spec: EnvSpec,
    *,
    saved: Arrays | None,
    weights: Weights | None,
    hyperparameters: tuple[Hyperparameter, ...],
    trained_steps: int,
    dtype: torch.dtype,
    workers: Workers,
) -> Learner:
    """A player's learner, from a checkpoint, from weights, or newly initialised; errors as of `build_learner`."""
    learner = build_learner(
        spec,
        setup.network,
        tuned(setup.learner, hyperparameters),
        seed=zlib.crc32(f"{setup.seed}/{player}".encode()),
        dtype=dtype,
        teacher=setup.teacher,
        launcher=workers.launcher,
        stage_device=workers.device,
    )
    if saved is not None:
        learner.load(saved)
    elif weights is not None:
        learner.reset(weights)
        learner.version, learner.trained_steps = weights.version, trained_steps
    return learner


def check_address(header: ChunkHeader, *, run: str, player: str) -> None:
    """Refuse chunks of another run or player.

    Raises:
      ChunkError: it is one.
    """
    if (header.run, header.player) != (run, player):
        raise ChunkError(f"a chunk of {header.run}/{header.player} came to {run}/{player}")


def check_versions(header: ChunkHeader, unrolls: Unrolls) -> None:
    """Refuse a chunk whose header does not cover its rows' versions: by the header it is kept or dropped after a reset.

    Raises:
      ChunkError: it does not.
    """
    if not unrolls.versions.size:
        return
    least, most = int(unrolls.versions.min()), int(unrolls.versions.max())
    if not (header.version_min <= least and most <= header.version_max):
        raise ChunkError(
            f"versions {least} to {most} came under a header of {header.version_min} to {header.version_max}"
        )
