"""Probes in the state of a league: one is open at a time, an answer counts once, and nothing else changes by them."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest

from league.core import probes
from league.core.state.commands import BeginProbe, EndProbe, Refused, SpendProbe
from league.core.state.records import ProbeOutcome, ProbeReading
from league.core.state.state import Probes, digest, from_plain, to_plain
from tests.league.core.simulated_league import SimulatedLeague, three_roles

FIRST = "main-0-s0"


def begun(**options: int) -> SimulatedLeague:
    league = SimulatedLeague(three_roles(), **options)
    league.run(8)
    league.ask(BeginProbe("yardsticks", FIRST))
    return league


def outcome(number: int = 1, *, value: float = 0.5, **changes: object) -> ProbeOutcome:
    reading = ProbeReading("tactical", value, value, value, 40)
    return dataclasses.replace(ProbeOutcome(number, (reading,), 2.0, 1.0), **changes)  # type: ignore[arg-type]


def test_an_answer_counts_once_and_with_its_cost() -> None:
    league = begun()
    league.ask(EndProbe(outcome()))
    known = league.state.probes
    assert (known.core_seconds, known.costs, known.open) == (3.0, {"yardsticks": 2.0}, None)
    assert [result.readings[0].value for result in known.results] == [0.5]
    with pytest.raises(Refused, match="not open"):
        league.ask(EndProbe(outcome()))
    league.ask(BeginProbe("yardsticks", FIRST))
    with pytest.raises(Refused, match="probe 1 is not open"):
        league.ask(EndProbe(outcome()))


def test_the_time_of_an_interrupted_attempt_counts_and_that_of_the_answering_one_once() -> None:
    league = begun()
    league.ask(SpendProbe(1, 4.0))
    league.ask(SpendProbe(1, 6.0))
    assert league.state.probes.core_seconds == 0.0
    league.ask(SpendProbe(1, 6.0, is_lost=True))
    assert (league.state.probes.core_seconds, league.state.probes.open_core_seconds) == (6.0, 0.0)
    league.ask(SpendProbe(1, 1.0))
    league.ask(EndProbe(outcome()))
    known = league.state.probes
    assert (known.core_seconds, known.costs, known.open_core_seconds) == (6.0 + 3.0, {"yardsticks": 6.0 + 2.0}, 0.0)


@pytest.mark.parametrize("wrong", [SpendProbe(2, 9.0), SpendProbe(1, 3.0), SpendProbe(1, float("nan"))])
def test_a_cost_that_is_not_of_the_open_probe_or_shrinks_is_refused(wrong: SpendProbe) -> None:
    league = begun()
    league.ask(SpendProbe(1, 4.0))
    with pytest.raises(Refused):
        league.ask(wrong)


def test_one_probe_is_open_at_a_time_and_only_of_a_snapshot_that_is_there() -> None:
    league = begun()
    with pytest.raises(Refused, match="is open"):
        league.ask(BeginProbe("past", FIRST))
    league.ask(EndProbe(outcome()))
    with pytest.raises(Refused, match="no snapshot"):
        league.ask(BeginProbe("past", "main-0-s99"))


@pytest.mark.parametrize(
    "wrong",
    [
        outcome(core_seconds=-1.0),
        outcome(problem="both a problem and readings"),
        outcome(readings=()),
        outcome(value=1.5),
        outcome(value=float("nan")),
        outcome(readings=outcome().readings * 2),
        outcome(readings=(ProbeReading("tactical", 0.2, 0.3, 0.4),)),
        outcome(readings=(ProbeReading("x" * 1_000, 0.3, 0.3, 0.4),)),
        outcome(readings=(), problem="x" * 1_000),
    ],
)
def test_what_is_no_result_is_refused_and_changes_nothing(wrong: ProbeOutcome) -> None:
    league = begun()
    before = digest(league.state)
    with pytest.raises(Refused):
        league.ask(EndProbe(wrong))
    assert digest(league.state) == before


def test_a_league_with_probes_decides_as_one_without_them() -> None:
    """A real league draws by lease numbers; this one by its events, so that those of probes are taken out of them."""
    plain, probed = SimulatedLeague(three_roles(), seed=3), begun(seed=3)
    plain.run(20)
    probed.ask(EndProbe(outcome()))
    del probed.journal[-2:]
    probed.run(12)
    assert probed.state.probes.begun == 1
    probed.state.probes = Probes()
    assert digest(probed.state) == digest(plain.state)


def test_an_open_probe_and_its_results_survive_a_stored_state() -> None:
    league = begun()
    league.ask(EndProbe(outcome(readings=(), problem="it broke", unfit=True)))
    league.ask(BeginProbe("past", FIRST, (FIRST,)))
    again = from_plain(json.loads(json.dumps(to_plain(league.state))))
    assert again.probes == league.state.probes
    assert again.probes.unfit == {"yardsticks": "it broke"} and again.probes.failures == {"yardsticks": 1}


def test_of_many_results_the_older_ones_stand_farther_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MAX_RESULTS", 8)
    league = begun()
    for number in range(1, 30):
        league.ask(EndProbe(outcome(number)))
        league.ask(BeginProbe("yardsticks", FIRST))
    numbers = [result.task.number for result in league.state.probes.results]
    assert len(numbers) <= 8 and numbers[0] == 1 and numbers[-4:] == [26, 27, 28, 29]
    assert league.state.probes.core_seconds == 29 * 3.0
    assert copy.deepcopy(numbers) == sorted(numbers)
