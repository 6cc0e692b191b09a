"""Matches of a probe: as many games as its processor time allows, with a reading for each opponent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from league.agents.acting.policy import Policy
from league.core.probes import MAX_TEXT
from league.core.state.records import ProbeReading
from league.core.state.scoring import Scoring
from league.errors import LeagueError
from league.judge.contenders.contender import Fallible
from league.judge.matches.match import Match, whole_groups
from league.judge.matches.match_result import Interval, MatchResult, mean_interval
from league.judge.matches.timed import Deadline, Meeting, play_all
from league.judge.probes.probe import Subject
from league.processes.processor_time import children_cpu_seconds

SUBJECT = "the snapshot"
OPENING_PLIES = 2
"""Random plies before the policies take over, as in `league eval`."""


def score_of(result: MatchResult, scoring: Scoring, *, teams: Sequence[int]) -> Interval:
    """Mean score of the home contender by what the league counts, with a 95 % interval.

    By returns, a game's score is a half and half of the margin between the mean returns of two teams' seats, as a
    fraction of the scale; the interval is over the groups of games. See `league.core.state.scoring`.

    Args:
      teams: [S] team of each seat.
    """
    if scoring.score == "wins":
        return result.score()
    sizes = np.bincount(np.unique(np.asarray(teams), return_inverse=True)[1])
    num = len(sizes)
    scores = np.zeros((num, result.num_groups))
    for rotation in range(num):
        means = result.team_returns[rotation] / sizes[(np.arange(num) + rotation) % num]  # [G, T] by contender
        margins = means[:, :1] - means[:, 1:]
        scores[rotation] = np.clip(0.5 + 0.5 * margins / scoring.return_scale, 0.0, 1.0).mean(axis=1)
    found = mean_interval(scores.mean(axis=0))
    return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))


def readings_against(
    subject: Subject,
    opponents: Mapping[str, Policy],
    *,
    games: int,
    limit_s: float,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ProbeReading, ...]:
    """Scores of the snapshot against each opponent, from every team alike.

    Games in which an opponent fails are aborted, with all games of their opening. One that fails in all is left out.

    Args:
      opponents: name -> who it is. notes: name -> a few words on it.
      games: against each; rounded up to a multiple of the teams. limit_s: processor seconds.
    Raises:
      LeagueError: no match has ended in time, or every opponent failed.
    """
    policy = subject.policy.as_seat_policy(greedy=subject.greedy)
    matches: dict[Meeting, Match] = {
        (SUBJECT, name): Match(subject.env, [policy, one], seed=subject.seed, opening_plies=OPENING_PLIES)
        for name, one in opponents.items()
    }
    teams = subject.spec.num_teams
    deadline = Deadline.after(limit_s, clock=ProbeClock(limit_s, ends_at=subject.ends_at))
    results = play_all(matches, games=whole_groups(games, teams), teams=teams, deadline=deadline)
    readings, missing = [], []
    for name, opponent in opponents.items():
        result, failure = results.get((SUBJECT, name)), _failure(opponent)
        if result is None or not result.games:
            missing.append(f"{name} {failure or f'ended no game within {limit_s:.1f} s'}")
            continue
        score = score_of(result, subject.scoring, teams=subject.spec.teams)
        aborted = sum(result.aborted)
        failed = [f"aborted games: {aborted}, it {failure}"] if aborted else []
        note = "; ".join(filter(None, [notes.get(name, ""), *failed]))[:MAX_TEXT]
        readings.append(ProbeReading(name, score.value, score.low, score.high, result.games, note=note))
    if not readings:
        raise LeagueError("; ".join(missing))
    for sentence in missing:
        subject.remark(sentence)
    return tuple(readings)


def _failure(opponent: Policy) -> str:
    """A clause on how an opponent failed last; empty for one that has not."""
    return opponent.last_failure if isinstance(opponent, Fallible) else ""


LOOK_EVERY_S = 0.2
"""Wall time between two sums over the programs."""


class ProbeClock:
    """Processor seconds since it was made, of this process and the programs that it started.

    Where wall time passes faster than the limit allows, as with a program that answers late, it counts that instead:
    at `ends_at` the whole limit is used.

    Args:
      limit_s: processor seconds. ends_at: in seconds of `monotonic`.
      own, programs: processor seconds so far, of this process and of those below it.
    """

    def __init__(
        self,
        limit_s: float,
        *,
        ends_at: float,
        monotonic: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
        programs: Callable[[], float] = lambda: children_cpu_seconds(os.getpid()),
    ) -> None:
        self._limit_s = limit_s
        self._monotonic, self._own, self._programs = monotonic, own, programs
        self._begun = self._looked = monotonic()
        self._wall_s = max(ends_at - self._begun, 1e-9)
        self._before, self._of_programs = own() + programs(), programs()

    def __call__(self) -> float:
        """Seconds of the limit that are used."""
        now = self._monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked, self._of_programs = now, self._programs()
        used = self._own() + self._of_programs - self._before
        return max(used, self._limit_s * (now - self._begun) / self._wall_s)
