"""Alert conditions: what each looks at, the protocol, and the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from league.core.metagame.ratings import RatingRow
from league.core.state.state import LeagueState
from league.envs.component_choice import Component
from league.envs.plugin_options import component_of
from league.hosts.protocol import LearnerProgress


@dataclass(frozen=True)
class AlertInputs:
    """A run at one moment, as its conditions see it.

    Fields:
      now: seconds that never go back. phase: "training", "rating" or "draining".
      state: of the league; it may only be read.
      progress: newest report of each player's learner.
      gone: host -> why, of those lost and not back yet. parked: hosts tried again only now and then.
      ratings: snapshot -> its rating, a few seconds old.
      disk_free, disk_floor: bytes free on the disk of the run, and those below which training pauses.
    """

    now: float
    phase: str
    state: LeagueState
    progress: Mapping[str, LearnerProgress] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    parked: tuple[str, ...] = ()
    ratings: Mapping[str, RatingRow] = field(default_factory=dict)
    disk_free: int = 0
    disk_floor: int = 0


class Condition(Protocol):
    """Says what is wrong. It may remember what it has seen; it is asked every few seconds, and must answer at once."""

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        """Subject -> one sentence, for all that is wrong now; empty for nothing.

        A subject is what it is wrong with, such as a host or a player; empty for the run itself.
        """
        ...


ALERT_CONDITIONS: Mapping[str, str] = {
    "host_lost": "league.run.alerts.conditions:LostHosts",
    "not_learning": "league.run.alerts.conditions:NotLearning",
    "gate_silent": "league.run.alerts.conditions:GateSilent",
    "disk_low": "league.run.alerts.conditions:DiskLow",
    "rating_drift": "league.run.alerts.conditions:RatingDrift",
    "ratings_without_strength": "league.run.alerts.conditions:RatingsWithoutStrength",
}
"""Name -> "module:attribute" of a class that is made with its options."""


def make_condition(choice: Component, *, place: str) -> Condition:
    """The condition of a name and its options.

    Args:
      place: dotted path of the choice in the configuration.
    Raises:
      ValueError: there is none such, or its options do not fit; names the key.
    """
    return cast(Condition, component_of(choice, ALERT_CONDITIONS, what="alert condition", place=place)())
