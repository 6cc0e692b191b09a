"""The probe of games of one team, which have no opponent to score against: the mean return over fixed seeds."""

from __future__ import annotations

import math

import numpy as np

from league.core.state.records import ProbeReading
from league.errors import LeagueError
from league.judge.matches.match import Match
from league.judge.matches.timed import Deadline, play_all
from league.judge.probes.matches import SUBJECT, ProbeClock
from league.judge.probes.probe import DoesNotFit, PlayOptions, Subject

MEAN_RETURN = "mean_return"
Z_90 = 1.644854
"""Standard deviations that hold 90 % of a normal distribution."""


class MeanReturn:
    """Mean return of the team, all of whose seats the snapshot plays, with a normal 90 % interval over the games."""

    least_core_seconds = 1.0
    num_past = 0

    def __init__(self, options: PlayOptions) -> None:
        self._options = options

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading, of which more is better."""
        if subject.spec.num_teams > 1:
            raise DoesNotFit(f"{subject.env.id} has opponents, so that a return says nothing alone: name yardsticks")
        limit_s = min(self._options.core_seconds, subject.limit_s)
        policy = subject.policy.as_seat_policy(greedy=subject.greedy)
        match = Match(subject.env, [policy], seed=subject.seed, opening_plies=0)
        deadline = Deadline.after(limit_s, clock=ProbeClock(limit_s, ends_at=subject.ends_at))
        play_all({(SUBJECT,): match}, games=self._options.games, teams=1, deadline=deadline)
        result = match.result
        if result is None or result.games < 2:
            raise LeagueError(f"fewer than 2 games ended within {limit_s:.1f} s")
        returns = result.team_returns[0, :, 0]
        mean = float(returns.mean())
        half = Z_90 * float(np.std(returns, ddof=1)) / math.sqrt(len(returns))
        return (ProbeReading(MEAN_RETURN, mean, mean - half, mean + half, result.games, scale="return"),)
