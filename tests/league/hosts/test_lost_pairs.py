"""A killed actor host of an evolution strategy: its pairs are played again, each counts once, and late ones do not."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch

from league.agents.learner.config import LearnerConfig
from league.agents.weights import Weights
from league.hosts.actors.actor_host import ActorHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from tests.league.hosts.host_cases import lease_of, setup_of

PLAYER = "main-0"
ROWS = 4
"""Episodes in one chunk, and at least in one update."""
KILLED_AFTER = 5
"""Chunks: 20 episodes of the 48 that a step takes."""
LEASE_STEPS = 12
SETUP = dataclasses.replace(
    setup_of(num_envs=8, chunk_rows=ROWS),
    learner=LearnerConfig(algorithm={"kind": "es", "evaluations": 48}, max_policy_lag=0, batch_rows=ROWS),
    acting={"kind": "perturbed", "sigma": 0.1},
    num_splits=2,
)


class _OverError(Exception):
    """Ends a lease from the learners' side."""


class Learners:
    """Learners of one player, and the chunks that came. is_over: asked after each."""

    def __init__(self, host: SyncLearnerHost, is_over: Callable[[Learners], bool]) -> None:
        self.host, self._is_over = host, is_over
        self.chunks: list[bytes] = []

    def push(self, player: str, chunk: bytes) -> Weights:
        self.chunks.append(chunk)
        weights = self.host.push(player, chunk)
        if self._is_over(self):
            raise _OverError
        return weights

    def weights(self, player: str) -> Weights:
        return self.host.published(player)


class Piped:
    """Learners in another process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def push(self, player: str, chunk: bytes) -> Weights:
        return self._asked("push", player, chunk)

    def weights(self, player: str) -> Weights:
        return self._asked("weights", player)

    def _asked(self, *call: object) -> Weights:
        self._connection.send(call)
        weights: Weights = self._connection.recv()
        return weights


def learner_host() -> SyncLearnerHost:
    host = SyncLearnerHost(SETUP, dtype=torch.float32)
    host.install(InstallPlayer(PLAYER))
    return host


def play(learners: Learners | Piped) -> None:
    """Play lease after lease, until the learners end it."""
    actors = ActorHost(SETUP, name="actor-0", dtype=torch.float32)
    for number in itertools.count(1):
        actors.play(lease_of(lease_id=number, steps=LEASE_STEPS), frozen={}, learners=learners)


def play_in_child(connection: Connection) -> None:
    play(Piped(connection))


def played_until_killed(learners: Learners) -> None:
    """Play in a process of its own, which gets SIGKILL in place of the learners' last answer."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=play_in_child, args=(there,), daemon=True)
    child.start()
    there.close()
    with contextlib.closing(here), contextlib.suppress(_OverError):
        while True:
            call, *values = here.recv()
            here.send(getattr(learners, call)(*values))
    child.kill()
    child.join()


def has_stepped(learners: Learners) -> bool:
    return learners.host.newest(PLAYER).weights.version > 0


def test_pairs_of_a_killed_host_are_played_again_and_count_once() -> None:
    alone, host = learner_host(), learner_host()
    undisturbed, again = Learners(alone, has_stepped), Learners(host, has_stepped)
    killed = Learners(host, lambda learners: len(learners.chunks) == KILLED_AFTER)
    played_until_killed(killed)
    assert not has_stepped(killed)
    for learners in (undisturbed, again):
        with contextlib.suppress(_OverError):
            play(learners)
    assert again.chunks == undisturbed.chunks and again.chunks[:KILLED_AFTER] == killed.chunks
    wanted, found = alone.newest(PLAYER), host.newest(PLAYER)
    assert found.weights.vector.tobytes() == wanted.weights.vector.tobytes()
    assert found.progress.trained_steps == wanted.progress.trained_steps > 0
    host.push(PLAYER, killed.chunks[-1])  # it was on its way when its host was killed
    late = host.newest(PLAYER)
    assert late.update is not None and late.update.stale_steps == ROWS
    assert late.weights.vector.tobytes() == wanted.weights.vector.tobytes()
    assert late.progress.trained_steps == wanted.progress.trained_steps
