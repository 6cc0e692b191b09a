"""The probe against fixed yardsticks: bots, and frozen references of other runs. None of them ever changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.acting.policy import Policy
from league.core.state.records import ProbeReading, bot_name
from league.eval.entrants import FROM
from league.eval.pairs import bot_entrant
from league.eval.report import fitting_bots
from league.eval.timed import affordable
from league.policies.loading import build_policy, copies_at
from league.probes.matches import readings_against
from league.probes.probe import DoesNotFit, Subject

DECISIONS = 20.0
"""Decisions of a bot in a game, for an estimate of its cost."""


@dataclass(frozen=True)
class YardsticksOptions:
    """Options.

    Fields:
      against: bots, and FOLDER:NAME for a policy of another run or snapshot folder; empty for `evaluation.bots`.
      games: against each, half from either seat.
      core_seconds: most processor time of one probe; a bot too slow for its part of that is left out.
    """

    against: tuple[str, ...] = ()
    games: int = 200
    core_seconds: float = 20.0

    def problems(self) -> Iterator[str]:
        """Sentences that begin with a field's name."""
        if self.games < 2:
            yield f"games: {self.games} must be at least 2"
        if self.core_seconds <= 0.0:
            yield f"core_seconds: {self.core_seconds} must be above 0"


class Yardsticks:
    """Score of the snapshot against each yardstick."""

    least_core_seconds = 1.0
    num_past = 0

    def __init__(self, options: YardsticksOptions) -> None:
        self._options = options

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading for each yardstick that can be played in time."""
        names = self._options.against or subject.bots
        references = [name for name in names if _is_reference(name)]
        bots = [bot_name(name) for name in names if not _is_reference(name)]
        fitting, notes = fitting_bots(subject.env, bots, seed=subject.seed)
        if not fitting and not references:
            raise DoesNotFit("; ".join(notes) or "no yardstick is named: give probes.kinds.N.against")
        limit_s = min(self._options.core_seconds, subject.limit_s)
        fitting, _ = affordable(
            subject.env, fitting, limit_s=limit_s, players=1, decisions=DECISIONS, seed=subject.seed
        )
        opponents: dict[str, Callable[[int], Policy]] = {}
        opponents.update({bot: functools.partial(_bot, bot) for bot in fitting})
        opponents.update({name: functools.partial(_reference, subject, name) for name in references})
        return readings_against(subject, opponents, games=self._options.games, limit_s=limit_s)


def _is_reference(name: str) -> bool:
    return FROM in name and Path(name.rpartition(FROM)[0]).exists()


def _bot(name: str, seed: int) -> Policy:
    return bot_entrant(name, seed=seed)


def _reference(subject: Subject, name: str, seed: int) -> Policy:
    """A policy of another folder; of a mixture its heaviest member, so that the yardstick stays the same."""
    folder, _, player = name.rpartition(FROM)
    copy = copies_at(Path(folder), player)[0]
    policy = build_policy(copy.name, copy.weights, copy.manifest, subject.spec, seed=seed, source=Path(folder))
    return policy.as_seat_policy(greedy=subject.greedy)
