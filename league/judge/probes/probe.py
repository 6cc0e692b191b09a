"""Probes: what each is given, the protocol, and the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import msgspec

from league import higher_wings
from league.core.state.records import ProbeReading, ProbeTask
from league.core.state.scoring import Scoring
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import component_of
from league.envs.protocol import EnvConfig, EnvSpec
from league.errors import LeagueError
from league.policies.loaded_policy import LoadedPolicy


class DoesNotFit(LeagueError):  # noqa: N818 - it is an answer, not a failure
    """A probe can never measure this league; it is not asked again."""


@dataclass(frozen=True)
class Subject:
    """A snapshot that is to be measured.

    Fields:
      run: folder of the run. env, spec: its game.
      task: which snapshot, and which of its past it is to meet.
      load: the policy of one of these snapshots. Raises LeagueError.
      bots: of `evaluation.bots`.
      scoring: what the league counts. limit_s: processor seconds that the probe may take.
      ends_at: in seconds of `time.monotonic`, by when it must have ended, however little it has computed.
      seed: of games and openings, the same for every probe of a run, so that their results compare.
      greedy: whether policies take the likeliest action, as in games that hide nothing.
      place: dotted path of the probe in the configuration, for messages.
      remark: takes a sentence on what the probe leaves out while it measures the rest.
    """

    run: Path
    env: EnvConfig
    spec: EnvSpec
    task: ProbeTask
    load: Callable[[str], LoadedPolicy]
    bots: tuple[str, ...]
    scoring: Scoring
    limit_s: float
    ends_at: float
    seed: int
    greedy: bool
    place: str
    remark: Callable[[str], None]

    @property
    def policy(self) -> LoadedPolicy:
        """The policy of the snapshot that is measured."""
        return self.load(self.task.snapshot)


def require_opponents(subject: Subject) -> None:
    """Refuse a game of one team for a probe that plays matches.

    Raises:
      DoesNotFit: there is one.
    """
    if subject.spec.num_teams < 2:
        raise DoesNotFit(
            f"{subject.env.id} is a game of one team without an opponent: the probe mean_return measures it"
        )


@dataclass(frozen=True)
class PlayOptions:
    """The options that every probe with games has; others inherit them.

    Fields:
      games: that it plays, of each match. core_seconds: most processor time of one probe.
    """

    games: int = 200
    core_seconds: float = 20.0

    def problems(self) -> Iterator[str]:
        if self.games < 2:
            yield f"games: {self.games} must be at least 2"
        if self.core_seconds <= 0.0:
            yield f"core_seconds: {self.core_seconds} must be above 0"


class Probe(Protocol):
    """Measures a snapshot, in a process beside the run that is killed at `probes.deadline_s`."""

    @property
    def least_core_seconds(self) -> float:
        """Processor seconds below which it is not worth beginning."""
        ...

    @property
    def num_past(self) -> int:
        """Most earlier snapshots of the league that it meets; 0 for none."""
        ...

    def measure(self, subject: Subject) -> Sequence[ProbeReading]:
        """Measure the snapshot within about `subject.limit_s` processor seconds.

        Raises:
          DoesNotFit: it can never measure this league. LeagueError, EnvError: it could not this time.
        """
        ...


PROBES: Mapping[str, str] = {
    "yardsticks": "league.judge.probes.yardsticks:Yardsticks",
    "exact": "league.judge.probes.exact:Exact",
    "past": "league.judge.probes.past:Past",
    "mean_return": "league.judge.probes.returns:MeanReturn",
    **higher_wings.PROBES,
}
"""Name -> "module:attribute" of a class that is made with its options."""


def make_probe(choice: Component, *, place: str) -> Probe:
    """The probe of a name and its options.

    Args:
      place: dotted path of the choice in the configuration.
    Raises:
      ValueError: there is none such, or its options do not fit; names the key.
    """
    return cast(Probe, component_of(choice, PROBES, what="probe", place=place)())


def make_probes(kinds: Sequence[Component]) -> dict[str, Probe]:
    """All probes of `probes.kinds`, by name.

    Raises:
      ValueError: the first that cannot be made; names its key.
    """
    made: dict[str, Probe] = {}
    for number, choice in enumerate(kinds):
        place = f"probes.kinds.{number}"
        if kind_of(choice) in made:
            raise ValueError(f"{place}: {kind_of(choice)} is there twice")
        made[kind_of(choice)] = make_probe(choice, place=place)
    return made


class ProbeRequest(msgspec.Struct):
    """One probe. limit_s: processor seconds that it may take. digests: snapshot -> sha256 of its weights."""

    task: ProbeTask
    limit_s: float
    digests: dict[str, str]
