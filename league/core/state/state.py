"""The state of a league: the fold of its events. Only `league.core.league.apply` changes it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from league.core.state.commands import Refused
from league.core.state.episodes import Episodes
from league.core.state.fair_share import FairShare
from league.core.state.growable_array import GrowableArray
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.payoff import Payoff, Posterior
from league.core.state.population import Population
from league.core.state.records import (
    Directive,
    DirectiveKind,
    GameKind,
    Hyperparameter,
    Lease,
    ProbeReading,
    ProbeTask,
    SnapshotInfo,
)
from league.core.state.scoring import BY_WINS, Scoring
from league.core.state.state_codec import Plain, decode, encode
from league.envs.placements import is_competitive


@dataclass(frozen=True)
class CheckpointPointer:
    """The location of a learner's newest restart state. has_ema: it holds a moving average of the weights."""

    digest: str
    version: int
    trained_steps: int
    has_ema: bool = False


KEPT_LIVES = 8
"""Newest lives of a player that its state keeps."""


@dataclass(frozen=True)
class Life:
    """A life of an exploiter, which its gate or its timeout ended.

    Fields:
      score, games: of its last games, as of `Episodes`.
      seats: [S] (scores, games) against the main agents by its own seat.
      lease_id: next lease of the league when it ended.
    """

    score: float
    games: float
    seats: tuple[tuple[float, float], ...]
    lease_id: int


@dataclass
class PlayerState:
    """One learning player.

    Fields:
      name, role: identity. group: its index in `config.players`.
      policy: its number in the population. index: its place in the fair share.
      episodes: recent returns, lengths and scores, over its own leases.
      lives: newest last, those of an exploiter that have ended; at most `KEPT_LIVES`.
      version, trained_steps: as its learner last reported.
      games, aborted, truncated: episodes of the leases that were its own: ended, thrown away, ended by a time limit.
      generation: number of its resets.
      first_lease_id: leases below it were granted before the last reset; their games say nothing about today's weights.
      gate_steps: trained steps at the last snapshot or reset; from there the gate counts.
      num_snapshots: how many were taken of it.
      initial: its first snapshot, the source of its resets; None until that is confirmed.
      parent: snapshot that its weights descend from. Where `checkpoint` is None a learner starts from it.
      checkpoint: its newest restart state; None at first and after a reset.
      hyperparameters: its PBT values.
      transplants: number of times that it took another player's state.
      lost_steps: trained steps that were lost whenever its learner fell back to a restart state.
      fresh_steps: trained steps at the last transplant or reset, where its burn-in begins.
      paused: it learns nothing until it is taken up again, and is still met. retired: it has left for good.
      mean_return, return_games: recent, over its own leases: mean over its recorded games, and their fading number.
    """

    name: str
    role: str
    group: int
    policy: int
    index: int
    episodes: Episodes  # no default, nor of `lives`: a stored state without it is folded again from the events
    lives: tuple[Life, ...]
    version: int = 0
    trained_steps: int = 0
    games: int = 0
    aborted: int = 0
    truncated: int = 0
    generation: int = 0
    first_lease_id: int = 0
    gate_steps: int = 0
    num_snapshots: int = 0
    initial: str | None = None
    parent: str | None = None
    checkpoint: CheckpointPointer | None = None
    hyperparameters: tuple[Hyperparameter, ...] = ()
    transplants: int = 0
    fresh_steps: int = 0
    mean_return: float = 0.0
    return_games: float = 0.0
    lost_steps: int = 0
    paused: bool = False
    retired: bool = False

    @property
    def is_active(self) -> bool:
        """True if it is to learn."""
        return not (self.paused or self.retired)

    @property
    def next_snapshot(self) -> str:
        """Id of the snapshot that is taken of it next."""
        return f"{self.name}-s{self.num_snapshots}"

    def snapshot_ids(self) -> Iterator[str]:
        """Ids of the snapshots that were taken of it, newest first."""
        return (f"{self.name}-s{number}" for number in reversed(range(self.num_snapshots)))


@dataclass(frozen=True)
class Generation:
    """The maker of a player's games, see `league.core.matchmaking.generator`.

    Fields:
      accepted: snapshot that makes them. judged: its snapshots up to this number are judged or passed over.
      num_judged, num_accepted: candidates so far.
    """

    accepted: str
    judged: int
    num_judged: int = 0
    num_accepted: int = 0


@dataclass(frozen=True)
class Pause:
    """A pause of training: who asked for it, and why. Both may be empty."""

    by: str
    reason: str


@dataclass(frozen=True)
class Mixture:
    """The mixture solved last: weights by snapshot, heaviest first, and the games and snapshots it rests on."""

    weights: dict[str, float] = field(default_factory=dict)
    games: int = 0
    num_snapshots: int = 0
    exploitability: float = 0.0


@dataclass(frozen=True)
class AppliedRemedy:
    """A change that the league made by itself: how many times, its next lease and env steps at the last one, and why.

    Stored states of before the reason was kept are folded again from the events: it has no default.
    """

    times: int
    lease_id: int
    env_steps: int
    reason: str


@dataclass(frozen=True)
class ProbeResult:
    """A probe that has ended.

    Fields:
      task: what was measured. readings, core_seconds, problem, remark: as of `ProbeOutcome`.
      env_steps: of the league when it began. trained_steps: of the snapshot.
    """

    task: ProbeTask
    readings: tuple[ProbeReading, ...]
    core_seconds: float
    env_steps: int
    trained_steps: int
    problem: str = ""
    remark: str = ""


@dataclass
class Probes:
    """Results of probes, and the one that runs.

    Fields:
      begun: how many have begun. open: the one that runs; None for none. open_env_steps: of the league when it began.
      results: of those that have ended, oldest first; of many the older ones stand farther apart, see
        `league.core.probes`.
      core_seconds: of all of them, their processes included. costs: probe -> of its measurements, and of attempts that
        were interrupted, their processes included.
      open_core_seconds: of the attempt that runs, as far as it is known; in no sum before it ends or is interrupted.
      unfit: probe -> why it cannot measure this league. failures: probe -> how many in a row failed.
    """

    begun: int = 0
    open: ProbeTask | None = None
    open_env_steps: int = 0
    results: tuple[ProbeResult, ...] = ()
    core_seconds: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    open_core_seconds: float = 0.0


@dataclass
class Totals:
    """Counts over the whole league.

    Fields:
      games, aborted, decisions, truncated: of all finished leases, rating matches too.
      env_steps: of all finished leases but those that rate once training is over, which are `settling_steps`.
    """

    games: int = 0
    aborted: int = 0
    decisions: int = 0
    truncated: int = 0
    env_steps: int = 0
    rating_games: int = 0
    leases_finished: int = 0
    leases_expired: int = 0
    settling_steps: int = 0


@dataclass
class LeagueState:
    """Everything that the league knows.

    Fields:
      config: None until the league is created. num_seats, teams, scoring, kind, seed: as created.
      token: number of the run; 0 before the first. running: between its start and its orderly stop.
      next_lease_id, next_directive_id: numbers not yet given.
      players, snapshots: by id, in the order in which they came.
      leases, directives: the open ones, by id.
      population, payoff, fair_share, totals: see there.
      rating_games: int64 [P], all-frozen games of each policy of the population.
      qualities: player -> float64 [P], see `league.core.matchmaking.quality`; only players of that matchmaker.
      gate_evidence: player -> float64 [P', 3 + K], its bets on each policy met, see `league.core.gates.e_values`.
      carries_evidence: whether games are added to it, see `RunStarted`.
      generations: player -> who makes its games; only players of the matchmaker `generator`.
      met_chances: player -> float64 [P], chance with which its games in flight met each of its snapshots.
      mixture: over snapshots; empty where none is solved.
      training_paused, rating_paused: no training leases, or no rating matches, are granted.
      training_pause: who paused training and why; None while it is not paused.
      remedies: what the league has changed by itself, by name of the remedy.
      tags: name -> snapshot that somebody gave it to. pins: snapshots whose weights are to stay.
      hosts: those that are given no leases, "parked" or "drained"; see `league.core.marks`.
      probes: see there.
      config_text, config_text_before: text of the run's config.yaml, now and before its last change; empty where
        unknown.
    """

    config: LeagueConfig | None = None
    seed: int = 0
    num_seats: int = 0
    teams: tuple[int, ...] = ()
    scoring: Scoring = BY_WINS
    token: int = 0
    running: bool = False
    next_lease_id: int = 1
    next_directive_id: int = 1
    players: dict[str, PlayerState] = field(default_factory=dict)
    snapshots: dict[str, SnapshotInfo] = field(default_factory=dict)
    leases: dict[int, Lease] = field(default_factory=dict)
    directives: dict[int, Directive] = field(default_factory=dict)
    population: Population = field(default_factory=Population)
    payoff: Payoff = field(
        default_factory=lambda: Payoff(num_seats=1, half_life_steps=1.0, prior_games=1.0),
    )
    fair_share: FairShare = field(default_factory=FairShare)
    totals: Totals = field(default_factory=Totals)
    rating_games: GrowableArray = field(default_factory=lambda: GrowableArray("int64"))
    qualities: dict[str, GrowableArray] = field(default_factory=dict)
    met_chances: dict[str, GrowableArray] = field(default_factory=dict)
    mixture: Mixture = field(default_factory=Mixture)
    config_text: str = ""
    config_text_before: str = ""
    kind: GameKind = field(default_factory=GameKind)
    training_paused: bool = False
    rating_paused: bool = False
    training_pause: Pause | None = None
    remedies: dict[str, AppliedRemedy] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    hosts: dict[str, str] = field(default_factory=dict)
    probes: Probes = field(default_factory=Probes)
    gate_evidence: dict[str, GrowableArray] = field(default_factory=dict)
    carries_evidence: bool = False
    generations: dict[str, Generation] = field(default_factory=dict)

    def config_of(self, player: str) -> PlayerConfig:
        """The settings of a player's group."""
        assert self.config is not None, "the league is not created"
        return self.config.players[self.players[player].group]

    @property
    def is_competitive(self) -> bool:
        """True for a game with opponents: more than one team."""
        return is_competitive(self.teams)

    @property
    def has_teammates(self) -> bool:
        """True for a game in which a team has several seats."""
        return len(self.teams) > len(set(self.teams))

    @property
    def counts(self) -> str:
        """Describes for people what a game counts by."""
        return self.scoring.text if self.is_competitive else "the return of its one team"

    def posterior(self, policy: int) -> Posterior:
        """Win rates of a policy against every other, their evidence aged by how far the weights have moved."""
        return self.payoff.posterior(policy, self.population.staleness_clock.values)

    def player_at(self, index: int) -> str:
        """Id of the player with an index of the fair share."""
        return next(itertools.islice(self.players, index, None))

    def newest_snapshot(self, player: PlayerState) -> SnapshotInfo | None:
        """The last snapshot that was taken of a player; None before its first."""
        name = next(player.snapshot_ids(), None)
        return None if name is None else self.snapshots.get(name)

    def is_present(self, snapshot: str) -> bool:
        """True if the snapshot or imported policy exists and its weights are available."""
        return snapshot in self.snapshots and self.population.index[snapshot] not in self.population.absent

    def open_directive(self, directive_id: int, kind: DirectiveKind) -> Directive:
        """The open directive of that number and kind.

        Raises:
          Refused: there is none such.
        """
        directive = self.directives.get(directive_id)
        if directive is None or directive.kind != kind:
            raise Refused(f"no {kind} directive {directive_id} is open")
        return directive

    def issue_directive(self, directive: Directive) -> None:
        """Open a directive; its player waits where it blocks."""
        self.directives[directive.directive_id] = directive
        self.next_directive_id = directive.directive_id + 1
        self.fair_share.num_blocking.values[self.players[directive.player].index] += directive.blocks

    def close_directive(self, directive_id: int) -> None:
        """Close a directive that is carried out or dropped."""
        directive = self.directives.pop(directive_id)
        self.fair_share.num_blocking.values[self.players[directive.player].index] -= directive.blocks

    def open_directives(self, player: str) -> list[Directive]:
        """The player's open directives, oldest first."""
        return [directive for directive in self.directives.values() if directive.player == player]


def to_plain(state: LeagueState) -> Plain:
    """The whole state as JSON can hold it, so that a restart needs no replay from zero."""
    return encode(state)


def from_plain(plain: Plain) -> LeagueState:
    """The state that `to_plain` wrote; its digest is the same.

    Raises:
      KeyError, TypeError, ValueError: `plain` is not such a state.
    """
    state = decode(LeagueState, plain)
    assert isinstance(state, LeagueState)
    if set(state.met_chances) != set(state.qualities):
        raise ValueError("the qualities lack the chances of being met: an earlier version wrote them")
    if state.training_paused != (state.training_pause is not None):
        raise ValueError("the pause of training lacks its author: an earlier version wrote it")
    if len(state.fair_share.base_steps) != len(state.fair_share.step_weight):
        raise ValueError("the fair share lacks its bases: an earlier version wrote it")
    return state


def digest(state: LeagueState) -> str:
    """sha256 (hex) of the whole state; equal for equal histories. O(size of the state)."""
    text = json.dumps(encode(state), separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
