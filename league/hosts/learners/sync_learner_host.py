"""The learner host of one process: everything in the caller's thread, so that equal calls have equal results."""

from __future__ import annotations

import torch

from league.agents.learner.data.row_source import RowSource, SourcePlace
from league.agents.learner.learner import Learner, UpdateReport
from league.agents.unroll.codec import Lz4Codec
from league.agents.unroll.device_unrolls import AnyRows, DeviceUnrolls
from league.agents.weights import Weights
from league.envs.registry import spec_of
from league.hosts.learners.learner_host import (
    Newest,
    UnknownPlayer,
    Workers,
    check_address,
    decoded,
    player_learner,
    player_source,
    progress_of,
)
from league.hosts.protocol import CheckpointTaken, InstallPlayer, LearnerProgress, Reconfigure
from league.hosts.setup import HostSetup


class SyncLearnerHost:
    """Learners by player; a push returns when the learner has learnt.

    Args:
      setup: what to build.
      dtype: compute type of the forward passes.
    """

    def __init__(self, setup: HostSetup, *, dtype: torch.dtype) -> None:
        self.budget_fraction = 0.0
        self._setup = setup
        self._dtype = dtype
        self._spec = spec_of(setup.env)
        self._codec = Lz4Codec()
        self._learners: dict[str, Learner] = {}
        self._generations: dict[str, int] = {}
        self._sources: dict[str, RowSource[AnyRows]] = {}
        self._updates: dict[str, UpdateReport] = {}
        self._published: dict[str, Weights] = {}
        self._first_version: dict[str, int] = {}

    def install(self, task: InstallPlayer) -> None:
        self._drop(task.player)
        self._learners[task.player] = player_learner(
            task, self._setup, self._spec, dtype=self._dtype, workers=Workers()
        )
        self._generations[task.player] = task.generation
        self._sources[task.player] = self._source(task.player)

    def push(self, player: str, chunk: bytes) -> Weights:
        """As in the protocol; learns at once from every whole batch.

        Raises:
          NonFiniteError: from the learner.
        """
        learner = self._learner(player)
        opened = self._codec.open(chunk)
        check_address(opened.header, run=self._setup.run, player=player)
        rows = decoded(opened, self._setup.of(player))
        if opened.header.version_max < self._first_version.get(player, 0):
            return self._published_weights(player)
        self._take(player, learner, rows)
        return self._published_weights(player)

    def push_rows(self, player: str, rows: DeviceUnrolls) -> Weights:
        """As `push`, of rows on the learner's device, which stay there.

        Raises:
          UnknownPlayer: not held here.
          NonFiniteError: from the learner.
        """
        first = self._first_version.get(player, 0)
        self._take(player, self._learner(player), rows.since(first) if first else rows)
        return self._published_weights(player)

    def published(self, player: str) -> Weights:
        return self._published_weights(player)

    def newest(self, player: str) -> Newest:
        learner = self._learner(player)
        return Newest(
            self._published_weights(player),
            progress_of(player, learner),
            self._updates.get(player),
            learner.skipped_updates,
        )

    def progress(self) -> list[LearnerProgress]:
        return [
            LearnerProgress(progress_of(player, learner), self._updates.get(player), learner.skipped_updates)
            for player, learner in self._learners.items()
        ]

    def reset(self, player: str, weights: Weights) -> None:
        learner = self._learner(player)
        learner.reset(weights)
        self._first_version[player] = learner.version
        self._generations[player] += 1
        self._sources[player].close()
        self._sources[player] = self._source(player)

    def reconfigure(self, task: Reconfigure) -> None:
        if task.player in self._learners:
            self._learners[task.player].reconfigure(task.learner)

    def checkpoint(self, player: str) -> CheckpointTaken:
        learner = self._learner(player)
        return CheckpointTaken(progress=progress_of(player, learner), saved=learner.save())

    def close(self) -> None:
        """Release every learner; may be called twice."""
        for player in list(self._learners):
            self._drop(player)

    def _take(self, player: str, learner: Learner, unrolls: AnyRows) -> None:
        """Take rows in and learn from every batch that is whole."""
        source, config = self._sources[player], self._setup.of(player).learner
        source.push(unrolls, num_rows=unrolls.num_rows)
        while source.rows_ready >= config.batch_rows:
            with source.batch(timeout_s=0.0) as blocks:
                self._updates[player] = learner.update_stream(
                    blocks,
                    budget_fraction=self.budget_fraction,
                    threads=config.pieces,
                    fresh_steps=blocks.fresh_steps,
                )
                source.learnt(learner.row_errors)

    def _source(self, player: str) -> RowSource[AnyRows]:
        """An empty source of a player's rows, which come decoded."""
        place = SourcePlace(_as_they_are, threads=0, generation=self._generations[player])
        return player_source(player, self._setup, self._spec, place)

    def _published_weights(self, player: str) -> Weights:
        """The newest weights; the same object until the version changes."""
        learner = self._learner(player)
        held = self._published.get(player)
        if held is None or held.version != learner.version:
            self._published[player] = learner.publish()
        return self._published[player]

    def _learner(self, player: str) -> Learner:
        if player not in self._learners:
            raise UnknownPlayer(f"player {player} is not held by this learner host")
        return self._learners[player]

    def _drop(self, player: str) -> None:
        learner = self._learners.pop(player, None)
        if learner is not None:
            learner.close()
            self._sources.pop(player).close()
        for table in (self._updates, self._published, self._first_version):
            table.pop(player, None)


def _as_they_are(rows: AnyRows) -> AnyRows:
    return rows
