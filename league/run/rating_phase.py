"""The rating phase after training: it lasts for a fixed fraction of the resources that training used."""

from __future__ import annotations

from dataclasses import dataclass

from league.config.run_config import RunConfig
from league.core.state.commands import RequestLease
from league.core.state.state import LeagueState
from league.run.budget import Limits, Spent


@dataclass(frozen=True)
class RatingAllowance:
    """Limits of all rating leases after training together.

    Fields:
      leases: how many. steps: of each game in one. lease_steps: env steps of one.
      seconds, core_seconds: time after which none is begun; None where only env steps count.
    """

    leases: int
    steps: int
    lease_steps: int
    seconds: float | None
    core_seconds: float | None


def rating_allowance(config: RunConfig, *, since: Spent, until: Spent, limits: Limits) -> RatingAllowance:
    """A fraction of the resources used between two moments, in the wanted number of leases, shorter when there is less.

    Time counts where training was limited by time. Where env steps alone ended it they alone count here, so that a run
    that repeats exactly ends with the same leases.
    """
    ratings, num_envs = config.league.ratings, config.actors.num_envs
    steps = int(ratings.final_share * (until.env_steps - since.env_steps))
    per_lease = steps // (num_envs * max(ratings.final_leases, 1))
    per_lease = min(max(per_lease, 1), config.league.lease_steps)
    budget = config.budget
    timed = limits.env_steps is None and any(
        limit is not None for limit in (limits.seconds, limits.core_seconds, budget.seconds, budget.core_seconds)
    )
    return RatingAllowance(
        leases=min(ratings.final_leases, steps // (per_lease * num_envs)),
        steps=per_lease,
        lease_steps=per_lease * num_envs,
        seconds=ratings.final_share * (until.seconds - since.seconds) if timed else None,
        core_seconds=ratings.final_share * (until.core_seconds - since.core_seconds) if timed else None,
    )


class RatingPhase:
    """Asks for rating leases while the allowance lasts.

    Args:
      allowance: of the phase.
      state: the league as the phase begins.
      begun: what was spent until then.
    """

    def __init__(self, allowance: RatingAllowance, state: LeagueState, *, begun: Spent) -> None:
        self._allowance = allowance
        self._begun = begun
        self._left = allowance.leases
        self._next_lease_id = state.next_lease_id
        self._is_first = True

    def continues(self, state: LeagueState, spent: Spent) -> bool:
        """True if the phase should continue; asked before each turn of the daemon.

        Not where a turn has granted nothing and nothing is in hand: then nothing can be rated, or no host is left.
        """
        allowed = Limits(self._allowance.seconds, self._allowance.core_seconds)
        moves = self._is_first or state.next_lease_id > self._next_lease_id or bool(state.leases)
        self._is_first, self._next_lease_id = False, state.next_lease_id
        return moves and self._left > 0 and not allowed.reached(spent, begun=self._begun)

    def request(self, host: str) -> RequestLease | None:
        """The next lease of an idle host; None where all have been asked for."""
        if self._left <= 0:
            return None
        self._left -= 1
        return RequestLease(host, "settle", steps=self._allowance.steps)
