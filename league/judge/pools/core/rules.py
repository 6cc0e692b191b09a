"""The rules of a rating pool: commands become events, or are refused with one sentence."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from league.judge.matches.sprt import SprtConfig
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
)
from league.judge.pools.core.records import (
    BOT,
    MAX_BATCH_GAMES,
    OUTSIDE,
    SNAPSHOT,
    BatchLease,
    BatchResult,
    PoolGame,
    PoolPolicy,
    PoolTest,
    result_problem,
)
from league.judge.pools.core.state import PoolState

MAX_POLICIES = 20_000
MAX_OPEN_LEASES = 1_000
MAX_NAME, MAX_REASON = 120, 500
MAX_ELO = 10_000.0
MAX_OPEN_TESTS, MAX_TEST_GAMES = 200, 10_000_000
OUTCOMES = ("H0", "H1", "undecided", "withdrawn")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]*")
_OUTSIDE_NAME = re.compile(r"[a-z]+:[A-Za-z0-9._:@+/?=&%~-]+")


class PoolRefused(Exception):  # noqa: N818 - it is an answer, not a failure
    """The pool refused a command; the text says by which rule."""


class AlreadyThere(PoolRefused):
    """The policy has joined before."""


class NotOpen(PoolRefused):
    """The lease is not open, or not this worker's: its answer counts for nothing."""


@dataclass(frozen=True)
class CreatePool:
    """Begin a pool of a game."""

    game: PoolGame


@dataclass(frozen=True)
class OpenPool:
    """Take the pool over. token: a new one."""

    token: str


@dataclass(frozen=True)
class AddPolicy:
    """Have a policy join."""

    policy: PoolPolicy


@dataclass(frozen=True)
class GrantBatch:
    """Grant a batch of games. worker: who asked; the others as in `BatchLease`."""

    worker: str
    home: int
    away: int
    games: int
    duration_s: float
    test: int = 0


@dataclass(frozen=True)
class FinishBatch:
    """Count the answer to a lease, at most once."""

    lease_id: int
    token: str
    result: BatchResult


@dataclass(frozen=True)
class FailBatch:
    """Note that a worker could not play a lease. reason: one sentence."""

    lease_id: int
    token: str
    reason: str


@dataclass(frozen=True)
class ExpireBatch:
    """Give a lease up. reason: one sentence. token: of the lease where its worker asks; None where the pool does."""

    lease_id: int
    reason: str
    token: str | None = None


@dataclass(frozen=True)
class BeginTest:
    """Begin a test. first, second: names or digests of policies; the others as in `PoolTest`."""

    first: str
    second: str
    config: SprtConfig
    max_games: int
    by: str = ""
    reason: str = ""
    request: str = ""


@dataclass(frozen=True)
class EndTest:
    """End a test; see `PoolTestEnded`."""

    number: int
    outcome: str
    why: str = ""


PoolCommand = (
    CreatePool | OpenPool | AddPolicy | GrantBatch | FinishBatch | FailBatch | ExpireBatch | BeginTest | EndTest
)


def decide(state: PoolState, command: PoolCommand) -> PoolEvent:
    """The event that a command becomes.

    Raises:
      PoolRefused: the command does not fit the state.
    """
    if isinstance(command, CreatePool):
        return _create(state, command.game)
    if state.game is None:
        raise PoolRefused("the pool has no game yet")
    if isinstance(command, OpenPool):
        return PoolOpened(command.token)
    if isinstance(command, AddPolicy):
        return _add(state, command.policy)
    if isinstance(command, GrantBatch):
        return _grant(state, command)
    if isinstance(command, BeginTest):
        return PoolTestBegun(_test(state, command))
    if isinstance(command, EndTest):
        return _end_test(state, command)
    if isinstance(command, FinishBatch):
        lease = _open_lease(state, command.lease_id, command.token)
        problem = result_problem(command.result, games=lease.games, teams=state.game.teams)
        if problem:
            raise PoolRefused(f"lease {command.lease_id}: {problem}")
        return BatchFinished(command.lease_id, command.token, command.result)
    if isinstance(command, FailBatch):
        _open_lease(state, command.lease_id, command.token)
        return BatchFailed(command.lease_id, command.reason[:MAX_REASON])
    _open_lease(state, command.lease_id, command.token)
    return BatchExpired(command.lease_id, command.reason[:MAX_REASON])


def _create(state: PoolState, game: PoolGame) -> PoolCreated:
    if state.game is not None:
        raise PoolRefused("the pool has a game already")
    if game.teams < 2:
        raise PoolRefused(f"{game.env_id} has one team: there is nobody to be rated against")
    return PoolCreated(game)


def _add(state: PoolState, policy: PoolPolicy) -> PolicyAdded:
    own = policy.digest or policy.identity
    if own and own in state.by_digest:
        known = state.policies[state.by_digest[own]]
        raise AlreadyThere(f"{known.name} is the same policy as {policy.name}")
    if policy.name in state.by_name:
        kind = AlreadyThere if policy.kind == BOT else PoolRefused
        raise kind(f"the pool has a policy {policy.name} already")
    form = _OUTSIDE_NAME if policy.kind == OUTSIDE else _NAME
    if len(policy.name) > MAX_NAME or form.fullmatch(policy.name) is None:
        raise PoolRefused(f"{policy.name[:80]!r} is no name: use at most {MAX_NAME} of A-Z, a-z, 0-9 and ._:@+-")
    has_own = {SNAPSHOT: policy.digest, OUTSIDE: policy.identity}.get(policy.kind, policy.kind == BOT)
    if not has_own or (policy.kind != SNAPSHOT and policy.digest) or (policy.kind != OUTSIDE and policy.identity):
        raise PoolRefused(f"{policy.name} is no bot, no snapshot with its digest and no contender with its identity")
    if policy.elo is not None and not (math.isfinite(policy.elo) and abs(policy.elo) <= MAX_ELO):
        raise PoolRefused(f"the Elo of the anchor {policy.name} must lie between -{MAX_ELO:g} and {MAX_ELO:g}")
    if len(state.policies) >= MAX_POLICIES:
        raise PoolRefused(f"the pool holds {MAX_POLICIES} policies, the most it takes: begin another")
    return PolicyAdded(policy)


def _grant(state: PoolState, command: GrantBatch) -> BatchGranted:
    assert state.game is not None
    here = range(len(state.policies))
    if command.home not in here or command.away not in here or command.home == command.away:
        raise PoolRefused(f"policies {command.home} and {command.away} are no two of the pool")
    if not all(map(state.is_playable, (command.home, command.away))):
        raise PoolRefused("a policy that failed too often is not played")
    if not 0 < command.games <= MAX_BATCH_GAMES or command.games % state.game.teams:
        raise PoolRefused(
            f"a batch has a multiple of {state.game.teams} and at most {MAX_BATCH_GAMES} games, not {command.games}"
        )
    account = state.tests.get(command.test)
    if command.test and (account is None or (account.test.first, account.test.second) != (command.home, command.away)):
        raise PoolRefused(f"test {command.test} is not of these two policies")
    if len(state.leases) >= MAX_OPEN_LEASES:
        raise PoolRefused(f"{MAX_OPEN_LEASES} leases are open, the most there may be")
    lease = BatchLease(
        lease_id=state.next_lease_id,
        token=state.token,
        worker=command.worker[:MAX_NAME],
        home=command.home,
        away=command.away,
        games=command.games,
        duration_s=command.duration_s,
        test=command.test,
    )
    return BatchGranted(lease)


def _test(state: PoolState, command: BeginTest) -> PoolTest:
    assert state.game is not None
    if state.game.teams != 2:
        raise PoolRefused(f"{state.game.env_id} has {state.game.teams} teams: a test is of one against one")
    places = []
    for name in (command.first, command.second):
        place = state.by_name.get(name, state.by_digest.get(name))
        if place is None:
            raise PoolRefused(f"the pool has no policy {name}")
        places.append(place)
    first, second = places
    if first == second:
        raise PoolRefused(f"{command.first} is not tested against itself")
    if command.request and any(account.test.request == command.request for account in state.tests.values()):
        raise AlreadyThere(f"the test of {command.first} against {command.second} was taken up before")
    config = command.config
    if not max(abs(config.elo0), abs(config.elo1)) <= MAX_ELO:
        raise PoolRefused(f"elo0 and elo1 must lie between -{MAX_ELO:g} and {MAX_ELO:g}")
    if not 2 <= command.max_games <= MAX_TEST_GAMES:
        raise PoolRefused(f"a test has 2 to {MAX_TEST_GAMES:,} games, not {command.max_games}")
    if len(state.open_tests) >= MAX_OPEN_TESTS:
        raise PoolRefused(f"{MAX_OPEN_TESTS} tests are open, the most there may be")
    number = max(state.tests, default=0) + 1
    by, reason = command.by[:MAX_NAME], command.reason[:MAX_REASON]
    return PoolTest(number, first, second, config, command.max_games, by, reason, command.request)


def _end_test(state: PoolState, command: EndTest) -> PoolTestEnded:
    account = state.tests.get(command.number)
    if account is None:
        raise PoolRefused(f"there is no test {command.number}")
    if account.outcome:
        raise PoolRefused(f"test {command.number} has ended already: {account.outcome}")
    if command.outcome not in OUTCOMES:
        raise PoolRefused(f"{command.outcome!r} is no outcome of a test")
    return PoolTestEnded(command.number, command.outcome, command.why[:MAX_REASON])


def _open_lease(state: PoolState, lease_id: int, token: str | None) -> BatchLease:
    lease = state.leases.get(lease_id)
    if lease is None:
        past = 1 <= lease_id < state.next_lease_id
        raise NotOpen(f"lease {lease_id} " + ("was answered or given up before" if past else "was never granted"))
    if token not in (None, lease.token):
        raise NotOpen(f"lease {lease_id} was granted under another token: the answer is not of this lease")
    return lease
