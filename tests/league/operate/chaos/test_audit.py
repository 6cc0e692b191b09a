"""The audit finds every way in which an acknowledged result can be lost or counted twice."""

from league.core.state.events import Event, LeaseExpired, LeaseFinished, LeaseGranted, RunStarted
from league.core.state.records import AssignmentOutcome, Lease
from league.core.state.state import LeagueState, Totals
from league.operate.chaos.audit import audit
from league.operate.chaos.follower import Noted


def granted(lease_id: int, token: int = 1) -> LeaseGranted:
    return LeaseGranted(Lease(lease_id, token, "actor-0", "main-0", (), 8))


def finished(lease_id: int, token: int = 1, games: int = 2) -> LeaseFinished:
    outcome = AssignmentOutcome(("a", "b"), games, 0, 9, ((0, games), (0, 0)), ((0, 0), (0, 0)), (1.0, -1.0))
    return LeaseFinished(lease_id, token, 16, (outcome,))


JOURNAL: list[Event] = [RunStarted(1), granted(1), finished(1), granted(2), finished(2)]
TOTALS = Totals(games=4, env_steps=32, leases_finished=2)


def look(events: list[Event], seen: list[tuple[int, Event]], totals: Totals = TOTALS):
    return audit(
        [Noted(seq, 0.0, event) for seq, event in seen],
        enumerate(events, start=1),
        state=LeagueState(token=1, totals=totals),
    )


def test_a_sound_journal_passes():
    found = look(JOURNAL, [(3, finished(1)), (5, finished(2))])
    assert (found.lost, found.doubled, found.off) == ((), (), ())
    assert (found.leases, found.games) == (2, 4)


def test_a_noted_lease_that_is_missing_is_lost():
    assert len(look(JOURNAL[:3], [(3, finished(1)), (5, finished(2))]).lost) == 1


def test_a_noted_lease_with_other_counts_is_lost():
    assert len(look(JOURNAL, [(3, finished(1, games=3))]).lost) == 1


def test_a_noted_lease_under_another_number_is_lost():
    assert len(look(JOURNAL, [(4, finished(1))]).lost) == 1


def test_a_lease_that_finished_twice_is_found():
    assert any("had finished" in line for line in look([*JOURNAL, finished(2)], []).doubled)


def test_a_lease_that_finished_after_it_had_expired_is_found():
    events: list[Event] = [RunStarted(1), granted(1), LeaseExpired(1, "lost"), finished(1)]
    assert any("had expired" in line for line in look(events, []).doubled)


def test_a_lease_under_a_token_of_another_start_is_found():
    assert any("under token 2" in line for line in look([RunStarted(1), granted(1), finished(1, token=2)], []).doubled)


def test_a_lease_that_was_never_granted_is_found():
    assert any("not granted" in line for line in look([finished(7)], []).doubled)


def test_a_lease_that_came_in_behind_the_reader_is_found():
    assert any("behind the reader" in line for line in look(JOURNAL, [(5, finished(2))]).doubled)


def test_totals_must_be_the_sum_of_the_leases():
    found = look(JOURNAL, [], Totals(games=5, env_steps=31, leases_finished=3))
    names = [line.partition(" at event 5")[0] for line in found.off]
    assert names == ["games", "env steps", "finished leases"]


def test_a_lease_of_a_host_that_works_on_another_one_breaks_a_rule():
    events: list[Event] = [RunStarted(1), granted(1), granted(2)]
    assert any("while it works on lease 1" in line for line in look(events, []).doubled)
