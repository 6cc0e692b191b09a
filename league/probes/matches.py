"""Matches of a probe: as many games as its processor time allows, with a reading for each opponent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from agents.acting.policy import Policy
from league.core.state.records import ProbeReading
from league.core.state.scoring import Scoring
from league.errors import LeagueError
from league.eval.match import team_places
from league.eval.match_result import Z_95, Interval, MatchResult
from league.eval.timed import Count, Deadline, Meeting, Play, play_all
from league.probes.probe import Subject

SUBJECT = "the snapshot"
OPENING_PLIES = 2
"""Random plies before the policies take over, as in `league eval`."""


def score_of(result: MatchResult, scoring: Scoring, *, teams: Sequence[int]) -> Interval:
    """Mean score of the home entrant by what the league counts, with a 95 % interval.

    By returns, a game's score is a half and half of the margin between the mean returns of two teams' seats, as a
    fraction of the scale; the interval is normal, over the groups of games. See `league.core.state.scoring`.

    Args:
      teams: [S] team of each seat.
    """
    if scoring.score == "wins":
        return result.score()
    sizes = np.bincount(np.unique(np.asarray(teams), return_inverse=True)[1])
    num = len(sizes)
    scores = np.zeros((num, result.num_groups))
    for rotation in range(num):
        means = result.team_returns[rotation] / sizes[(np.arange(num) + rotation) % num]  # [G, T] by entrant
        margins = means[:, :1] - means[:, 1:]
        scores[rotation] = np.clip(0.5 + 0.5 * margins / scoring.return_scale, 0.0, 1.0).mean(axis=1)
    groups = scores.mean(axis=0)
    mean = float(groups.mean())
    half = Z_95 * float(groups.std(ddof=1)) / math.sqrt(len(groups)) if len(groups) > 1 else 0.5
    return Interval(mean, max(mean - half, 0.0), min(mean + half, 1.0))


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
        score = score_of(result, subject.scoring, teams=subject.spec.teams)
        readings.append(ProbeReading(name, score.value, score.low, score.high, result.games))
    return tuple(readings)
