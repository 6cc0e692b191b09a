"""A probe: score of the snapshot's likeliest actions against the same snapshot drawing its actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from league.core.state.records import ProbeReading
from league.judge.matches.match import Match
from league.judge.probes.probe import Subject


@dataclass(frozen=True)
class CostOptions:
    """Its options: games played, half from either seat."""

    games: int = 100


class CostOfChance:
    """One half where drawing costs nothing; more where the likeliest action is the better one."""

    least_core_seconds = 1.0
    num_past = 0

    def __init__(self, options: CostOptions) -> None:
        self._games = options.games

    def measure(self, subject: Subject) -> Sequence[ProbeReading]:
        """One match, from the seed that all probes of a run share."""
        policies = [subject.policy.as_seat_policy(greedy=greedy) for greedy in (True, False)]
        score = Match(subject.env, policies, seed=subject.seed).play(self._games).score()
        return [ProbeReading("likeliest", score.value, score.low, score.high, self._games)]
