"""The protocol of a learner host, and the parts that its implementations share. Knows nothing of processes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch

from league.agents.learner.build import build_learner
from league.agents.learner.data.row_source import ChunkT, RowSource, SourcePlace, make_row_source
from league.agents.learner.errors import GradientCheckError, LearnerError
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.learner import Learner, UpdateReport
from league.agents.learner.workers.worker_group import ProcessWorkerGroup, WorkerGroupLauncher
from league.agents.nets.network import build_network
from league.agents.unroll.codec import ChunkError, ChunkHeader, OpenChunk
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.unroll.field_table import Record
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import Weights
from league.core.state.records import Progress
from league.envs.protocol import EnvSpec
from league.errors import LeagueError
from league.hosts.learners.hyperparameters import tuned
from league.hosts.protocol import CheckpointTaken, InstallPlayer, LearnerProgress, Reconfigure
from league.hosts.setup import HostSetup


@dataclass(frozen=True)
class Workers:
    """Starts a learner's stages and replicas, and says on which device they compute (None: any with room)."""

    launcher: WorkerGroupLauncher = ProcessWorkerGroup
    device: torch.device | None = None


class UnknownPlayer(Exception):  # noqa: N818
    """A chunk or directive for a player that this host does not hold (any more)."""


class LearnersStoppedError(LearnerError):
    """The learners' thread has ended; the message says why."""


@dataclass(frozen=True)
class Newest:
    """A player at one moment.

    Fields:
      weights: published; the same object until the version changes. update: the newest, None before the first.
      skipped: updates left out as not finite.
    """

    weights: Weights
    progress: Progress
    update: UpdateReport | None
    skipped: int


class LearnerHost(Protocol):
    """Holds learners by player and time-slices between them.

    `SyncLearnerHost` does everything in the caller's thread. `AsyncLearnerHost` decodes, learns and answers at the same
    time.

    Attributes:
      budget_fraction: part of the budget spent, in [0, 1]; set by the owner, read by every update.
    """

    budget_fraction: float

    def install(self, task: InstallPlayer) -> None:
        """Hold a player's learner, from a checkpoint, from weights, or newly initialised."""
        ...

    def push(self, player: str, chunk: bytes) -> Weights:
        """Take a chunk to learn from; returns the newest weights.

        Raises:
          UnknownPlayer: not held here.
          ChunkError: the bytes are no chunk of this run and player.
          LearnerError: learning has failed.
        """
        ...

    def published(self, player: str) -> Weights:
        """The weights published last, for acting; they may be some updates behind. Raises UnknownPlayer."""
        ...

    def newest(self, player: str) -> Newest:
        """The newest weights of a player, and how far it is. Raises UnknownPlayer."""
        ...

    def progress(self) -> list[LearnerProgress]:
        """Progress of every player."""
        ...

    def reset(self, player: str, weights: Weights) -> None:
        """Start a player again from given weights; unrolls of its past self, also those still to come, are dropped."""
        ...

    def reconfigure(self, task: Reconfigure) -> None:
        """Give a player's learner other settings; one that is not held here is left to its installation."""
        ...

    def checkpoint(self, player: str) -> CheckpointTaken:
        """A player's restart state."""
        ...

    def close(self) -> None:
        """Release every learner; may be called twice."""
        ...


def progress_of(player: str, learner: Learner) -> Progress:
    """The learner's version and the number of fresh decisions that it has learnt from."""
    return Progress(player=player, version=learner.version, trained_steps=learner.trained_steps)


def newest_of(player: str, learner: Learner, update: UpdateReport | None) -> Newest:
    """The learner at this moment, its weights published."""
    return Newest(learner.publish(), progress_of(player, learner), update, learner.skipped_updates)


def player_learner(
    task: InstallPlayer,
    setup: HostSetup,
    spec: EnvSpec,
    *,
    dtype: torch.dtype,
    workers: Workers,
) -> Learner:
    """A player's learner, from a checkpoint, from weights, or newly initialised; errors as of `build_learner`.

    Raises:
      LeagueError: its backend computes wrong gradients.
    """
    own = setup.of(task.player)
    try:
        learner = build_learner(
            spec,
            own.network,
            tuned(task.learner or own.learner, task.hyperparameters),
            seed=_seed_of(task.player, setup),
            dtype=dtype,
            teacher=setup.teacher,
            launcher=workers.launcher,
            stage_device=workers.device,
            run_seed=setup.seed,
        )
    except GradientCheckError as error:
        raise LeagueError(f"learner.pipeline: {error}.") from error
    if task.saved is not None:
        learner.load(task.saved)
    elif task.weights is not None:
        learner.load_weights(task.weights, trained_steps=task.trained_steps)
    return learner


def player_source(
    player: str, setup: HostSetup, spec: EnvSpec, place: SourcePlace[ChunkT], *, part: str = ""
) -> RowSource[ChunkT]:
    """The row source of a player.

    Args:
      place: all but the facts of the run and of the player. part: name of a host that keeps a part of the rows.
    """
    own = setup.of(player)
    network = build_network(spec, own.network, seed=0)
    folder = Path(setup.rows) / player / part if setup.rows else None
    here = replace(place, chunk_rows=own.chunk_rows, seed=_seed_of(player + part, setup), folder=folder)
    return make_row_source(own.unrolls_of(spec, network), own.learner, here)


def _seed_of(player: str, setup: HostSetup) -> int:
    """Of a player's learner, and of the choice of its rows."""
    return zlib.crc32(f"{setup.seed}/{player}".encode())


def check_address(header: ChunkHeader, *, run: str, player: str) -> None:
    """Refuse chunks of another run or player.

    Raises:
      ChunkError: it is one.
    """
    if (header.run, header.player) != (run, player):
        raise ChunkError(f"a chunk of {header.run}/{header.player} came to {run}/{player}")


def decoded(chunk: OpenChunk, setup: HostSetup) -> Unrolls | SeatEpisodes:
    """The rows of a chunk, of the kind that its player learns from. setup: of the player.

    Raises:
      ChunkError: they are of another kind, the header does not cover their versions, or the host that made them has
        another table of noise.
    """
    if not setup.learner.evolves:
        unrolls = chunk.unrolls()
        check_versions(chunk.header, unrolls)
        return unrolls
    own = noise_table(setup.seed).checksum
    if chunk.header.noise != own:
        raise ChunkError(
            f"the table of noise of the actor host has the checksum {chunk.header.noise:x}, the learner's {own:x}: "
            "equal indices mean different perturbations; run the same version of numpy on every machine"
        )
    episodes = chunk.rows_of(SeatEpisodes)
    check_versions(chunk.header, episodes)
    try:
        episodes.check()
    except ValueError as error:
        raise ChunkError(str(error)) from error
    return episodes


def check_versions(header: ChunkHeader, unrolls: Record) -> None:
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
