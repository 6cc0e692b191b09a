"""What the league knows of its own forks and rewinds: lost restart states, and tokens that only go up."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from league.core.metagame.lineage import lineage_of
from league.core.state.commands import FinishLease, NoteFork, NoteRewind, Refused, SaveCheckpoint, StartRun
from league.core.state.events import EVENTS, LeagueForked
from league.core.state.state import digest
from tests.league.core.simulated_league import SimulatedLeague, three_roles

DIGEST = "4" * 64
BACK = NoteRewind(event=9, chain="ab", ended=99, ended_chain="cd", token=5, set_aside="rewound-1")


def with_checkpoints() -> SimulatedLeague:
    """A league whose players all have a first snapshot and a restart state."""
    league = SimulatedLeague(three_roles())
    league.confirm_directives()
    for name in league.state.players:
        league.ask(SaveCheckpoint(name, DIGEST, 3, 300))
    return league


def test_a_fork_changes_nothing_but_the_restart_states_that_it_has_not() -> None:
    league = with_checkpoints()
    before = digest(league.state)
    league.ask(NoteFork("runs/before", 9, "ab"))
    assert digest(league.state) == before
    league.ask(NoteFork("runs/before", 9, "ab", ("main-0",)))
    assert league.state.players["main-0"].checkpoint is None
    assert league.state.players["main-exploiter-0"].checkpoint is not None


@pytest.mark.parametrize("note", [NoteFork("runs/before", 9, "ab"), BACK])
def test_a_restart_state_is_only_lost_where_a_snapshot_can_take_its_place(note: NoteFork | NoteRewind) -> None:
    league = SimulatedLeague(three_roles())
    for name in ("nobody-0", "main-0"):
        with pytest.raises(Refused, match="descends from a snapshot"):
            league.ask(dataclasses.replace(note, lost=(name,)))


def test_a_start_after_a_rewind_takes_no_token_that_was_given_before() -> None:
    league = with_checkpoints()
    lease = league.grant()
    league.ask(BACK)
    with pytest.raises(Refused, match="belongs to run 1"):
        league.ask(FinishLease(lease.lease_id, lease.token, 0, ()))
    league.ask(StartRun())
    assert league.state.token == BACK.token + 1
    again = league.grant()
    with pytest.raises(Refused, match="the answer to run 5"):
        league.ask(FinishLease(again.lease_id, BACK.token, 0, ()))


def test_a_rewind_cannot_bring_tokens_down() -> None:
    league = with_checkpoints()
    league.ask(BACK)
    with pytest.raises(Refused, match="start 5 stays"):
        league.ask(dataclasses.replace(BACK, token=4))


def test_forks_and_rewinds_are_part_of_the_lineage() -> None:
    league = with_checkpoints()
    league.ask(NoteFork("runs/before", 17, "ab"))
    league.ask(BACK)
    lineage = lineage_of(league.journal)
    assert [(fork.run, fork.event, fork.after) for fork in lineage.forks] == [("runs/before", 17, 3)]
    assert [(back.event, back.set_aside, back.after) for back in lineage.rewinds] == [(9, "rewound-1", 3)]


def test_a_fork_that_was_noted_before_restart_states_could_be_lost_is_still_read() -> None:
    event = msgspec.json.decode(b'{"run":"runs/before","event":17,"chain":"ab"}', type=EVENTS["LeagueForked"])
    assert event == LeagueForked("runs/before", 17, "ab")
