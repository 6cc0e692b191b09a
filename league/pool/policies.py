"""The policies of a pool as a worker plays them: bots by name, snapshots from weights that are verified once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from agents.acting.policy import Policy
from envs.protocol import EnvSpec
from league.eval.pairs import bot_entrant
from league.policies.loading import build_policy
from league.pool.core.records import BOT, PoolPolicy
from league.store.snapshots import SnapshotManifest

MAX_HELD = 64
"""Policies that a worker keeps ready."""

Weights = Callable[[str], tuple[bytes, SnapshotManifest]]
"""Digest -> weights and manifest, verified."""


class ReadyPolicies:
    """Policies ready to play, the least recently used going first.

    Args:
      spec: of the game. weights: where those of snapshots come from. source: for messages.
    """

    def __init__(self, spec: EnvSpec, weights: Weights, *, source: Path) -> None:
        self._spec = spec
        self._weights = weights
        self._source = source
        self._held: OrderedDict[str, Policy] = OrderedDict()

    def get(self, policy: PoolPolicy, *, seed: int) -> Policy:
        """The policy, made where it is not ready. seed: of a bot's draws.

        Raises:
          LeagueError, EnvError: it cannot be made here.
        """
        if policy.kind == BOT:
            return bot_entrant(policy.name, seed=seed)
        if policy.digest not in self._held:
            weights, manifest = self._weights(policy.digest)
            made = build_policy(policy.name, weights, manifest, self._spec, source=self._source).as_seat_policy()
            while len(self._held) >= MAX_HELD:
                self._held.popitem(last=False)
            self._held[policy.digest] = made
        self._held.move_to_end(policy.digest)
        return self._held[policy.digest]
