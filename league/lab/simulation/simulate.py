"""`league simulate`: what a configuration would do in weeks: the real core, simulated learners, virtual time."""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from league.agents.nets.network import build_network
from league.agents.weights import layout_of
from league.config.default_scoring import scoring_of
from league.config.run_config import RunConfig
from league.core.adapting import LOOK_EVERY, Facts, next_remedy
from league.core.chance import seed_of
from league.core.league import apply, decide
from league.core.retention import most_snapshots
from league.core.settings import value_of
from league.core.state import commands
from league.core.state.commands import Command, NothingToLease
from league.core.state.events import (
    EVENTS,
    ConfigChange,
    DirectiveIssued,
    Event,
    LeaseGranted,
    MixtureSolved,
    PlayerTransplanted,
    SnapshotAdded,
)
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.records import (
    IMPORTED_PREFIX,
    Assignment,
    AssignmentOutcome,
    Directive,
    DirectiveKind,
    Lease,
    Progress,
    is_from_outside,
)
from league.core.state.state import LeagueState, PlayerState
from league.envs.placements import Placements, has_placements
from league.envs.registry import spec_of
from league.lab.simulation.simulation_report import OutcomeTotals, Pace, SimulationReport, report_on
from league.lab.simulation.worlds import WORLDS, Policy, World, drawn_placements
from league.policies.policy_store import snapshot_bytes
from league.store.event_codec import EventCodec

STEPS_PER_S = 10_000.0
"""Env steps of one actor host a second where nothing else is said."""
TURNS_PER_GAME = 20
DRAW_FRACTION = 0.05
FINE, COARSE = 8, 2
"""A simulated lease is lengthened until a gate spans only so many, or fewer where the run would need many leases."""
MANY_LEASES = 100_000
MAX_OPPONENTS = 32
"""A simulated lease that stands for many real ones meets the opponents of them all, up to so many."""
MAX_SNAPSHOTS = 20_000
"""The simulation ends early at so many; the report then says when that is reached."""
CODEC_EVERY = 50
"""One event in so many is encoded, to estimate the size of the journal."""
NO_DIGEST = "0" * 64
PROGRESS_EVERY = 100
"""Leases between two calls of it."""

Elapsed = Callable[[float, float], None]
"""Called now and then, and at the end, with (virtual seconds done, those asked for)."""


def simulate(
    config: RunConfig,
    seconds: float,
    *,
    world: str = "disc",
    steps_per_s: float = STEPS_PER_S,
    decisions_per_game: int = TURNS_PER_GAME,
    clock: Callable[[], float] = time.perf_counter,
    progress: Elapsed | None = None,
) -> SimulationReport:
    """Run a configuration's league on simulated learners.

    Args:
      seconds: of virtual time.
      world: "skill", "disc" or "matrix", see `league.lab.simulation.worlds`.
      steps_per_s: env steps of one actor host per second. decisions_per_game: env steps of a game.
      clock: real seconds, for the speed in the report.
      progress: called with the progress so far.
    Raises:
      KeyError: no such world. LeagueError, EnvError: the configuration's game cannot be made.
    """
    spec = spec_of(config.env)
    hosts = max(config.runtime.actor_hosts, 1) if config.runtime.kind == "ray" else 1
    network = build_network(spec, config.network, seed=0)
    num_bytes, retention = snapshot_bytes(layout_of(network)), config.retention
    pace = Pace(
        steps_per_s,
        decisions_per_game,
        hosts,
        lease_steps=_lease_steps(config, seconds * hosts * steps_per_s),
        snapshot_bytes=num_bytes,
        most_snapshots=most_snapshots(retention.snapshots, retention.snapshots_gib * 2**30, snapshot_bytes=num_bytes),
        metrics_bytes=round((retention.metrics_mib + retention.spool_mib) * 2**20),
    )
    started = clock()
    settings = _with_opponents(config.league, pace.lease_steps / _real_lease_steps(config))
    simulation = Simulation(settings, spec.teams, world=WORLDS[world], pace=pace, seed=config.seed, adapts=config.adapt)
    simulation.run(seconds, progress)
    return report_on(
        simulation.state,
        simulation.totals,
        pace,
        asked_s=seconds,
        done_s=simulation.now,
        world=world,
        real_s=clock() - started,
        counts=scoring_of(config.league.payoff, spec),
    )


class Simulation:
    """A league whose hosts and learners are arithmetic.

    Args:
      settings, teams: of the league and its game.
      world: of the simulated policies. pace: of the run. seed: of everything.
      adapts: whether the league takes the remedies that it would take in a real run, see `league.core.adapting`.
    """

    def __init__(
        self,
        settings: LeagueConfig,
        teams: Sequence[int],
        *,
        world: World,
        pace: Pace,
        seed: int,
        adapts: bool = False,
    ) -> None:
        self.state = LeagueState()
        self.totals = OutcomeTotals()
        self.now = 0.0
        self._settings = settings
        self._teams = tuple(teams)
        self._world = world
        self._pace = pace
        self._seed = seed
        self._adapts = adapts
        self._rng = np.random.default_rng([seed, 1])
        self._unused = np.random.default_rng(0)
        self._codec = EventCodec(EVENTS)
        self._live: dict[str, Policy] = {}
        self._frozen: dict[str, Policy] = {}
        self._saved: dict[str, Policy] = {}
        self._sides = tuple(dict.fromkeys(self._teams))

    def run(self, seconds: float, progress: Elapsed | None = None) -> None:
        """Simulate this much more virtual time, or until there are too many snapshots."""
        if self.state.config is None:
            self._found()
        busy: list[tuple[float, int, Lease]] = []
        idle = [(self.now, host) for host in range(self._pace.hosts)]
        while self.now < seconds and len(self.state.snapshots) < MAX_SNAPSHOTS:
            for since, host in idle:
                lease = self._grant(host)
                heapq.heappush(busy, (since + self._pace.lease_steps / self._pace.steps_per_s, host, lease))
            self.now, host, lease = heapq.heappop(busy)
            self._finish(lease)
            if self._adapts and self.state.totals.leases_finished % LOOK_EVERY == 0:
                self._adapt(self.now / seconds)
            idle = [(self.now, host)]
            if progress is not None and lease.lease_id % PROGRESS_EVERY == 0:
                progress(min(self.now, seconds), seconds)
        if progress is not None:
            progress(min(self.now, seconds), seconds)

    def _found(self) -> None:
        self._ask(commands.CreateLeague(self._seed, len(self._teams), self._teams, self._settings))
        self._ask(commands.StartRun())
        for player in self.state.players:
            self._live[player] = self._world.first(self._rng)
        for opponent in self._settings.fixed_opponents:
            if opponent.policy.startswith(IMPORTED_PREFIX):
                self._ask(commands.ImportPolicy(opponent.policy, NO_DIGEST))
        for policy in self.state.population.index:
            if is_from_outside(policy):
                self._frozen[policy] = self._world.first(self._rng)
        self._carry_out_directives()

    def _ask(self, command: Command) -> list[Event]:
        """Decide and apply; chance follows the same rule as in a real run."""
        seed = seed_of(self.state, command)
        rng = self._unused if seed is None else np.random.default_rng(seed)
        events = decide(self.state, command, rng)
        for event in events:
            apply(self.state, event)
            self._count(event)
        return events

    def _count(self, event: Event) -> None:
        totals = self.totals
        totals.events += 1
        if totals.events % CODEC_EVERY == 0:
            totals.encoded += 1
            totals.encoded_bytes += len(self._codec.encode(event)[1])
        if isinstance(event, SnapshotAdded):
            totals.reasons[event.snapshot.player, event.snapshot.reason] += 1
        elif isinstance(event, PlayerTransplanted):
            totals.transplants[event.player] += 1
        elif isinstance(event, MixtureSolved):
            totals.mixtures += 1
        elif isinstance(event, DirectiveIssued) and event.directive.kind is DirectiveKind.RESET:
            totals.resets[event.directive.player] += 1

    def _adapt(self, budget_fraction: float) -> None:
        """Take the remedy that a real run would take now."""
        remedy = next_remedy(self.state, Facts(budget_fraction))
        if remedy is None:
            return
        changes = tuple(ConfigChange(key, "null", json.dumps(value)) for key, value in remedy.pairs)
        changes = tuple(change for change in changes if value_of(self.state, change.key) != json.loads(change.new))
        self._ask(commands.ChangeLeague(changes, by="adapt", reason=remedy.reason, remedy=remedy.name))
        if remedy.resets:
            self._ask(commands.RequestReset(remedy.resets))
        self._carry_out_directives()

    def _grant(self, host: int) -> Lease:
        try:
            (granted,) = self._ask(commands.RequestLease(f"actor-{host}"))
        except NothingToLease:
            self._carry_out_directives()
            (granted,) = self._ask(commands.RequestLease(f"actor-{host}"))
        assert isinstance(granted, LeaseGranted)
        return granted.lease

    def _finish(self, lease: Lease) -> None:
        steps = self._pace.lease_steps
        outcomes = tuple(self._play(assignment) for assignment in lease.assignments)
        self._ask(commands.FinishLease(lease.lease_id, lease.token, steps, outcomes))
        if lease.home is not None:
            self._train(lease)
        self._carry_out_directives()

    def _train(self, lease: Lease) -> None:
        """The home's learner learns from its recorded seats, and is saved where others may copy it."""
        assert lease.home is not None
        player = self.state.players[lease.home]
        recorded = sum(
            assignment.probability * sum(assignment.records) / len(assignment.records)
            for assignment in lease.assignments
        )
        steps = round(self._pace.lease_steps * recorded)
        met = [
            (self.policy_of(self._opponent(assignment, lease.home)), assignment.probability)
            for assignment in lease.assignments
        ]
        tuned = {item.name: item.value for item in player.hyperparameters}
        self._live[lease.home] = self._world.learn(self._live[lease.home], met, steps, _yield_of(tuned))
        progress = Progress(lease.home, player.version + 1, player.trained_steps + steps)
        self._ask(commands.ReportProgress(progress))
        if self._settings.pbt.selection:
            self._saved[lease.home] = self._live[lease.home]
            self._ask(commands.SaveCheckpoint(lease.home, NO_DIGEST, progress.version, progress.trained_steps))

    def _carry_out_directives(self) -> None:
        while self.state.directives:
            self._carry_out(next(iter(self.state.directives.values())))

    def _carry_out(self, directive: Directive) -> None:
        carry_out = {
            DirectiveKind.SNAPSHOT: self._freeze,
            DirectiveKind.RESET: self._reset,
            DirectiveKind.TRANSPLANT: self._transplant,
        }
        carry_out[directive.kind](directive, self.state.players[directive.player])

    def _freeze(self, directive: Directive, player: PlayerState) -> None:
        self._frozen[player.next_snapshot] = self._live[player.name]
        self._ask(commands.ConfirmSnapshot(directive.directive_id, NO_DIGEST, player.version, player.trained_steps))
        if len(self.state.population.snapshots()) > self._pace.most_snapshots:
            self._ask(commands.RetireSnapshots(self._pace.most_snapshots))

    def _reset(self, directive: Directive, player: PlayerState) -> None:
        assert directive.source is not None
        self._live[player.name] = self._frozen[directive.source]
        self._ask(commands.ConfirmReset(directive.directive_id))

    def _transplant(self, directive: Directive, player: PlayerState) -> None:
        assert directive.donor is not None
        self._live[player.name] = self._saved[directive.donor]
        self._ask(commands.ConfirmTransplant(directive.directive_id, NO_DIGEST, player.version, player.trained_steps))

    def _play(self, assignment: Assignment) -> AssignmentOutcome:
        """Results drawn from the world."""
        games = max(round(self._pace.lease_steps * assignment.probability / self._pace.decisions_per_game), 1)
        seats = range(len(assignment.policies))
        placements = self._placements(assignment, games) if len(self._sides) > 1 else ()
        wins = [[0] * len(seats) for _ in seats]
        draws = [[0] * len(seats) for _ in seats]
        for ranks, times in placements:
            rank = dict(zip(self._sides, ranks, strict=True))
            for k, own in enumerate(self._teams):
                for m, other in enumerate(self._teams):
                    wins[k][m] += times if rank[own] < rank[other] else 0
                    draws[k][m] += times if rank[own] == rank[other] and own != other else 0
        returns = tuple(float(self.policy_of(policy)[0] * games) for policy in assignment.policies)
        return AssignmentOutcome(
            assignment.policies,
            games,
            aborted=0,
            decisions=games * self._pace.decisions_per_game,
            wins=tuple(map(tuple, wins)),
            draws=tuple(map(tuple, draws)),
            return_sums=returns,
            placements=placements if has_placements(self._teams) else (),
        )

    def _placements(self, assignment: Assignment, games: int) -> Placements:
        """Draws placements of the sides: all equal in some games, by their win rates against the first in the rest."""
        policies = [self.policy_of(assignment.policies[self._teams.index(side)]) for side in self._sides]
        drawn = int(self._rng.binomial(games, DRAW_FRACTION))
        chances = [self._world.win_rate(policies[0], policy) for policy in policies[1:]]
        placements = drawn_placements(chances, games - drawn, self._rng)
        if drawn:
            placements[(0,) * len(policies)] = drawn
        return tuple(sorted(placements.items()))

    def policy_of(self, name: str) -> Policy:
        """The simulated policy of that id."""
        live = self._live.get(name)
        return self._frozen[name] if live is None else live

    @staticmethod
    def _opponent(assignment: Assignment, home: str) -> str:
        return next((policy for policy in assignment.policies if policy != home), home)


def _yield_of(tuned: dict[str, float]) -> float:
    """Learning rate of a simulated learner with these values: best at twice the step size and half the entropy."""
    rate = 1.0
    for name, best in (("learning_rate", 2.0), ("entropy_cost", 0.5), ("discount", 1.0)):
        if name in tuned:
            rate *= float(np.exp(-0.5 * np.log(tuned[name] / best) ** 2))
    return rate


def _lease_steps(config: RunConfig, env_steps: float) -> int:
    """Env steps of a simulated lease: those of a real one, or more where every gate spans many of them.

    Args:
      env_steps: of the whole run.
    """
    real = _real_lease_steps(config)
    spans = [max(group.gate.min_steps, group.gate.timeout_steps // 4) for group in config.league.players]
    if config.league.pbt.selection:
        spans.append(config.league.pbt.period_steps)
    fine, coarse = max(real, min(spans) // FINE), max(real, min(spans) // COARSE)
    return int(min(max(env_steps / MANY_LEASES, fine), coarse))


def _real_lease_steps(config: RunConfig) -> int:
    """Env steps of one lease of the real run."""
    return config.actors.num_envs * config.league.lease_steps


def _with_opponents(settings: LeagueConfig, num_leases: float) -> LeagueConfig:
    """The same with as many opponents in one simulated lease as `num_leases` real ones meet."""

    def widened(group: PlayerConfig) -> PlayerConfig:
        met = min(round(num_leases * group.opponents_per_lease), MAX_OPPONENTS)
        return replace(group, opponents_per_lease=max(met, group.opponents_per_lease))

    players = tuple(widened(group) for group in settings.players)
    return replace(settings, players=players)
