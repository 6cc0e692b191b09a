"""Random histories of a league: what must hold whatever is asked in whatever order."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import typing
from collections import Counter

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from league.core.league import APPLIERS, DECIDERS, apply, decide
from league.core.metagame.ratings import league_ratings
from league.core.pbt.pbt import pinned_checkpoints
from league.core.state.assignments import counted_pairs
from league.core.state.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    ConfirmTransplant,
    DropTransplant,
    ExpireLease,
    FinishLease,
    ImportPolicy,
    NothingToLease,
    QuarantineSnapshot,
    Refused,
    ReportProgress,
    RequestLease,
    RequestSnapshot,
    RestoreSnapshot,
    SaveCheckpoint,
    StartRun,
    StopRun,
)
from league.core.state.events import (
    EVENTS,
    DirectiveIssued,
    LeagueCreated,
    LeaseFinished,
    LeaseGranted,
    PlayerReset,
    PolicyImported,
    SnapshotAdded,
    SnapshotQuarantined,
    SnapshotRestored,
)
from league.core.state.league_config import LeagueConfig
from league.core.state.payoff import GAMES, SCORE
from league.core.state.population_config import FixedOpponentConfig, HyperparameterConfig, PbtConfig, PopulationConfig
from league.core.state.records import Directive, Lease, Progress
from league.core.state.scoring import BY_WINS, Scoring
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from league.policies.nash_export import league_mixture
from tests.league.core.simulated_league import DIGEST, SimulatedLeague, three_roles

PBT = PbtConfig(
    selection={"kind": "tournament", "confidence": 0.5},
    hyperparameters=(
        HyperparameterConfig("learning_rate"),
        HyperparameterConfig("self_play", initial=0.4, low=0.1, high=0.9),
    ),
    period_steps=500,
    burn_in_steps=500,
    min_games=2,
)
QUICK = PopulationConfig(save_steps=2_000)
POPULATIONS = {
    "three roles": lambda count: three_roles(count=count, rating_fraction=0.3),
    "fixed_opponents": lambda count: dataclasses.replace(
        three_roles(count=count, rating_fraction=0.3),
        fixed_opponents=(FixedOpponentConfig("bot:random", 0.2), FixedOpponentConfig("imported:opponent", 0.3)),
    ),
    "openai_five": lambda count: LeagueConfig(preset="openai_five", population=QUICK),
    "psro": lambda count: LeagueConfig(preset="psro", population=QUICK),
    "pbt": lambda count: LeagueConfig(preset="pbt", population=QUICK, pbt=PBT),
    "tuned mains": lambda count: dataclasses.replace(three_roles(count=count + 1, rating_fraction=0.3), pbt=PBT),
}


def is_still(state: LeagueState, before: bytes) -> bool:
    """True if a state is the one that was pickled. A digest takes twenty times as long: asked where bytes differ."""
    return pickle.dumps(state) == before or digest(state) == digest(pickle.loads(before))


class LeagueHistories(RuleBasedStateMachine):
    """Any order of commands, sensible or not; results come late, twice and for leases that are gone."""

    @initialize(
        teams=st.sampled_from([(0, 1), (0, 1), (0,), (0, 1, 2), (0, 1, 0, 1)]),
        seed=st.integers(0, 99),
        count=st.integers(1, 2),
        kind=st.sampled_from(sorted(POPULATIONS)),
        days=st.integers(0, 3),
        scoring=st.sampled_from([BY_WINS, Scoring("returns", 2.0), Scoring("returns", 0.1)]),
    )
    def found(self, teams: tuple[int, ...], seed: int, count: int, kind: str, days: int, scoring: Scoring) -> None:
        self.league = SimulatedLeague(POPULATIONS[kind](count), teams=teams, seed=seed, scoring=scoring)
        self.granted: list[Lease] = []
        self.accepted: Counter = Counter()
        for _ in range(days):
            self.an_ordinary_day(2)

    @rule(purpose=st.sampled_from(["any", "train", "rate"]))
    def grant(self, purpose: str) -> None:
        if not self.league.state.running:
            with pytest.raises(Refused):
                self.league.grant(purpose)
            return
        try:
            self.granted.append(self.league.grant(purpose))
        except NothingToLease:
            assert self.league.state.directives

    @precondition(lambda self: self.granted)
    @rule(pick=st.integers(0, 10**6), games=st.integers(0, 6), old_token=st.booleans())
    def answer(self, pick: int, games: int, old_token: bool) -> None:
        lease = self.granted[pick % len(self.granted)]
        outcomes = self.league.play(lease, games=games)
        open_before = lease.lease_id in self.league.state.leases
        command = FinishLease(lease.lease_id, lease.token - old_token, 50, outcomes)
        if not open_before or old_token:
            before = pickle.dumps(self.league.state)
            with pytest.raises(Refused):
                self.league.ask(command)
            assert is_still(self.league.state, before)
        else:
            self.league.ask(command)
            self.accepted.update(outcomes)

    @precondition(lambda self: self.league.state.leases)
    @rule(pick=st.integers(0, 10**6))
    def expire(self, pick: int) -> None:
        open_leases = list(self.league.state.leases)
        self.league.ask(ExpireLease(open_leases[pick % len(open_leases)], "lost"))

    @rule(pick=st.integers(0, 10**6), steps=st.integers(-500, 4_000))
    def progress(self, pick: int, steps: int) -> None:
        player = list(self.league.state.players.values())[pick % len(self.league.state.players)]
        self.league.ask(ReportProgress(Progress(player.name, player.version + 1, max(0, player.trained_steps + steps))))

    @rule(pick=st.integers(0, 10**6))
    def want_snapshot(self, pick: int) -> None:
        name = list(self.league.state.players)[pick % len(self.league.state.players)]
        waits = any(directive.kind in ("reset", "transplant") for directive in self.league.state.open_directives(name))
        if waits:
            with pytest.raises(Refused):
                self.league.ask(RequestSnapshot(name, "manual"))
        else:
            self.league.ask(RequestSnapshot(name, "manual"))

    @rule(pick=st.integers(0, 10**6))
    def checkpoint(self, pick: int) -> None:
        player = list(self.league.state.players.values())[pick % len(self.league.state.players)]
        self.league.ask(SaveCheckpoint(player.name, DIGEST, player.version, player.trained_steps))

    @precondition(lambda self: self.league.state.directives)
    @rule(pick=st.integers(0, 10**6), all_of_them=st.booleans())
    def confirm(self, pick: int, all_of_them: bool) -> None:
        if all_of_them:
            self.league.confirm_directives()
            return
        directives = list(self.league.state.directives.values())
        directive = directives[pick % len(directives)]
        player = self.league.state.players[directive.player]
        if directive.kind == "snapshot":
            self.league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, player.version, player.trained_steps))
        elif directive.kind == "transplant":
            self.check_pinned(directive)
            drops = pick % 3 == 0
            self.league.ask(
                DropTransplant(directive.directive_id, "unreadable")
                if drops
                else ConfirmTransplant(directive.directive_id, DIGEST, player.version, player.trained_steps)
            )
            assert drops or player.hyperparameters == directive.hyperparameters
        else:
            self.league.ask(ConfirmReset(directive.directive_id))

    def check_pinned(self, directive: Directive) -> None:
        """The restart state that a transplant copies is a restart state that its donor once had, and may not go."""
        saved = {(event.player, event.digest) for event in self.league.journal if hasattr(event, "digest")}
        assert (directive.donor, directive.checkpoint) in pinned_checkpoints(self.league.state) & saved
        assert directive.donor != directive.player

    @rule()
    def come_from_outside(self) -> None:
        if "imported:opponent" in self.league.state.population.index:
            with pytest.raises(Refused):
                self.league.ask(ImportPolicy("imported:opponent", DIGEST))
        else:
            self.league.ask(ImportPolicy("imported:opponent", DIGEST))

    @precondition(lambda self: self.league.state.snapshots)
    @rule(pick=st.integers(0, 10**6))
    def lose_or_find_a_snapshot(self, pick: int) -> None:
        name = list(self.league.state.snapshots)[pick % len(self.league.state.snapshots)]
        is_present = self.league.state.is_present(name)
        self.league.ask(QuarantineSnapshot(name, "unreadable") if is_present else RestoreSnapshot(name))

    @rule(number=st.integers(0, 3))
    def an_ordinary_day(self, number: int) -> None:
        """Everybody plays, learns and is saved: what tuning waits for."""
        if not self.league.state.running:
            return
        for player in list(self.league.state.players.values()):
            for purpose in ("train", "rate"):
                self.league.confirm_directives()
                lease = self.league.grant(purpose)
                outcomes = self.league.play(lease, games=3 + 4 * number)
                self.league.ask(FinishLease(lease.lease_id, lease.token, 50, outcomes))
                self.accepted.update(outcomes)
            self.league.ask(SaveCheckpoint(player.name, DIGEST, player.version, player.trained_steps))
            self.league.ask(ReportProgress(Progress(player.name, player.version + 1, player.trained_steps + 600)))

    @rule()
    def restart(self) -> None:
        self.league.ask(StartRun())

    @precondition(lambda self: self.league.state.running)
    @rule()
    def stop(self) -> None:
        self.league.ask(StopRun("asked"))

    @invariant()
    def deciding_changes_nothing(self) -> None:
        before = pickle.dumps(self.league.state)
        with contextlib.suppress(Refused):
            decide(self.league.state, RequestLease("host"), np.random.default_rng(0))
        assert is_still(self.league.state, before)

    @invariant()
    def scheduled_work_is_what_is_open(self) -> None:
        state = self.league.state
        homes = Counter(lease.home for lease in state.leases.values())
        assert state.fair_share.rating_leases == homes[None]
        assert state.fair_share.open_leases.values.tolist() == [homes[name] for name in state.players]

    def teardown(self) -> None:
        if not hasattr(self, "league"):
            return
        journal, state = self.league.journal, self.league.state
        self.check_conservation()
        check_order_of_events(journal)
        replayed = LeagueState()
        for event in journal:
            apply(replayed, event)
        assert digest(replayed) == digest(state)
        stored = from_plain(json.loads(json.dumps(to_plain(state))))
        assert digest(stored) == digest(state)
        assert league_ratings(stored) == league_ratings(state)
        assert league_mixture(stored) == league_mixture(state)

    def check_conservation(self) -> None:
        """What was answered and accepted is in the journal and in the payoff, once."""
        state = self.league.state
        journaled: Counter = Counter()
        for event in self.league.journal:
            if isinstance(event, LeaseFinished):
                journaled.update(event.outcomes)
        assert journaled == self.accepted
        assert state.totals.games == sum(outcome.games * times for outcome, times in self.accepted.items())
        assert state.totals.truncated == sum(outcome.truncated * times for outcome, times in self.accepted.items())
        for known in (state.totals, *state.players.values()):
            assert 0 <= known.truncated <= known.games
        expected: Counter = Counter()
        for outcome, times in self.accepted.items():
            numbers = [state.population.index[policy] for policy in outcome.policies]
            for i, j in counted_pairs(outcome.policies, state.teams):
                key = (numbers[i], numbers[j], i)
                expected[*key, 0] += outcome.wins[i][j] * times
                expected[*key, 1] += outcome.draws[i][j] * times
                expected[*key, 2] += outcome.wins[j][i] * times
        found: Counter = Counter()
        payoff = state.payoff
        for home, away, totals in zip(payoff.home.tolist(), payoff.away.tolist(), payoff.totals, strict=True):
            for seat, result in np.ndindex(*totals.shape):
                found[home, away, seat, result] += int(totals[seat, result])
        assert +found == +expected
        self.check_scores()

    def check_scores(self) -> None:
        """What one side of a pair has not scored the other one has; nobody scores more than the games there were."""
        payoff = self.league.state.payoff
        games, scores = payoff.totals.sum(axis=2), payoff.scores
        assert np.all((scores >= -1e-9) & (scores <= games + 1e-9))
        pairs = zip(payoff.home.tolist(), payoff.away.tolist(), strict=True)
        place = {pair: cell for cell, pair in enumerate(pairs)}
        for (home, away), cell in place.items():
            other = place[away, home]
            assert scores[cell].sum() + scores[other].sum() == pytest.approx(games[cell].sum())
            assert games[cell].sum() == games[other].sum()
        present = payoff.present(np.arange(len(payoff)), self.league.state.population.staleness_clock.values)
        assert np.all((present[:, SCORE] >= -1e-9) & (present[:, SCORE] <= present[:, GAMES] + 1e-9))


def check_order_of_events(journal: list) -> None:
    """Every lease is answered or lost at most once, seats known policies, and every reset follows its snapshot."""
    known, granted, closed, aside = set(), set(), set(), set()
    newest: dict[str, str] = {}
    for event in journal:
        if hasattr(event, "step_weight"):
            known.add(event.player)
        elif isinstance(event, LeagueCreated):
            known.update(event.config.bots)
        elif isinstance(event, PolicyImported):
            known.add(event.snapshot.snapshot_id)
        elif isinstance(event, SnapshotAdded):
            known.add(event.snapshot.snapshot_id)
            newest[event.snapshot.player] = event.snapshot.reason
        elif isinstance(event, DirectiveIssued) and event.directive.kind == "reset":
            assert newest[event.directive.player] in ("gate", "timeout"), "a reset without its snapshot"
            assert event.directive.source in known
        elif isinstance(event, SnapshotQuarantined):
            aside.add(event.snapshot)
        elif isinstance(event, SnapshotRestored):
            aside.remove(event.snapshot)
        elif isinstance(event, LeaseGranted):
            granted.add(event.lease.lease_id)
            assert all(
                policy in known - aside for assignment in event.lease.assignments for policy in assignment.policies
            )
        elif type(event).__name__ in ("LeaseFinished", "LeaseExpired"):
            assert event.lease_id in granted - closed
            closed.add(event.lease_id)
        elif isinstance(event, PlayerReset):
            assert event.source.rpartition("-s")[0] == event.player


TestLeagueHistories = LeagueHistories.TestCase
TestLeagueHistories.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def journal_of(seed: int, *, leases: int = 60) -> list:
    league = SimulatedLeague(three_roles(), seed=seed)
    league.run(leases)
    return league.journal


def test_the_same_seed_gives_the_same_league_and_another_seed_another() -> None:
    assert journal_of(3) == journal_of(3)
    assert journal_of(3) != journal_of(4)


def test_a_league_continues_from_its_stored_state_as_if_it_had_never_stopped() -> None:
    straight = SimulatedLeague(three_roles(), seed=5)
    straight.run(60)
    halted = SimulatedLeague(three_roles(), seed=5)
    halted.run(30)
    halted.state = from_plain(json.loads(json.dumps(to_plain(halted.state))))
    halted.run(30)
    assert halted.journal == straight.journal
    assert digest(halted.state) == digest(straight.state)


def test_every_role_is_frozen_and_every_exploiter_starts_again_in_the_course_of_a_league() -> None:
    league = SimulatedLeague(three_roles(), strength=lambda policy: 1.5 if "exploiter" in policy else 0.0)
    league.run(250)
    reasons = Counter((snapshot.role, snapshot.reason) for snapshot in league.state.snapshots.values())
    assert {role for role, reason in reasons if reason != "initial"} == {
        "main_agent",
        "main_exploiter",
        "league_exploiter",
    }
    assert reasons["main_exploiter", "gate"] > 0
    assert league.state.players["main-exploiter-0"].generation > 0


def test_every_event_and_command_has_its_rule() -> None:
    assert set(EVENTS.values()) == set(APPLIERS)
    assert all(name == kind.__name__ for name, kind in EVENTS.items())
    assert set(DECIDERS) == set(typing.get_args(Command))


def test_every_event_survives_json() -> None:
    for event in journal_of(0, leases=40):
        encoded = msgspec.json.encode(event)
        assert msgspec.json.decode(encoded, type=EVENTS[type(event).__name__]) == event
        assert dataclasses.is_dataclass(event)
