"""The rating phase after training: it lasts for a fixed fraction of the resources that training used."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from league.config.run_config import RunConfig
from league.core.state.commands import RequestLease
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
      next_lease_id: number of the league's next lease, as it is now; every lease of the phase is one of its own.
      begun: what was spent until then.
    """

    def __init__(self, allowance: RatingAllowance, *, next_lease_id: Callable[[], int], begun: Spent) -> None:
        self._allowance = allowance
        self._next_lease_id = next_lease_id
        self._begun = begun
        self._end = next_lease_id() + allowance.leases
        self._asked: int | None = None

    def continues(self, spent: Spent, *, leases: Collection[int]) -> bool:
        """True if the phase should continue; asked before each turn of the daemon.

        Not where the last request was refused and nothing is in hand: then nothing can be rated.

        Args:
          leases: those that are open.
        """
        allowed = Limits(self._allowance.seconds, self._allowance.core_seconds)
        refused = self._asked == self._next_lease_id() and not leases
        return self._has_leases_left() and not refused and not allowed.reached(spent, begun=self._begun)

    def request(self, host: str) -> RequestLease | None:
        """The next lease of an idle host; None where all have been granted."""
        if not self._has_leases_left():
            return None
        self._asked = self._next_lease_id()
        return RequestLease(host, "settle", steps=self._allowance.steps)

    def _has_leases_left(self) -> bool:
        return self._next_lease_id() < self._end
