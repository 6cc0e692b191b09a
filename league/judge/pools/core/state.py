"""The state of a rating pool, as the fold of its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from league.core.state.growable_array import GrowableArray
from league.core.state.state_codec import decode, encode
from league.judge.pools.core.events import (
    BatchExpired,
    BatchFailed,
    BatchFinished,
    BatchGranted,
    PolicyAdded,
    PoolCreated,
    PoolEvent,
    PoolOpened,
    PoolTestBegun,
    PoolTestEnded,
    StateCarried,
)
from league.judge.pools.core.records import BatchLease, BatchResult, PoolGame, PoolPolicy, PoolTestAccount

WINS, DRAWS, LOSSES, SQUARES, BATCHES = range(5)
"""Columns of the totals of a pair, from the side of the policy with the lower index."""
MAX_FAILURES = 3
"""Batches in a row that a policy may fail in; then it is not scheduled any more."""
COST_RATE = 0.25
"""Weight of a new batch in the seconds per game of its policies."""


@dataclass(eq=False)
class PoolState:
    """Everything that a pool knows.

    Fields:
      game: None before the pool is created. token: of the last opening.
      policies: in the order in which they joined; their place is their index.
      by_name, by_digest: indices; the digest is that of the weights, or the identity of an outside policy.
      games: int64 [N], games of each policy. failures: int64 [N], batches in a row that failed.
      seconds: float64 [N], part of each policy in the seconds of a game; those of a pair are the sum of two.
      reasons: index -> why its last batch failed.
      pair_place: (lower index, higher index) -> place of the pair. pairs: int64 [M, 2]; totals: float64 [M, 5].
      leases: open ones by number. next_lease_id: of the next.
      finished, failed, expired: leases so far.
      tests: of all times, by number; a pool of an earlier version has none.
    """

    game: PoolGame | None = None
    token: str = ""
    policies: list[PoolPolicy] = field(default_factory=list)
    by_name: dict[str, int] = field(default_factory=dict)
    by_digest: dict[str, int] = field(default_factory=dict)
    games: GrowableArray = field(default_factory=lambda: GrowableArray("<i8"))
    failures: GrowableArray = field(default_factory=lambda: GrowableArray("<i8"))
    seconds: GrowableArray = field(default_factory=lambda: GrowableArray("<f8"))
    reasons: dict[int, str] = field(default_factory=dict)
    pair_place: dict[tuple[int, int], int] = field(default_factory=dict)
    pairs: GrowableArray = field(default_factory=lambda: GrowableArray("<i8", (2,)))
    totals: GrowableArray = field(default_factory=lambda: GrowableArray("<f8", (5,)))
    leases: dict[int, BatchLease] = field(default_factory=dict)
    next_lease_id: int = 1
    finished: int = 0
    failed: int = 0
    expired: int = 0
    tests: dict[int, PoolTestAccount] = field(default_factory=dict)

    @property
    def open_tests(self) -> list[PoolTestAccount]:
        """The tests that last, oldest first."""
        return [account for account in self.tests.values() if not account.outcome]

    def is_playable(self, index: int) -> bool:
        """False for a policy that failed too often in a row."""
        return int(self.failures.values[index]) < MAX_FAILURES


def apply(state: PoolState, event: PoolEvent) -> PoolState:
    """The state after an event. It changes `state` and returns it, but for `StateCarried`, which makes another."""
    if isinstance(event, StateCarried):
        return from_plain(event.state)
    if isinstance(event, PoolCreated):
        state.game = event.game
    elif isinstance(event, PoolOpened):
        state.token = event.token
    elif isinstance(event, PolicyAdded):
        _add(state, event.policy)
    elif isinstance(event, BatchGranted):
        state.leases[event.lease.lease_id] = event.lease
        state.next_lease_id = event.lease.lease_id + 1
    elif isinstance(event, BatchFinished):
        _count(state, state.leases.pop(event.lease_id), event.result)
    elif isinstance(event, BatchFailed):
        lease = state.leases.pop(event.lease_id)
        state.failed += 1
        for index in (lease.home, lease.away):
            if (
                state.policies[index].elo is None
            ):  # an anchor is everybody's opponent, and its partner's fault is not its
                state.failures.values[index] += 1
                state.reasons[index] = event.reason
    elif isinstance(event, BatchExpired):
        del state.leases[event.lease_id]
        state.expired += 1
    elif isinstance(event, PoolTestBegun):
        state.tests[event.test.number] = PoolTestAccount(event.test)
    elif isinstance(event, PoolTestEnded):
        state.tests[event.number] = replace(state.tests[event.number], outcome=event.outcome, why=event.why)
    return state


def _add(state: PoolState, policy: PoolPolicy) -> None:
    index = len(state.policies)
    state.policies.append(policy)
    state.by_name[policy.name] = index
    if policy.digest or policy.identity:
        state.by_digest[policy.digest or policy.identity] = index
    for array in (state.games, state.failures, state.seconds):
        array.append(0)


def _count(state: PoolState, lease: BatchLease, result: BatchResult) -> None:
    assert state.game is not None
    low, high = sorted((lease.home, lease.away))
    place = state.pair_place.get((low, high))
    if place is None:
        place = state.pair_place[low, high] = state.pairs.append((low, high))
        state.totals.append(np.zeros(5))
    won, lost, squares = result.wins, result.losses, result.squares
    if lease.home != low:  # seen from the other side every group scores 1 - x
        groups = result.games / state.game.teams
        won, lost, squares = lost, won, squares + groups - 2.0 * result.score / state.game.teams
    state.totals.values[place] += (won, result.draws, lost, squares, 1)
    state.finished += 1
    account = state.tests.get(lease.test)
    if account is not None and not account.outcome and result.pairs:
        state.tests[lease.test] = replace(
            account,
            pairs=tuple(had + more for had, more in zip(account.pairs, result.pairs, strict=True)),
            wins=account.wins + result.wins,
            draws=account.draws + result.draws,
            losses=account.losses + result.losses,
        )
    both = [low, high]
    state.games.values[both] += result.games
    state.failures.values[both] = 0
    for index in both:
        state.reasons.pop(index, None)
    # The seconds of a game are those of two policies added: half of what was not foreseen goes to each.
    seconds = state.seconds.values
    surprise = result.seconds / result.games - float(seconds[both].sum())
    first = state.totals.values[place, BATCHES] == 1 and not seconds[both].any()
    seconds[both] = np.maximum(seconds[both] + (1.0 if first else COST_RATE) * surprise / 2.0, 0.0)


_STORED = (
    "game",
    "token",
    "policies",
    "games",
    "failures",
    "seconds",
    "reasons",
    "pairs",
    "totals",
    "leases",
    "next_lease_id",
    "finished",
    "failed",
    "expired",
    "tests",
)
_KINDS: dict[str, Any] = {
    "game": PoolGame,
    "policies": tuple[PoolPolicy, ...],
    "reasons": dict[int, str],
    "leases": dict[int, BatchLease],
    "tests": dict[int, PoolTestAccount],
    **dict.fromkeys(("games", "failures", "seconds", "pairs", "totals"), GrowableArray),
}


def to_plain(state: PoolState) -> dict[str, object]:
    """The state as JSON can hold it, exactly."""
    plain = {name: encode(getattr(state, name)) for name in _STORED if name != "game"}
    game = state.game
    plain["game"] = None
    if game is not None:
        plain["game"] = [game.env_id, game.teams, game.options, game.opening_plies, game.seats]
    return plain


def from_plain(plain: dict[str, Any]) -> PoolState:
    """The state again.

    Raises:
      KeyError, TypeError, ValueError: another version wrote it in another form.
    """
    state = PoolState()
    for name in _STORED:
        value = plain.get(name, {}) if name == "tests" else plain[name]
        setattr(state, name, decode(_KINDS[name], value) if name in _KINDS and name != "game" else value)
    state.game = None if plain["game"] is None else PoolGame(*plain["game"])
    state.policies = list(state.policies)
    state.by_name = {policy.name: index for index, policy in enumerate(state.policies)}
    own = [policy.digest or policy.identity for policy in state.policies]
    state.by_digest = {digest: index for index, digest in enumerate(own) if digest}
    state.pair_place = {(int(low), int(high)): place for place, (low, high) in enumerate(state.pairs.values)}
    return state
