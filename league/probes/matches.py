"""Matches of a probe: as many games as its processor time allows, with a reading for each opponent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from agents.acting.policy import Policy
from league.core.state.records import ProbeReading
from league.errors import LeagueError
from league.eval.match import team_places
from league.eval.timed import Count, Deadline, Meeting, Play, play_all
from league.probes.probe import Subject

SUBJECT = "the snapshot"
OPENING_PLIES = 2
"""Random plies before the policies take over, as in `league eval`."""


def readings_against(
    subject: Subject,
    opponents: Mapping[str, Callable[[int], Policy]],
    *,
    games: int,
    limit_s: float,
    clock: Callable[[], float] = time.process_time,
) -> tuple[ProbeReading, ...]:
    """Scores of the snapshot against each opponent, from every team alike.

    Args:
      opponents: name -> makes it, from the seed of whatever it draws.
      games: against each; rounded up to a multiple of the teams. limit_s: processor seconds.
      clock: processor time.
    Raises:
      LeagueError: no match has ended in time.
    """
    teams = len(set(team_places(subject.spec).tolist()))
    policy = subject.policy.as_seat_policy(greedy=subject.greedy)

    def seated(meeting: Meeting, seed: int) -> Sequence[Policy]:
        return [policy, opponents[meeting[1]](seed)]

    play = Play(subject.env, seated, -(-games // teams) * teams, subject.seed, OPENING_PLIES)
    meetings = [(SUBJECT, name) for name in opponents]
    deadline = Deadline.after(limit_s, clock=clock)
    results = play_all(play, meetings, Count(0, None), teams=teams, deadline=deadline)
    if not results:
        raise LeagueError(f"no match ended within {limit_s:.1f} processor seconds")
    readings = []
    for (_, name), result in results.items():
        score = result.score()
        readings.append(ProbeReading(name, score.value, score.low, score.high, result.games))
    return tuple(readings)
