"""Numbers that no league can hold: whatever a host says, the command is refused or its events fold and reopen."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from league.core.league import APPLIERS
from league.core.state.bounds import MAX_COUNT, OVERDUE_LEASES
from league.core.state.commands import (
    AddOutsider,
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    ConfirmTransplant,
    CreateLeague,
    DropTransplant,
    ExpireLease,
    FinishLease,
    NoteFork,
    NoteRewind,
    Refused,
    ReportProgress,
    RequestLease,
    RequestSnapshot,
    SaveCheckpoint,
    StartRun,
)
from league.core.state.events import EVENTS, LeaseGranted
from league.core.state.league_config import LeagueSettings, PlayerSettings, RatingSettings
from league.core.state.population_config import TunedSettings, TuningSettings
from league.core.state.records import Lease, Progress, SeatingOutcome
from league.core.state.state import digest
from league.store.journal_reader import JournalReader
from league.store.journaled_league import Book, verified_state
from tests.league.core.simulated_league import DIGEST, QUICK_GATE, outcome_of

TUNING = TuningSettings(tuner="tournament", parameters=(TunedSettings("learning_rate"),), period_steps=10, min_games=0)
LEAGUE = LeagueSettings(
    players=(
        PlayerSettings(count=2, gate=QUICK_GATE, matchmaker="quality"),
        PlayerSettings(role="league_exploiter", gate=QUICK_GATE),
    ),
    ratings=RatingSettings(share=0.3),
    tuning=TUNING,
)
NUM_ENVS = 64


def book_in(folder: Path, *, teams: tuple[int, ...] = (0, 1)) -> Book:
    book = Book.create(folder / "journal.db", wall_time=lambda: 0.0)
    book.execute(CreateLeague(0, len(teams), teams, LEAGUE))
    book.execute(StartRun())
    for order in list(book.state.orders.values()):
        book.execute(ConfirmSnapshot(order.order_id, DIGEST, 0, 0))
    book.commit()
    return book


def granted(book: Book) -> Lease:
    event, *_ = book.execute(RequestLease("host", "train", num_envs=NUM_ENVS))
    assert isinstance(event, LeaseGranted)
    return event.lease


def answer(lease: Lease, *, env_steps: int = 100, **changes: Any) -> FinishLease:
    outcome = outcome_of(lease.seatings[0].policies, (0, 1), games=4, winners=[0, 0, 1, None])
    return FinishLease(lease.lease_id, lease.token, env_steps, (dataclasses.replace(outcome, **changes),))


def won(games: int) -> dict[str, Any]:
    return {"games": games, "wins": ((0, games), (0, 0)), "draws": ((0, 0), (0, 0)), "truncated": 0}


@pytest.mark.parametrize(
    "changes",
    [
        won(2**70),
        won(10**18),
        won(MAX_COUNT + 1),
        {"turns": 2**62},
        {"aborted": 2**54},
        {"return_sums": (10.0**300, 0.0)},
        {"return_sums": (math.nan, 0.0)},
        {"orders": (((2**70, 0), 4),)},
        {"env_steps": 2**62},
        {"env_steps": -1},
        {"games": 4.0},
    ],
    ids=str,
)
def test_an_answer_beyond_all_bounds_is_refused_and_the_journal_opens_again(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    book = book_in(tmp_path)
    lease = granted(book)
    before = digest(book.state)
    with pytest.raises(Refused):
        book.execute(answer(lease, **changes))
    assert digest(book.state) == before
    book.execute(answer(lease))
    book.commit()
    reopened_is_equal(book, tmp_path)


def test_an_answer_brings_no_more_than_its_lease_can(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    lease = granted(book)
    most = lease.turns * NUM_ENVS
    with pytest.raises(Refused, match=f"{most + 1} env steps, and it can bring {most}"):
        book.execute(answer(lease, env_steps=most + 1))
    with pytest.raises(Refused, match=f"games, and it can bring {OVERDUE_LEASES * most}"):
        book.execute(answer(lease, **won(OVERDUE_LEASES * most + 1)))
    book.execute(answer(lease, env_steps=most, **won(most)))
    assert book.state.totals.games == most
    book.close()


def test_the_totals_of_a_league_stay_within_what_they_can_hold(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    book.execute(answer(granted(book), turns=MAX_COUNT))
    with pytest.raises(Refused, match="a total of the league"):
        book.execute(answer(granted(book), turns=1))
    book.close()


@pytest.mark.parametrize(
    "command",
    [
        ReportProgress(Progress("main-0", 1, 10**300)),
        ReportProgress(Progress("main-0", 2**70, 1)),
        SaveCheckpoint("main-0", DIGEST, 2**64, 1),
        SaveCheckpoint("main-0", DIGEST, -1, 1),
        AddOutsider("outside:a", DIGEST, 2**64),
        RequestSnapshot("main-0", "\ud800"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_other_reports_beyond_all_bounds_are_refused(tmp_path: Path, command: Command) -> None:
    book = book_in(tmp_path)
    before = digest(book.state)
    with pytest.raises(Refused):
        book.execute(command)
    assert digest(book.state) == before
    book.commit()
    reopened_is_equal(book, tmp_path)


def test_what_cannot_be_folded_is_never_written_and_the_rest_of_the_turn_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold that fails half way leaves neither its event in the journal nor its traces in the state."""
    book = book_in(tmp_path)
    book.execute(ReportProgress(Progress("main-0", 3, 30)))  # queued and not yet durable
    before, last = digest(book.state), book._journal.num_pending
    checkpoint = next(kind for kind in APPLIERS if kind.__name__ == "CheckpointSaved")

    def fails_half_way(state: Any, event: Any) -> None:
        state.totals.games += 1
        raise OverflowError("too large")

    with monkeypatch.context() as broken:
        broken.setitem(APPLIERS, checkpoint, fails_half_way)
        with pytest.raises(Refused, match="cannot be folded"):
            book.execute(SaveCheckpoint("main-0", DIGEST, 3, 30))
    assert (digest(book.state), book._journal.num_pending) == (before, last)
    book.execute(SaveCheckpoint("main-0", DIGEST, 3, 30))
    book.commit()
    reopened_is_equal(book, tmp_path)


NUMBERS = st.one_of(
    st.integers(-3, 100),
    st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63, 2**64, 2**70, 10**300]).flatmap(
        lambda number: st.sampled_from([number, -number])
    ),
)
RETURNS = st.floats(allow_nan=True, allow_infinity=True)
PLAYERS = st.sampled_from(["main-0", "main-1", "league-exploiter-0", "nobody"])
OUTCOMES = st.builds(
    lambda games, turns, truncated, aborted, first, second, consistent, cell: SeatingOutcome(
        ("main-0", "main-1-s0"),
        games,
        aborted,
        turns,
        ((0, games if consistent else cell), (0, 0)),
        ((0, 0), (0, 0)),
        (first, second),
        truncated,
    ),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    RETURNS,
    RETURNS,
    st.booleans(),
    NUMBERS,
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(FinishLease, st.integers(0, 6), st.sampled_from([1, 2**70]), NUMBERS, st.tuples(OUTCOMES)),
    st.builds(ReportProgress, st.builds(Progress, PLAYERS, NUMBERS, NUMBERS)),
    st.builds(ConfirmSnapshot, NUMBERS, st.just(DIGEST), NUMBERS, NUMBERS),
    st.builds(ConfirmReset, NUMBERS),
    st.builds(SaveCheckpoint, PLAYERS, st.just(DIGEST), NUMBERS, NUMBERS),
    st.builds(ConfirmTransplant, NUMBERS, st.just(DIGEST), NUMBERS, NUMBERS),
    st.builds(DropTransplant, NUMBERS, st.text()),
    st.builds(ExpireLease, NUMBERS, st.text()),
    st.builds(RequestSnapshot, PLAYERS, st.text()),
    st.builds(AddOutsider, st.sampled_from(["outside:a", "outside:b"]), st.just(DIGEST), NUMBERS),
    st.builds(NoteFork, st.text(), NUMBERS, st.just("c")),
    st.builds(NoteRewind, NUMBERS, st.just("c"), NUMBERS, st.just("d"), st.one_of(st.just(1), NUMBERS), st.text()),
    st.builds(RequestLease, st.just("host"), st.just("train"), st.sampled_from([0, NUM_ENVS])),
    st.just(StartRun()),
)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(commands=st.lists(COMMANDS, max_size=15))
def test_any_numbers_in_any_commands_are_refused_or_fold_and_the_journal_opens_again(commands: list[Command]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = book_in(Path(folder))
        for _ in range(2):
            granted(book)
        for command in commands:
            with contextlib.suppress(Refused):
                book.execute(command)
        book.commit()
        book.save_state()
        reopened_is_equal(book, Path(folder))


def reopened_is_equal(book: Book, folder: Path) -> None:
    """Close the book; what its journal folds to, from zero and from its stored state, is what it held."""
    expected = digest(book.state)
    book.close()
    with JournalReader.open_readonly(folder / "journal.db", events=EVENTS) as journal:
        assert digest(verified_state(journal)) == expected
    again = Book.open(folder / "journal.db", at_least_seq=0, wall_time=lambda: 0.0)
    assert digest(again.state) == expected
    again.close()
