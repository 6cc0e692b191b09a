"""The replay host as a Ray actor: it keeps its part of the rows of players, and outlives their learner hosts."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

from league.agents.learner.data.row_source import SourcePlace
from league.agents.learner.data.source_counts import SourceReport
from league.agents.learner.errors import FeederClosedError, FeederFullError, FeederTimeoutError
from league.agents.replay.replay_source import ReplaySource
from league.agents.replay.replay_table import Sample
from league.agents.replay.row_files import NoDiskSpaceError
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.codec import Lz4Codec, OpenChunk
from league.envs.registry import spec_of
from league.hosts.host_log import logs_its_errors, open_log
from league.hosts.learners.learner_host import decoded, player_source
from league.hosts.on_ray.host_processes import CREDITS, MAX_THREADS, MIN_ACTORS
from league.hosts.on_ray.nodes.host_placement import LIMITS
from league.hosts.on_ray.ray_actors import actor_class
from league.hosts.setup import HostSetup
from league.wording import counted

PUSHES, BATCHES, PROGRESS = "pushes", "batches", "progress"
"""Ray's names for the threads of a host that may wait for room or for rows, and for the one that says that it lives."""

SPARE_THREADS = 4
"""Threads for batches beyond one for each player: a learner host that was ended has left questions behind."""


@dataclass(frozen=True)
class ReplayProgress:
    """Sign of life of a replay host. has_worked: whether it has ever stored a chunk. remarks: for the user."""

    has_worked: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Kept:
    """The rows of a player."""

    source: ReplaySource[OpenChunk]
    generation: int


class ReplayHostProcess:
    """The rows of all players whose learners have a replay, one part of each; in a process of its own.

    Args:
      is_again: whether it takes the place of one that was lost, so that what it holds is worth a remark.
    """

    def __init__(self, setup: HostSetup, name: str, *, is_again: bool = False) -> None:
        prepare_process()
        open_log(setup.logs, name)
        self._setup = setup
        self._name = name
        self._is_again = is_again
        self._spec = spec_of(setup.env)
        self._codec = Lz4Codec()
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._remarks: list[str] = []
        self._has_worked = False

    def ready(self) -> tuple[int, str]:
        """The process id and the machine, once everything is built."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    @ray.method(concurrency_group=PUSHES)  # type: ignore[untyped-decorator]
    def push(self, player: str, generation: int, chunk: bytes, *, timeout_s: float) -> SourceReport:
        """As `ReplaySource.push`; returns the counts since it last did.

        Raises:
          FeederClosedError: the rows are of the player's past self. Else as of `ReplaySource.push`.
        """
        source, opened = self._source(player, generation), self._codec.open(chunk)
        source.push(opened, num_rows=opened.num_rows, timeout_s=timeout_s)
        self._has_worked = True
        return source.report()

    @ray.method(concurrency_group=BATCHES)  # type: ignore[untyped-decorator]
    def batch(self, player: str, generation: int, *, timeout_s: float) -> Sample | None:
        """As `ReplaySource.sample`; None where there are not enough rows within the deadline.

        Raises:
          FeederClosedError: the rows are of the player's past self. FeederFullError: they have no place.
        """
        with contextlib.suppress(FeederTimeoutError):
            return self._source(player, generation).sample(timeout_s=timeout_s)
        return None

    @logs_its_errors
    def update(self, player: str, generation: int, sample: Sample, row_errors: NDArray[np.float32]) -> None:
        """As `ReplaySource.update`; nothing where the player was reset meanwhile."""
        with self._lock:
            kept = self._kept.get(player)
        if kept is not None and kept.generation == generation:
            kept.source.update(sample, row_errors)

    @ray.method(concurrency_group=PROGRESS)  # type: ignore[untyped-decorator]
    def progress(self, *, budget_fraction: float) -> ReplayProgress:
        """Rows, losses and problems since the last question."""
        del budget_fraction
        with self._lock:
            remarks, self._remarks = tuple(self._remarks), []
        return ReplayProgress(self._has_worked, remarks)

    def _source(self, player: str, generation: int) -> ReplaySource[OpenChunk]:
        """The rows of a player; those of its past self are given up when the first question of a newer one comes."""
        with self._lock:
            kept = self._kept.get(player)
            if kept is None or kept.generation < generation:
                if kept is not None:
                    kept.source.close()
                opened = _Kept(self._opened(player, generation), generation)
                if kept is None:
                    self._remark(player, opened.source)
                kept = self._kept[player] = opened
            if kept.generation > generation:
                raise FeederClosedError(f"{player} has been reset: its rows begin again")
            return kept.source

    def _opened(self, player: str, generation: int) -> ReplaySource[OpenChunk]:
        own = self._setup.of(player)
        place: SourcePlace[OpenChunk] = SourcePlace(
            lambda chunk: decoded(chunk, own), generation=generation, parts=max(self._setup.replay_hosts, 1)
        )
        try:
            source = player_source(player, self._setup, self._spec, place, part=self._name)
        except NoDiskSpaceError as error:
            raise FeederFullError(str(error)) from error
        assert isinstance(source, ReplaySource), "a player with another source of rows keeps none here"
        return source

    def _remark(self, player: str, source: ReplaySource[OpenChunk]) -> None:
        """Say what has come back of the rows of an earlier process, or that none have."""
        table = source.table
        if table.size or table.torn:
            torn = f"; {counted(table.torn, 'row')} had not been written to the end" if table.torn else ""
            self._remarks.append(f"{self._name} has {counted(table.size, 'row')} of {player} from its file{torn}")
        elif self._is_again:
            self._remarks.append(f"{self._name} is back without the rows of {player} that it held")


def replay_host_class(*, num_actors: int, num_players: int) -> Any:
    """The Ray actor class of a replay host, for so many actor hosts and players."""
    pushes = min(max(num_actors, MIN_ACTORS) * (CREDITS + 2), MAX_THREADS)
    groups = {PUSHES: pushes, BATCHES: num_players + SPARE_THREADS, PROGRESS: 1}
    return actor_class(ReplayHostProcess, **groups).options(**LIMITS)
