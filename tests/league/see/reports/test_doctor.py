"""Each finding of the doctor on a league that is ill in just that way, and none on a healthy one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from league.core.league import apply, decide
from league.core.state.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    ReportProgress,
    RequestLease,
    StartRun,
)
from league.core.state.events import Event, LeaseGranted
from league.core.state.league_config import (
    GateConfig,
    LeagueConfig,
    PayoffConfig,
    PlayerConfig,
    RatingConfig,
)
from league.core.state.population_config import FixedOpponentConfig
from league.core.state.records import AssignmentOutcome, Progress
from league.core.state.scoring import BY_WINS, Scoring
from league.core.state.state import LeagueState
from league.see.reports.doctor import DoctorReport, examine, examine_run
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder

GATE = GateConfig(min_steps=1_000, timeout_steps=3_000, test={"min_games": 4})
DIGEST = "4" * 64


class Patient:
    """A league whose games come out as `chance` says, drawn in part; nobody earns anything."""

    def __init__(self, settings: LeagueConfig, *, scoring: Scoring = BY_WINS) -> None:
        self.state = LeagueState()
        self.events: list[Event] = []
        self.rng = np.random.default_rng(0)
        self.frozen: dict[str, float] = {}
        self.ask(CreateLeague(0, 2, (0, 1), settings, scoring))
        self.ask(StartRun())

    def ask(self, command: Command) -> list[Event]:
        events = decide(self.state, command, np.random.default_rng([1, len(self.events)]))
        for event in events:
            apply(self.state, event)
        self.events += events
        return events

    def chance(self, first: str, second: str) -> float:
        """Win rate of the policy on seat 0 against that on seat 1."""
        return 0.5

    def skill(self, player: str) -> float:
        """Of a learning player now; kept in `frozen` for each of its snapshots."""
        return 0.0

    def draw_fraction(self) -> float:
        return 0.0

    def live(self, leases: int, *, snapshots_per_budget: int = 0) -> DoctorReport:
        for _ in range(leases):
            while self.state.directives:
                directive = next(iter(self.state.directives.values()))
                player = self.state.players[directive.player]
                if directive.kind == "snapshot":
                    self.frozen[f"{player.name}-s{player.num_snapshots}"] = self.skill(player.name)
                    self.ask(ConfirmSnapshot(directive.directive_id, DIGEST, player.version, player.trained_steps))
                else:
                    self.ask(ConfirmReset(directive.directive_id))
            (granted,) = self.ask(RequestLease("host"))
            assert isinstance(granted, LeaseGranted)
            lease = granted.lease
            outcomes = tuple(self.play(assignment.policies) for assignment in lease.assignments)
            self.ask(FinishLease(lease.lease_id, lease.token, 400, outcomes))
            if lease.home is not None:
                player = self.state.players[lease.home]
                self.ask(ReportProgress(Progress(player.name, player.version + 1, player.trained_steps + 400)))
        return examine(self.state, iter(self.events), run="patient", snapshots_per_budget=snapshots_per_budget)

    def play(self, policies: tuple[str, ...], games: int = 30) -> AssignmentOutcome:
        drawn = games if self.rng.random() < self.draw_fraction() else 0
        won = int(self.rng.binomial(games - drawn, self.chance(*policies)))
        lost = games - drawn - won
        return AssignmentOutcome(
            policies, games, 0, 10 * games, ((0, won), (lost, 0)), ((0, drawn), (drawn, 0)), (0.0, 0.0)
        )


def config_of(**changes: object) -> LeagueConfig:
    group = PlayerConfig(gate=GATE)
    settings = LeagueConfig(
        players=(group,), payoff=PayoffConfig(half_life_steps=1e9), ratings=RatingConfig(step_fraction=0.3)
    )
    return dataclasses.replace(settings, **changes)  # type: ignore[arg-type]


def kinds(report: DoctorReport) -> set[str]:
    return {finding.check for finding in report.findings}


def test_a_healthy_league_has_no_findings() -> None:
    class Healthy(Patient):
        def chance(self, first: str, second: str) -> float:
            strength = [
                len(self.state.snapshots) if name == "main-0" else int(name.rpartition("s")[2])
                for name in (first, second)
            ]
            return float(np.clip(1.0 / (1.0 + np.exp(1.2 * (strength[1] - strength[0]))), 0.05, 0.95))

    gate = dataclasses.replace(GATE, timeout_steps=100_000)
    report = Healthy(config_of(players=(PlayerConfig(gate=gate),))).live(60)
    assert report.findings == ()
    assert "nothing found" in report.text()


class ThreeRoles(Patient):
    """A main agent that learns steadily, and exploiters that find something against it and start again."""

    def skill(self, player: str) -> float:
        known = self.state.players[player]
        learnt = known.trained_steps - known.gate_steps
        main = self.state.players["main-0"]
        return main.trained_steps / 700.0 + (0.0 if player == "main-0" else min(learnt / 700.0, 2.5) - 0.5)

    def chance(self, first: str, second: str) -> float:
        one, two = (self.frozen[name] if name in self.frozen else self.skill(name) for name in (first, second))
        return float(np.clip(1.0 / (1.0 + np.exp(two - one)), 0.05, 0.95))


def test_a_healthy_league_of_three_roles_has_no_findings() -> None:
    gate = dataclasses.replace(GATE, timeout_steps=4_000)
    roles = ("main_agent", "main_exploiter", "league_exploiter")
    players = tuple(
        PlayerConfig(role=role, gate=gate, step_weight=2.0 if role == "main_agent" else 1.0) for role in roles
    )
    league = ThreeRoles(config_of(players=players))
    report = league.live(240)
    assert report.findings == ()
    assert len(league.state.snapshots) > 15
    assert sum(player.generation for player in league.state.players.values()) > 3


def test_starved_pairs_are_found_where_evidence_fades_too_fast() -> None:
    assert "starved pairs" in kinds(Patient(config_of(payoff=PayoffConfig(half_life_steps=100.0))).live(100))


def test_a_gate_that_never_fires_is_found_with_the_opponent_that_holds_it() -> None:
    report = Patient(config_of()).live(120)
    (finding,) = [finding for finding in report.findings if finding.check == "gates that never fire"]
    assert "main-0" in finding.what
    assert "p-value of its being unbeaten was" in finding.evidence
    assert "gate.test.win_rate," in finding.change


def test_snapshots_every_so_many_steps_are_no_gate_that_never_fires() -> None:
    gate = dataclasses.replace(GATE, min_steps=3_000)
    assert "gates that never fire" not in kinds(Patient(config_of(players=(PlayerConfig(gate=gate),))).live(120))


def test_a_gate_over_returns_is_shown_as_the_margin_that_it_asks_for() -> None:
    report = Patient(config_of(), scoring=Scoring("returns", 26.0)).live(120)
    (finding,) = [finding for finding in report.findings if finding.check == "gates that never fire"]
    assert "(0.7 is a mean margin of 10.4) or payoff.return_scale (now 26)" in finding.change
    assert "returns, a margin of 26 counts as a certain win" in report.text()


def test_rating_drift_is_found_where_policies_beat_each_other_in_a_ring() -> None:
    class Ring(Patient):
        def chance(self, first: str, second: str) -> float:
            numbers = [0 if name == "main-0" else int(name.rpartition("s")[2]) % 3 for name in (first, second)]
            return (0.5, 0.9, 0.1)[(numbers[0] - numbers[1]) % 3]

    assert "rating drift" in kinds(Ring(config_of()).live(150))


def test_rating_drift_is_found_where_distant_policies_meet_and_neighbours_do_not_tell() -> None:
    """Each policy is even with those near it and loses against those far before it: ratings rise where nobody won."""

    class Forgetful(Patient):
        def chance(self, first: str, second: str) -> float:
            one, two = (0 if name == "main-0" else int(name.rpartition("s")[2]) for name in (first, second))
            if abs(one - two) < 12:
                return 1.0 / (1.0 + float(np.exp(0.4 * (two - one))))
            return 0.05 if one > two else 0.95

    report = Forgetful(config_of(ratings=RatingConfig(step_fraction=0.5))).live(320)
    assert any("older of a pair" in finding.evidence for finding in report.findings)


def test_seat_bias_is_found() -> None:
    class Biased(Patient):
        def chance(self, first: str, second: str) -> float:
            return 0.7

    report = Biased(config_of()).live(60)
    (finding,) = [finding for finding in report.findings if finding.check == "seat bias"]
    assert finding.what.endswith("% of the decided games are won by seat 0.") and finding.what[0] in "67"


@pytest.mark.parametrize(
    ("returns", "found"),
    [((0.0, 0.0), False), ((0.5, 0.5), False), ((None, None), True)],
    ids=["nothing is earned", "a constant sum shared", "the same every time"],
)
def test_opponents_who_always_earn_the_same_are_found(returns: tuple[float | None, ...], found: bool) -> None:
    class Partners(Patient):
        def play(self, policies: tuple[str, ...], games: int = 30) -> AssignmentOutcome:
            earned = float(self.rng.integers(0, games))
            sums = tuple(earned if one is None else games * one for one in returns)
            drawn = ((0, games), (games, 0))
            return AssignmentOutcome(policies, games, 0, 9 * games, ((0, 0), (0, 0)), drawn, sums)

    findings = [one for one in Partners(config_of()).live(60).findings if one.check == "opponents who earn the same"]
    assert len(findings) == int(found)
    if found:
        assert "seat 0, seat 1" in findings[0].evidence and "env.teams" in findings[0].change


def test_opponents_who_once_earned_another_number_are_no_team() -> None:
    class Rivals(Patient):
        def play(self, policies: tuple[str, ...], games: int = 30) -> AssignmentOutcome:
            drawn = games - int(len(self.events) < 20)
            wins = ((0, games - drawn), (0, 0))
            earned = float(self.rng.integers(0, games))
            return AssignmentOutcome(policies, games, 0, 9, wins, ((0, drawn), (drawn, 0)), (earned, earned))

    assert "opponents who earn the same" not in kinds(Rivals(config_of()).live(60))


class Drawn(Patient):
    """Three games in ten are drawn and a few more decided late; `cut` of (drawn, decided) were ended by a limit."""

    def __init__(self, cut: Callable[[np.random.Generator, int, int], int]) -> None:
        self.cut = cut
        super().__init__(config_of())

    def play(self, policies: tuple[str, ...], games: int = 30) -> AssignmentOutcome:
        drawn = int(self.rng.binomial(games, 0.3))
        won = int(self.rng.binomial(games - drawn, 0.5))
        truncated = self.cut(self.rng, drawn, games - drawn)
        wins = ((0, won), (games - drawn - won, 0))
        return AssignmentOutcome(policies, games, 0, 9 * games, wins, ((0, drawn), (drawn, 0)), (0.0, 0.0), truncated)


@pytest.mark.parametrize(
    ("what", "cut", "found"),
    [
        ("every draw is a timeout", lambda rng, drawn, decided: drawn, True),
        ("most draws are timeouts", lambda rng, drawn, decided: rng.binomial(drawn, 0.8), True),
        ("a full board is a draw by the rules", lambda rng, drawn, decided: 0, False),
        ("a few draws are timeouts", lambda rng, drawn, decided: rng.binomial(drawn, 0.2), False),
        ("at the limit there is a result", lambda rng, drawn, decided: rng.binomial(decided, 0.5), False),
        ("the limit ends games of any result", lambda rng, drawn, decided: rng.binomial(drawn + decided, 0.3), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_draws_are_timeouts_only_where_a_limit_ended_them(what: str, cut: Callable[..., int], found: bool) -> None:
    report = Drawn(cut).live(60)
    assert [finding.check for finding in report.findings].count("draws that are timeouts") == int(found)
    if found:
        (finding,) = [finding for finding in report.findings if finding.check == "draws that are timeouts"]
        assert finding.what.startswith(("29%", "30%", "31%"))
        assert "main-0" in finding.evidence


def test_an_exploiter_that_beats_nobody_is_found() -> None:
    class Hopeless(Patient):
        def chance(self, first: str, second: str) -> float:
            return 0.02 if "exploiter" in first else 0.98 if "exploiter" in second else 0.5

    players = (PlayerConfig(gate=GATE), PlayerConfig(role="main_exploiter", gate=GATE))
    report = Hopeless(config_of(players=players)).live(150)
    (finding,) = [finding for finding in report.findings if finding.check == "exploiters that learn nothing"]
    assert finding.what.startswith("main-exploiter-0 was frozen")


def test_games_against_solved_opponents_are_found() -> None:
    class Solved(Patient):
        def chance(self, first: str, second: str) -> float:
            return 1.0 if second == "bot:random" else 0.0 if first == "bot:random" else 0.5

    players = (PlayerConfig(gate=GATE, matchmaker={"self_play": 1.0, "pfsp": 0.0, "verification": 0.0}),)
    settings = config_of(players=players, fixed_opponents=(FixedOpponentConfig("bot:random", 0.5),))
    report = Solved(settings).live(60)
    (finding,) = [finding for finding in report.findings if finding.check == "actors wasted on solved opponents"]
    assert "bot:random" in finding.evidence


def test_games_and_leases_that_come_to_nothing_are_found() -> None:
    patient = Patient(config_of())
    patient.state.totals.aborted = 100
    patient.state.totals.leases_expired = 100
    assert [finding.check for finding in patient.live(30).findings].count("failing games") == 2


def test_a_run_folder_is_examined_from_its_journal(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: connect_four}\n")
    league = JournaledLeague.create(folder.journal_path, wall_time=lambda: 0.0)
    league.execute(CreateLeague(0, 2, (0, 1), LeagueConfig()))
    league.commit()
    league.close()
    report = examine_run(tmp_path / "run")
    assert json.loads(report.to_json())["findings"] == []


def test_exports_that_rest_on_too_few_snapshots_are_found_with_the_setting() -> None:
    seldom = dataclasses.replace(GATE, min_steps=5_000, timeout_steps=9_000)
    few = Patient(config_of(players=(PlayerConfig(gate=seldom),))).live(40)
    (finding,) = [finding for finding in few.findings if finding.check == "few snapshots to export"]
    assert finding.what.startswith("What is exported as mixture, average and best rests on 2 snapshots")
    assert "main-0 has 2 in" in finding.evidence
    assert "lower gate.min_steps (now 5,000) and gate.timeout_steps (now 9,000)" in finding.change
    often = dataclasses.replace(GATE, min_steps=500, timeout_steps=500)
    assert "few snapshots to export" not in kinds(Patient(config_of(players=(PlayerConfig(gate=often),))).live(40))


@pytest.mark.parametrize(
    ("per_budget", "change"),
    [(45, "45 snapshots are spread over all of it"), (4, "raise runtime.snapshots_per_budget (now 4)")],
)
def test_no_gate_is_to_be_lowered_where_snapshots_come_by_the_budget(per_budget: int, change: str) -> None:
    never = dataclasses.replace(GATE, min_steps=10**9, timeout_steps=10**9)
    report = Patient(config_of(players=(PlayerConfig(gate=never),))).live(40, snapshots_per_budget=per_budget)
    (finding,) = [finding for finding in report.findings if finding.check == "few snapshots to export"]
    assert change in finding.change and "gate" not in finding.change


def test_the_configuration_says_that_snapshots_come_by_the_budget(tmp_path: Path) -> None:
    yaml = "env: {id: connect_four}\nruntime: {snapshots_per_budget: 45}\n"
    folder = RunFolder.create(tmp_path / "run", config_yaml=yaml)
    league = JournaledLeague.create(folder.journal_path, wall_time=lambda: 0.0)

    class OnDisk(Patient):
        def ask(self, command: Command) -> list[Event]:
            events = league.execute(command)
            self.state = league.state
            return events

    never = dataclasses.replace(GATE, min_steps=10**9, timeout_steps=10**9)
    OnDisk(config_of(players=(PlayerConfig(gate=never),))).live(40)
    league.commit()
    league.close()
    (finding,) = examine_run(tmp_path / "run").findings
    assert finding.check == "few snapshots to export" and "45 snapshots" in finding.change
