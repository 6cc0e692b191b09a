"""Tests of a pool: how one is asked for, and the table of all."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.core.state.records import BOT_PREFIX
from league.judge.matches.match_result import score_interval
from league.judge.matches.sprt import PAIR_SCORES, elo_of, sequential_test
from league.judge.pools.core.records import PoolTestAccount
from league.judge.pools.core.rules import BeginTest, PoolRefused
from league.judge.pools.core.state import PoolState
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool
from league.judge.pools.members import add_contenders, copies_of, is_outside
from league.judge.pools.pool import PoolError, PoolInUse, open_pool
from league.judge.pools.request_file import SUFFIX, PoolRequest, write_request
from league.text_table import TextTable


@dataclass(frozen=True)
class PoolTestRow:
    """A test and what it says so far.

    Fields:
      number, first, second: of the test. elo0, elo1, alpha, beta, max_games: its hypotheses, errors and end.
      games, wins, draws, losses: so far. pairs: [5], see `PoolTestAccount`.
      ratio, lower, upper: log-likelihood ratio of H1 over H0, and where H0 or H1 is accepted.
      elo, low, high: strength of the first over the second and its 95 % interval; None without a bound.
      playing: batches in hand. outcome, why, by, reason: as in `PoolTestAccount`.
    """

    number: int
    first: str
    second: str
    elo0: float
    elo1: float
    alpha: float
    beta: float
    max_games: int
    games: int
    wins: int
    draws: int
    losses: int
    pairs: tuple[int, ...]
    ratio: float
    lower: float
    upper: float
    elo: float | None
    low: float | None
    high: float | None
    playing: int
    outcome: str
    why: str
    by: str
    reason: str


def test_rows(state: PoolState) -> list[PoolTestRow]:
    """All tests of a pool, newest first."""
    return [_row(state, account) for account in reversed(state.tests.values())]


def rows_json(rows: Sequence[PoolTestRow]) -> str:
    """The rows as one JSON object."""
    return msgspec.json.format(msgspec.json.encode({"tests": rows}), indent=1).decode()


def rows_text(rows: Sequence[PoolTestRow]) -> str:
    """The rows for people."""
    if not rows:
        return "no test yet: `league pool test DIR FIRST SECOND` begins one"
    heads = ("", "first", "second", "games", "pairs", "LLR", "of", "Elo", "95 %", "")
    cells = []
    for row in rows:
        bounds = f"{row.lower:.2f} to {row.upper:.2f}"
        interval = f"{_signed(row.low)} to {_signed(row.high)}"
        end = row.outcome or f"{row.playing} in hand"
        pairs = " ".join(map(str, row.pairs))
        cells.append(
            (row.number, row.first, row.second, row.games, pairs, row.ratio, bounds, _signed(row.elo), interval, end)
        )
    return "\n".join(TextTable(heads, cells, (1, 2, 9), ("", "", "", ",", "", ".2f")).lines())


def ask_pool(folder: PoolFolder, request: PoolRequest) -> str:
    """Have a pool carry a request out: now, or by its inbox where another process works on it; returns a sentence.

    Raises:
      PoolError: the pool refuses it. MissingRun, JournalError: there is no pool that can be read.
    """
    key = secrets.token_hex(8)
    if request.test is not None:
        request = replace(request, test=replace(request.test, request=key))
    try:
        with open_pool(folder.require()) as pool:
            number = pool.ask(request.command)
            return f"test {number} {'has ended' if request.test is None else 'has begun'}."
    except PoolRefused as error:
        raise PoolError(f"{error}.") from error
    except PoolInUse:
        write_request(request, folder.inbox / f"{key}{SUFFIX}")
        return "the request lies in the inbox of the pool, which takes it up within seconds."


def submit_test(folder: PoolFolder, test: BeginTest) -> list[str]:
    """Begin a test of two policies, which are pushed first where they are of a run or a folder.

    Args:
      test: `first` and `second` are names of the pool, or what `league pool add` takes.
    Returns:
      A sentence for each thing done.
    Raises:
      LeagueError: one of them stands for nothing, or the pool refuses the test.
    """
    state = read_pool(folder.require())
    said, keys = list[str](), list[str]()
    for written in (test.first, test.second):
        key = written
        if written not in state.by_name and written not in state.by_digest:
            if not written.startswith(BOT_PREFIX) and not is_outside(written):
                key = _digest_of(written)
            if key not in state.by_digest:
                said += add_contenders(folder.path, [written])
        keys.append(key)
    return [*said, ask_pool(folder, PoolRequest(replace(test, first=keys[0], second=keys[1])))]


def _digest_of(written: str) -> str:
    """The digest of the one policy that a run, a snapshot's folder or a package stands for."""
    copies = copies_of(written)
    if len(copies) != 1:
        raise PoolError(f"{written} is a mixture of {len(copies)} policies: test one of its members.")
    return copies[0][1].manifest.digest


def _row(state: PoolState, account: PoolTestAccount) -> PoolTestRow:
    test, counts = account.test, np.array(account.pairs)
    found = sequential_test(counts, test.config)
    elo, low, high = _strength(counts)
    return PoolTestRow(
        number=test.number,
        first=state.policies[test.first].name,
        second=state.policies[test.second].name,
        elo0=test.config.elo0,
        elo1=test.config.elo1,
        alpha=test.config.alpha,
        beta=test.config.beta,
        max_games=test.max_games,
        games=account.games,
        wins=account.wins,
        draws=account.draws,
        losses=account.losses,
        pairs=account.pairs,
        ratio=found.ratio,
        lower=found.lower,
        upper=found.upper,
        elo=elo,
        low=low,
        high=high,
        playing=sum(lease.test == test.number for lease in state.leases.values()),
        outcome=account.outcome,
        why=account.why,
        by=test.by,
        reason=test.reason,
    )


def _strength(counts: NDArray[np.int64]) -> tuple[float | None, float | None, float | None]:
    """Elo of the first and its interval, as of a match; None where it is not bounded."""
    if not counts.any():
        return None, None, None
    score = score_interval(np.repeat(PAIR_SCORES, counts), 2)
    elo, low, high = (elo_of(share) for share in (score.value, score.low, score.high))
    return _bounded(elo), _bounded(low), _bounded(high)


def _bounded(elo: float) -> float | None:
    return round(elo, 1) if math.isfinite(elo) else None


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.0f}"
