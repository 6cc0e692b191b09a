"""A peer's trained network as a bot of the judge, and as a function of information states.

Also for the command line: `bot:benchmarks/peers/network_bot.py:NetworkBot?path=FILE.npz&greedy=1`.

Shape letters: K slots, A actions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.trainers.seats import DenseNetwork, drawn
from league.envs.bots import legal_actions
from league.envs.protocol import BatchedEnv, Turn
from league.policies.exact.behaviours import Fields


class NetworkBot:
    """Plays by the network of a file of `save_layers`: the likeliest action, or a drawn one."""

    def __init__(self, path: str, greedy: float, seed: int) -> None:
        self._network = DenseNetwork.load(Path(path))
        self._greedy = bool(greedy)
        self._rng = np.random.default_rng(seed)

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """See `Bot.act`."""
        fields = {name: array[slots] for name, array in turn.obs.items()}
        probs = self.probs(fields, legal_actions(env, turn)[slots])
        return probs.argmax(axis=1) if self._greedy else drawn(probs, self._rng)

    def probs(self, fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Probabilities [K, A], as a `PolicyFunction`."""
        flat = [np.asarray(array, np.float32).reshape(len(legal), -1) for array in fields.values()]
        return self._network.probs(np.concatenate(flat, axis=1), legal)
