"""The policies of a pool as a worker plays them: bots by name, snapshots from weights that are verified once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from league.agents.acting.policy import Policy
from league.envs.protocol import EnvConfig, EnvSpec
from league.errors import LeagueError
from league.judge.contenders.bots import bot_policy
from league.judge.contenders.contender import Contender, OpenConditions, plain_game
from league.judge.contenders.finding import finder_of
from league.judge.pools.core.records import BOT, OUTSIDE, PoolPolicy
from league.policies.loading import build_policy
from league.policies.trust import is_trusted
from league.store.snapshots import SnapshotManifest

MAX_HELD = 64
"""Policies that a worker keeps ready."""

Weights = Callable[[str], tuple[bytes, SnapshotManifest]]
"""Digest -> weights and manifest, verified."""


class NotHere(LeagueError):  # noqa: N818
    """A worker has not the engine or the served policy that it is to play. name: of the policy."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be played here: {reason}")
        self.name = name


class ReadyPolicies:
    """Policies ready to play, the least recently used going first.

    Args:
      env, spec: of the game. weights: where those of snapshots come from.
      pool: its folder or address; where the user trusts it, the programs and addresses that only it names are used.
    """

    def __init__(self, env: EnvConfig, spec: EnvSpec, weights: Weights, *, pool: Path | str) -> None:
        self._game = plain_game(env, spec)
        self._is_trusted = is_trusted(pool)
        self._found: dict[str, Contender] = {}
        self._spec = spec
        self._weights = weights
        self._source = Path(pool)
        self._held: OrderedDict[str, Policy] = OrderedDict()

    @contextmanager
    def open(self, policy: PoolPolicy, *, seed: int) -> Iterator[Policy]:
        """A policy for one batch. seed: of its own draws.

        Raises:
          NotHere: an outside policy is not there, or is another one. LeagueError, EnvError: it cannot be made here.
        """
        if policy.kind == OUTSIDE:
            with self._outside(policy).open(self._game, OpenConditions(seed, greedy=False)) as opened:
                yield opened
        else:
            yield self._get(policy, seed=seed)

    def _outside(self, policy: PoolPolicy) -> Contender:
        if not self._is_trusted:
            raise NotHere(
                policy.name, "only the pool names it; give --trust to run its programs and ask its addresses."
            )
        if policy.name not in self._found:
            try:
                (found,) = finder_of(policy.name)(policy.name)
            except LeagueError as error:
                raise NotHere(policy.name, str(error)) from error
            if found.identity != policy.identity:
                raise NotHere(policy.name, "it is another version, or has other options or weights, than the pool's.")
            self._found[policy.name] = found
        return self._found[policy.name]

    def _get(self, policy: PoolPolicy, *, seed: int) -> Policy:
        if policy.kind == BOT:
            return bot_policy(policy.name, seed=seed)
        if policy.digest not in self._held:
            weights, manifest = self._weights(policy.digest)
            made = build_policy(policy.name, weights, manifest, self._spec, source=self._source).as_seat_policy()
            while len(self._held) >= MAX_HELD:
                self._held.popitem(last=False)
            self._held[policy.digest] = made
        self._held.move_to_end(policy.digest)
        return self._held[policy.digest]
