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
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    ConfirmTransplant,
    CreateLeague,
    DropTransplant,
    ExpireLease,
    FinishLease,
    ImportPolicy,
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
from league.core.state.league_config import LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import HyperparameterConfig, PbtConfig
from league.core.state.records import AssignmentOutcome, Lease, Progress
from league.core.state.state import digest
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, verified_state
from tests.league.core.simulated_league import DIGEST, QUICK_GATE, outcome_of

PBT = PbtConfig(
    selection="tournament", hyperparameters=(HyperparameterConfig("learning_rate"),), period_steps=10, min_games=0
)
LEAGUE = LeagueConfig(
    players=(
        PlayerConfig(count=2, gate=QUICK_GATE, matchmaker="quality"),
        PlayerConfig(role="league_exploiter", gate=QUICK_GATE),
    ),
    ratings=RatingConfig(step_fraction=0.3),
    pbt=PBT,
)
NUM_ENVS = 64


def book_in(folder: Path, *, teams: tuple[int, ...] = (0, 1)) -> JournaledLeague:
    league = JournaledLeague.create(folder / "journal.db", wall_time=lambda: 0.0)
    league.execute(CreateLeague(0, len(teams), teams, LEAGUE))
    league.execute(StartRun())
    for order in list(league.state.directives.values()):
        league.execute(ConfirmSnapshot(order.directive_id, DIGEST, 0, 0))
    league.commit()
    return league


def granted(league: JournaledLeague) -> Lease:
    event, *_ = league.execute(RequestLease("host", "train", num_envs=NUM_ENVS))
    assert isinstance(event, LeaseGranted)
    return event.lease


def answer(lease: Lease, *, env_steps: int = 100, **changes: Any) -> FinishLease:
    outcome = outcome_of(lease.assignments[0].policies, (0, 1), games=4, winners=[0, 0, 1, None])
    return FinishLease(lease.lease_id, lease.token, env_steps, (dataclasses.replace(outcome, **changes),))


def won(games: int) -> dict[str, Any]:
    return {"games": games, "wins": ((0, games), (0, 0)), "draws": ((0, 0), (0, 0)), "truncated": 0}


@pytest.mark.parametrize(
    "changes",
    [
        won(2**70),
        won(10**18),
        won(MAX_COUNT + 1),
        {"decisions": 2**62},
        {"aborted": 2**54},
        {"return_sums": (10.0**300, 0.0)},
        {"return_sums": (math.nan, 0.0)},
        {"placements": (((2**70, 0), 4),)},
        {"env_steps": 2**62},
        {"env_steps": -1},
        {"games": 4.0},
    ],
    ids=str,
)
def test_an_answer_beyond_all_bounds_is_refused_and_the_journal_opens_again(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    league = book_in(tmp_path)
    lease = granted(league)
    before = digest(league.state)
    with pytest.raises(Refused):
        league.execute(answer(lease, **changes))
    assert digest(league.state) == before
    league.execute(answer(lease))
    league.commit()
    reopened_is_equal(league, tmp_path)


def test_an_answer_brings_no_more_than_its_lease_can(tmp_path: Path) -> None:
    league = book_in(tmp_path)
    lease = granted(league)
    most = lease.steps * NUM_ENVS
    with pytest.raises(Refused, match=f"{most + 1} env steps, and it can bring {most}"):
        league.execute(answer(lease, env_steps=most + 1))
    with pytest.raises(Refused, match=f"games, and it can bring {OVERDUE_LEASES * most}"):
        league.execute(answer(lease, **won(OVERDUE_LEASES * most + 1)))
    league.execute(answer(lease, env_steps=most, **won(most)))
    assert league.state.totals.games == most
    league.close()


def test_the_totals_of_a_league_stay_within_what_they_can_hold(tmp_path: Path) -> None:
    league = book_in(tmp_path)
    league.execute(answer(granted(league), decisions=MAX_COUNT))
    with pytest.raises(Refused, match="a total of the league"):
        league.execute(answer(granted(league), decisions=1))
    league.close()


@pytest.mark.parametrize(
    "command",
    [
        ReportProgress(Progress("main-0", 1, 10**300)),
        ReportProgress(Progress("main-0", 2**70, 1)),
        SaveCheckpoint("main-0", DIGEST, 2**64, 1),
        SaveCheckpoint("main-0", DIGEST, -1, 1),
        ImportPolicy("imported:a", DIGEST, 2**64),
        RequestSnapshot("main-0", "\ud800"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_other_reports_beyond_all_bounds_are_refused(tmp_path: Path, command: Command) -> None:
    league = book_in(tmp_path)
    before = digest(league.state)
    with pytest.raises(Refused):
        league.execute(command)
    assert digest(league.state) == before
    league.commit()
    reopened_is_equal(league, tmp_path)


def test_what_cannot_be_folded_is_never_written_and_the_rest_of_the_turn_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold that fails half way leaves neither its event in the journal nor its traces in the state."""
    league = book_in(tmp_path)
    league.execute(ReportProgress(Progress("main-0", 3, 30)))  # queued and not yet durable
    before, last = digest(league.state), league._journal.num_pending
    checkpoint = next(kind for kind in APPLIERS if kind.__name__ == "CheckpointSaved")

    def fails_half_way(state: Any, event: Any) -> None:
        state.totals.games += 1
        raise OverflowError("too large")

    with monkeypatch.context() as broken:
        broken.setitem(APPLIERS, checkpoint, fails_half_way)
        with pytest.raises(Refused, match="cannot be folded"):
            league.execute(SaveCheckpoint("main-0", DIGEST, 3, 30))
    assert (digest(league.state), league._journal.num_pending) == (before, last)
    league.execute(SaveCheckpoint("main-0", DIGEST, 3, 30))
    league.commit()
    reopened_is_equal(league, tmp_path)


NUMBERS = st.one_of(
    st.integers(-3, 100),
    st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63, 2**64, 2**70, 10**300]).flatmap(
        lambda number: st.sampled_from([number, -number])
    ),
)
RETURNS = st.floats(allow_nan=True, allow_infinity=True)
PLAYERS = st.sampled_from(["main-0", "main-1", "league-exploiter-0", "nobody"])
OUTCOMES = st.builds(
    lambda games, decisions, truncated, aborted, first, second, consistent, cell: AssignmentOutcome(
        ("main-0", "main-1-s0"),
        games,
        aborted,
        decisions,
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
    st.builds(ImportPolicy, st.sampled_from(["imported:a", "imported:b"]), st.just(DIGEST), NUMBERS),
    st.builds(NoteFork, st.text(), NUMBERS, st.just("c")),
    st.builds(NoteRewind, NUMBERS, st.just("c"), NUMBERS, st.just("d"), st.one_of(st.just(1), NUMBERS), st.text()),
    st.builds(RequestLease, st.just("host"), st.just("train"), st.sampled_from([0, NUM_ENVS])),
    st.just(StartRun()),
)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(commands=st.lists(COMMANDS, max_size=15))
def test_any_numbers_in_any_commands_are_refused_or_fold_and_the_journal_opens_again(commands: list[Command]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        league = book_in(Path(folder))
        for _ in range(2):
            granted(league)
        for command in commands:
            with contextlib.suppress(Refused):
                league.execute(command)
        league.commit()
        league.save_state()
        reopened_is_equal(league, Path(folder))


def reopened_is_equal(league: JournaledLeague, folder: Path) -> None:
    """Close the book; what its journal folds to, from zero and from its stored state, is what it held."""
    expected = digest(league.state)
    league.close()
    with JournalReader.open_readonly(folder / "journal.db", events=EVENTS) as journal:
        assert digest(verified_state(journal)) == expected
    again = JournaledLeague.open(folder / "journal.db", at_least_seq=0, wall_time=lambda: 0.0)
    assert digest(again.state) == expected
    again.close()
