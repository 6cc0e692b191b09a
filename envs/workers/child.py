"""The process that steps a share of the games: `python -m league.envs.workers.child SOCKET LIFE MEMORY TRACE`.

It imports numpy and the env, runs one thread, and dies with its parent: the kernel kills its process group as soon as
the parent's end of the pipe LIFE is closed, whatever the games do at that moment.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import fcntl
import mmap
import os
import select
import signal
import socket
import sys
from typing import Any

import numpy as np

from league.envs.failures import FailureCount, FaultTolerant
from league.envs.guard.foreign_code import stand_ins
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, Turn
from league.envs.registry import make
from league.envs.search.known_tree import known_tree, tree_to_bytes
from league.envs.search.tree_walk import Progress
from league.envs.workers.channel import (
    END,
    ERROR,
    MADE,
    MAKE,
    PROGRESS,
    RESET,
    RESUME,
    STEP,
    TREE,
    TURN,
    VISIT,
    Channel,
    ChannelClosed,
)
from league.envs.workers.replay import ReplayableEnv, ReplayedPosition
from league.envs.workers.shared_turn import SharedTurn, block_size
from league.envs.workers.spec_text import spec_to_text


class ChildGames:
    """The games of this process.

    Args:
      config: of the env. num_games: n. first: number of the first one in the whole batch.
      memory: file descriptor of the shared memory.
    """

    def __init__(self, config: EnvConfig, *, num_games: int, first: int, memory: int) -> None:
        self._env: BatchedEnv = make(config, num_envs=num_games)
        self._first = first
        self._memory = memory
        self._shared: SharedTurn | None = None
        self._steps = 0
        self._tolerant = False
        self.spec = self._env.spec

    def attach(self) -> None:
        """Map the shared memory, once the parent has given it its size."""
        block = mmap.mmap(self._memory, block_size(self.spec, self._env.num_envs))
        self._shared = SharedTurn(self.spec, self._env.num_envs, block)
        if isinstance(self._env, ReplayableEnv):
            self._env.number_games_from(self._first)
            self._env.report_to(self._shared.place.data)

    def tolerate(self) -> None:
        """Outlive exceptions of single games where the env can; its strikes are counted in shared memory."""
        assert self._shared is not None
        if isinstance(self._env, FaultTolerant) and not self._tolerant:
            self._tolerant = True
            count = FailureCount(self._env.num_envs, strikes=self._shared.strikes.data, may_lose_all=True)
            self._env.tolerate_failures(count)

    def reset(self, seed: int) -> None:
        """Restart every game."""
        self._enter(step=0)
        self._store(self._env.reset(self._seed(seed)))

    def step(self) -> None:
        """Step every game with the actions in shared memory."""
        assert self._shared is not None
        self._enter(step=self._steps + 1)
        self._store(self._env.step(self._shared.actions[: self._slots]))

    def resume(self, seed: int, positions: list[ReplayedPosition | None], *, restarts: int) -> None:
        """Put every game where it was, or start it again; restarts: of this process, for games without positions."""
        if isinstance(self._env, ReplayableEnv):
            self._store(self._env.resume(seed, positions))
            return
        self._enter(step=0)
        turn = self._env.reset(self._seed(seed, restarts))
        lost = np.array([position is not None and position.lost for position in positions])
        self._store(dataclasses.replace(turn, aborted=lost))

    def write_tree(self, limit_s: float, progress: Progress) -> int:
        """Visit every history of the game and write its tree into the memory; returns the number of bytes."""
        payload = tree_to_bytes(known_tree(self._env, limit_s=limit_s, progress=progress))
        os.ftruncate(self._memory, len(payload))
        os.pwrite(self._memory, payload, 0)
        return len(payload)

    def failures(self) -> list[dict[str, Any]] | None:
        """The failures of single games since the last call, None if there was none."""
        found = self._env.take_failures() if isinstance(self._env, FaultTolerant) and self._tolerant else ()
        return [dataclasses.asdict(failure) for failure in found] or None

    def close(self) -> None:
        """Close the games."""
        self._env.close()

    def _seed(self, seed: int, restarts: int = 0) -> int:
        if isinstance(self._env, ReplayableEnv):
            return seed
        return int(np.random.SeedSequence((seed, self._first, restarts)).generate_state(1)[0]) >> 1

    def _enter(self, *, step: int) -> None:
        self._steps = step
        if not isinstance(self._env, ReplayableEnv):
            assert self._shared is not None
            self._shared.place[1:] = -1, 0, step
            self._shared.place[0] += 1

    def _store(self, turn: Turn) -> None:
        assert self._shared is not None
        self._slots = turn.env_index.size
        none = [0] * self._env.num_envs
        self._shared.write(turn, self._env.episodes if isinstance(self._env, ReplayableEnv) else none)


def die_with_parent(life: int) -> None:
    """Let the kernel kill this process group as soon as the other end of a pipe is closed."""
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | fcntl.FASYNC)
    poll = select.poll()
    poll.register(life, 0)
    if poll.poll(0):  # it was closed before
        os._exit(1)


def serve(channel: Channel, *, memory: int) -> None:
    """Answer the parent until it says that it is over or leaves."""
    share: ChildGames | None = None
    while True:
        kind, payload = channel.receive()
        if kind == END:
            break
        try:
            if kind == MAKE:
                config = EnvConfig(**payload["config"])
                share = ChildGames(config, num_games=payload["num_games"], first=payload["first"], memory=memory)
                channel.send(MADE, spec_to_text(share.spec))
                continue
            assert share is not None, "no games were made"
            if kind == VISIT:
                channel.send(TREE, share.write_tree(payload, lambda *counts: channel.send(PROGRESS, counts)))
                continue
            if kind == STEP:
                share.step()
            elif kind == RESET:
                share.attach()
                if payload["tolerant"]:
                    share.tolerate()
                share.reset(payload["seed"])
            elif kind == RESUME:
                share.attach()
                share.tolerate()
                positions = [None if given is None else ReplayedPosition(**given) for given in payload["positions"]]
                share.resume(payload["seed"], positions, restarts=payload["restarts"])
        except EnvError as error:
            channel.send(ERROR, str(error))
        else:
            channel.send(TURN, share.failures())
    if share is not None:
        share.close()


def main() -> None:
    """Set this process up and serve. Arguments: four file descriptors."""
    end, life, memory, trace = (int(number) for number in sys.argv[1:5])
    stand_ins.may_end = True  # the parent replaces this process, which may have been harmed before it ends
    die_with_parent(life)
    faulthandler.enable(file=trace, all_threads=False)
    faulthandler.register(signal.SIGUSR2, file=trace, all_threads=False)
    try:
        serve(Channel(socket.socket(fileno=end)), memory=memory)
    except ChannelClosed:
        return


if __name__ == "__main__":
    main()
