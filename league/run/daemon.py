"""The daemon: grants leases, records their outcomes, carries out directives. The core decides, the runtime works.

One turn of its loop: take reports, turn them into commands, make the events durable, act on them. Nothing is acted on
before it is in the journal, so that after any crash a restart continues from the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from league.config.deadlines import START_S
from league.config.run_config import RunConfig
from league.core.state.commands import RequestLease, StartRun, StopRun
from league.envs.protocol import EnvError
from league.hosts.protocol import DeterministicRuntime, Runtime
from league.judge.probes.prober import Prober
from league.policies.policy_store import PolicyStore
from league.run.budget import BUDGET, LIMIT, SIGNAL, Spent
from league.run.budget_account import BudgetAccount
from league.run.checkpointing import RESCUE_S, RestartStates, unsaved_progress
from league.run.commander import Commander
from league.run.daemon_status import DaemonStatus
from league.run.effects import Effects
from league.run.fleet import Fleet
from league.run.host_reports import HostReports
from league.run.operations.adapter import Adapter
from league.run.operations.operator import Operator
from league.run.rating_phase import RatingPhase, rating_allowance
from league.run.snapshot_requests import SnapshotRequests
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import Troubles

POLL_S = 0.2
DRAIN_S = 60.0
"""Longest wait for open leases and directives before a stop gives them up."""
STOP_LEASES_S = 5.0
"""The same for leases after a signal, where somebody waits; a lease takes at most 4 s by default."""
RATING_WAIT_S = START_S + DRAIN_S
"""Longest wait for a host that can take a rating lease: it may have to start, and a learner to take up its state."""

MAX_NAMED = 10
"""Items that a sentence about a stop names."""


class Daemon:
    """Runs one league until a limit, the end of its budget, or a request to stop.

    Args:
      config: of the run.
      league: its history, open for writing.
      runtime: where hosts run; started and closed by the caller. fleet: these hosts.
      commander: has the league decide.
      policies: weights of snapshots and restart states of learners on disk.
      account: what is spent and what is left; its meter is started here once every learner is in place.
      observe: called once a turn; must return quickly.
      operator: requests of those who operate the run; None where nobody does.
      restore_hosts: called once when every learner is in place, before the first lease.
      prober: measures snapshots beside the training; closed by the caller.
      say: tells the user one sentence.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        league: JournaledLeague,
        runtime: Runtime,
        fleet: Fleet,
        commander: Commander,
        policies: PolicyStore,
        account: BudgetAccount,
        observe: Callable[[DaemonStatus], None],
        restore_hosts: Callable[[], object] = lambda: None,
        operator: Operator | None = None,
        prober: Prober | None = None,
        say: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._config, self._say = config, say
        self._league, self._runtime, self._account = league, runtime, account
        self._commander, self._fleet = commander, fleet
        self._observe, self._restore_hosts = observe, restore_hosts
        self._prober, self._operator, self._adapter = prober, operator, None
        if operator is not None:
            leases = league.state.totals.leases_finished
            self._adapter = Adapter(operator, demand=commander.demand, say=say, leases=leases)
        self._snapshots = SnapshotRequests(config.runtime, ask=commander.ask)
        self._restart_states = RestartStates(config.runtime, league.state, submit=runtime.submit)
        self._effects = Effects(league, runtime, policies, fleet, config=config, ask=commander.ask, say=say)
        self._reports = HostReports(
            league,
            policies,
            fleet=fleet,
            effects=self._effects,
            restart_states=self._restart_states,
            commander=commander,
            say=say,
        )
        account.read(env_steps=league.state.totals.env_steps)
        self._playing = False
        self.stop_requested = False

    def run(self) -> str:
        """Train until something ends it, then drain and save; returns why it ended."""
        self._commander.ask(StartRun())
        self._effects.frozen.take_back_mended()
        self._commander.issue_again(self._league.state.directives.values())
        reason = self._account.ended  # before this start: then nothing is trained
        while reason is None:
            settled = self._cycle("training", grant=RequestLease)
            reason = SIGNAL if self.stop_requested else self._account.ended if settled else None
        if reason == BUDGET or (reason == LIMIT and not self._deterministic):
            self._freeze_and_rate(since=Spent() if reason == BUDGET else self._account.begun)
        elif self._playing and not self._deterministic:
            self._snapshots.request_final(self._league.state)
        self._drain()
        self._abandon()
        self._checkpoint_all()
        self._commander.ask(StopRun(reason))
        self._league.commit()
        if self._operator is not None:
            self._operator.close()
        return reason

    def rescue(self) -> None:
        """After an error: save what the learners hold, as far as that goes within `RESCUE_S`. Begins nothing new."""
        self._commander.give_up()
        self._abandon()
        deadline = self._now() + RESCUE_S
        self._restart_states.ask_all(self._fleet.installed)
        while self._restart_states.waiting and self._now() < deadline:
            try:
                self._cycle("draining", grant=None)
            except EnvError:  # each host's games may raise for themselves
                continue
            except Exception as error:  # boundary: the error that ended the run is the one to report
                self._say(f"What was learnt since the last restart states could not be saved: {error}")
                return
        self._say_what_is_unsaved()

    @property
    def playing(self) -> bool:
        """True once every learner is installed and the games in flight were restored: there is play worth keeping."""
        return self._playing

    @property
    def spent(self) -> Spent:
        """Time and steps that the run has used so far."""
        return self._account.spent

    def _cycle(self, phase: str, *, grant: Callable[[str], RequestLease | None] | None) -> bool:
        """One turn of the loop. Returns False where nothing was decided: a deterministic runtime is still at work."""
        self._fleet.settle(self._league.state, number=self._config.runtime.actor_hosts)
        for report in self._runtime.poll(POLL_S, budget_fraction=self._account.fraction):
            self._reports.take(report)
        self._account.read(env_steps=self._league.state.totals.env_steps)
        if self._operator is not None:
            self._operator.carry_out(self._commander.demand)
        if self._prober is not None:
            core_seconds = self._account.spent.core_seconds
            self._prober.look(self._league.state, core_seconds, ask=self._commander.ask, phase=phase)
        settled = not self._works
        if settled:
            self._decide(phase, grant=grant)
        durable = self._commander.take_durable()
        self._take_up_changes()
        for event in durable:
            self._effects.carry_out(event)
        if self._operator is not None:
            self._operator.confirm()
        if settled:
            now = None if self._repeats else self._now()
            self._restart_states.ask_due(self._fleet.progress.values(), self._fleet.installed, now=now)
        self._observe(self.status(phase))
        return settled

    def _decide(self, phase: str, *, grant: Callable[[str], RequestLease | None] | None) -> None:
        """Decide what follows from the reports.

        Not while a deterministic runtime works: how many turns of the loop that takes must not show.
        """
        if phase != "rating":
            self._adapt()
        if grant is None:
            return
        moved = self._fleet.drain.settle(self._league.state, self._restart_states, installed=self._fleet.installed)
        for player in moved:
            self._effects.install(player)
        if phase == "training":
            self._request_by_budget()
            if not self._deterministic:
                self._snapshots.request_due(self._league.state, now=self._account.spent.seconds)
        self._grant(grant)

    def _request_by_budget(self) -> None:
        """Request the snapshots of a part of the budget that has begun; at its end every player is frozen anyway."""
        if self._account.fraction < 1.0:
            self._snapshots.request_by_budget(self._league.state, budget_fraction=self._account.fraction)

    def _adapt(self) -> None:
        """Take a remedy that is due. Where no clock may decide, only the league itself is looked at."""
        if self._adapter is None:
            return
        timed = self._account.follows_clock
        fraction = self._account.fraction if timed or self._config.budget.env_steps is not None else None
        progress = {} if self._repeats else self._fleet.progress
        self._adapter.look(self._league.state, progress, budget_fraction=fraction)

    def _take_up_changes(self) -> None:
        """Work with the configuration that the journal has now."""
        self._account.meter.hold(held=self._league.state.training_paused)
        if self._operator is None or self._operator.config is self._config:
            return
        self._config = config = self._operator.config
        self._account.budget = config.budget
        self._effects.use(config)
        self._snapshots.settings = self._restart_states.settings = config.runtime

    def status(self, phase: str) -> DaemonStatus:
        """The status that observers are shown."""
        losses = self._fleet.losses
        return DaemonStatus(
            spent=self._account.spent,
            budget_fraction=self._account.fraction,
            phase=phase,
            progress=self._fleet.progress,
            troubles=Troubles(
                refused=self._commander.refused,
                hosts_lost=losses.count,
                parked=tuple(losses.parked),
                quarantined_games=sum(losses.quarantined.values()),
                stuck=losses.stuck,
            ),
            gone=dict(losses.gone),
        )

    @property
    def _deterministic(self) -> bool:
        """True if the runtime repeats exactly."""
        return isinstance(self._runtime, DeterministicRuntime)

    def _now(self) -> float:
        """Seconds that never go back."""
        return self._account.meter.now()

    @property
    def _repeats(self) -> bool:
        """True if equal seeds must give equal histories, so that no clock decides."""
        return self._deterministic and not self._account.follows_clock

    @property
    def _works(self) -> bool:
        """True while a deterministic runtime has something in hand."""
        return isinstance(self._runtime, DeterministicRuntime) and self._runtime.has_work

    def _grant(self, ask: Callable[[str], RequestLease | None]) -> None:
        """Give every idle actor host the lease that `ask` wants for it.

        A deterministic runtime first carries out every directive, so that a lease decided after a stop sees the same
        population as one decided without it.
        """
        state = self._league.state
        if (
            not self._fleet.holds_all(state)
            or self._fleet.drain.leaving(state)
            or (self._deterministic and state.directives)
        ):
            return
        if not self._playing:
            if not self._fleet.actors:  # the clock of the budget starts with the first host that can play
                return
            self._restore_hosts()
            self._account.meter.start()
            self._playing = True
        for host in self._fleet.ready(state):
            request = ask(host)
            if request is not None and self._commander.ask(replace(request, num_envs=self._config.actors.num_envs)):
                del self._fleet.idle[host]

    def _freeze_and_rate(self, *, since: Spent) -> None:
        """Freeze every player once more, then settle the ratings within their fraction of the resources used.

        Not where a deterministic run is merely stopped: a snapshot then would make it differ from a run that continues.
        """
        self._snapshots.request_final(self._league.state)
        self._run_until(lambda: not self._league.state.directives)
        if not self._league.state.is_competitive:
            return
        until = self._account.spent
        allowance = rating_allowance(self._config, since=since, until=until, limits=self._account.limits)
        self._rate(RatingPhase(allowance, next_lease_id=lambda: self._league.state.next_lease_id, begun=until))

    def _rate(self, phase: RatingPhase) -> None:
        """Grant rating leases while the phase lasts. Hosts may have to come into place first, or again."""
        deadline = self._now() + RATING_WAIT_S
        while not self.stop_requested and phase.continues(self._account.spent, leases=self._league.state.leases):
            self._cycle("rating", grant=phase.request)
            if self._league.state.leases:
                deadline = self._now() + RATING_WAIT_S
            elif self._now() >= deadline:
                self._say(f"No host could play rating games for {RATING_WAIT_S:.0f} s: they are left out.")
                return

    def _drain(self) -> None:
        """Wait for what is in hand, a learner that is to take up a transplant among it."""
        is_awaited = self.stop_requested and not self._deterministic  # else its leases are part of what repeats exactly
        leases_until = self._now() + (STOP_LEASES_S if is_awaited else DRAIN_S)

        def nothing_open() -> bool:
            state = self._league.state
            if self._deterministic and self._playing and not self._works:  # as if it had not been stopped
                self._request_by_budget()
            plays = state.leases and (self._deterministic or self._now() < leases_until)
            waiting = plays or state.directives or self._commander.waiting
            return not waiting and (self._fleet.holds_all(state) or not self._playing)

        self._run_until(nothing_open)
        if left := self._open_work():
            rest = f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
            self._say(f"The stop no longer waits for {', '.join(left[:MAX_NAMED])}{rest}.")

    def _open_work(self) -> list[str]:
        """Names what a stop waits for: leases, directives, and learners that are not in place."""
        state = self._league.state
        leases = [f"lease {lease.lease_id} of {lease.host}" for lease in state.leases.values()]
        directives = [f"the {directive.kind} of {directive.player}" for directive in state.directives.values()]
        absent = [f"the learner of {player}" for player in state.players if player not in self._fleet.installed]
        return leases + directives + (absent if self._playing else [])

    def _abandon(self) -> None:
        """Let a task go that hangs, so that the learners of the same process can still be saved."""
        self._fleet.losses.stuck = ""
        if isinstance(self._runtime, DeterministicRuntime):
            self._runtime.abandon()

    def _checkpoint_all(self) -> None:
        self._restart_states.ask_all(self._fleet.installed)
        self._run_until(lambda: not self._restart_states.waiting)
        self._say_what_is_unsaved()

    def _say_what_is_unsaved(self) -> None:
        state = self._league.state
        absent = set(state.players) - self._fleet.installed if self._playing else set()
        for sentence in unsaved_progress(state, absent.union(self._restart_states.waiting)):
            self._say(sentence)

    def _run_until(self, is_done: Callable[[], bool]) -> bool:
        """Run without new leases until a condition holds or the time is up; returns True if it holds.

        The end of a run that repeats exactly waits for all that its runtime has in hand, unless a person asked for it.
        """
        patience_s = max(DRAIN_S, self._config.runtime.lease_deadline_s) if self._deterministic else DRAIN_S
        deadline = self._now() + patience_s
        while not is_done() and not (self._deterministic and self._fleet.losses.stuck):
            if self._now() >= deadline and not (self._repeats and self._works and not self.stop_requested):
                break
            self._cycle("draining", grant=None)
        return is_done()
