"""Each finding of the doctor on a league that is ill in just that way, and none on a healthy one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from league.book import Book
from league.core.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    ReportProgress,
    RequestLease,
    StartRun,
)
from league.core.events import Event, LeaseGranted
from league.core.league import apply, decide
from league.core.population_settings import GuestSettings
from league.core.records import Progress, SeatingOutcome
from league.core.settings import (
    GateSettings,
    LeagueSettings,
    MatchmakingSettings,
    PayoffSettings,
    PlayerSettings,
    RatingSettings,
)
from league.core.state import LeagueState
from league.doctor import DoctorReport, examine, examine_run
from league.store.run_folder import RunFolder

GATE = GateSettings(min_steps=1_000, timeout_steps=3_000, min_games=4)
DIGEST = "4" * 64


class Patient:
    """A league whose games come out as `chance` says, with so many turns and draws."""

    def __init__(self, settings: LeagueSettings) -> None:
        self.state = LeagueState()
        self.events: list[Event] = []
        self.rng = np.random.default_rng(0)
        self.ask(CreateLeague(0, 2, (0, 1), settings))
        self.ask(StartRun())

    def ask(self, command: Command) -> list[Event]:
        events = decide(self.state, command, np.random.default_rng([1, len(self.events)]), 0.0)
        for event in events:
            apply(self.state, event)
        self.events += events
        return events

    def chance(self, first: str, second: str) -> float:
        """Win rate of the policy on seat 0 against that on seat 1."""
        return 0.5

    def turns(self, drawn: int, games: int) -> int:
        return 10 * games

    def draw_share(self) -> float:
        return 0.0

    def live(self, leases: int) -> DoctorReport:
        for _ in range(leases):
            while self.state.orders:
                order = next(iter(self.state.orders.values()))
                player = self.state.players[order.player]
                if order.kind == "snapshot":
                    self.ask(ConfirmSnapshot(order.order_id, DIGEST, player.version, player.trained_steps))
                else:
                    self.ask(ConfirmReset(order.order_id))
            (granted,) = self.ask(RequestLease("host"))
            assert isinstance(granted, LeaseGranted)
            lease = granted.lease
            outcomes = tuple(self.play(seating.policies) for seating in lease.seatings)
            self.ask(FinishLease(lease.lease_id, lease.token, 400, outcomes))
            if lease.home is not None:
                player = self.state.players[lease.home]
                self.ask(ReportProgress(Progress(player.name, player.version + 1, player.trained_steps + 400)))
        return examine(self.state, iter(self.events), run="patient")

    def play(self, policies: tuple[str, ...], games: int = 30) -> SeatingOutcome:
        drawn = games if self.rng.random() < self.draw_share() else 0
        won = int(self.rng.binomial(games - drawn, self.chance(*policies)))
        lost = games - drawn - won
        return SeatingOutcome(
            policies, games, 0, self.turns(drawn, games), ((0, won), (lost, 0)), ((0, drawn), (drawn, 0)), (0.0, 0.0)
        )


def settings_of(**changes: object) -> LeagueSettings:
    group = PlayerSettings(gate=GATE)
    settings = LeagueSettings(
        players=(group,), payoff=PayoffSettings(half_life_steps=1e9), ratings=RatingSettings(share=0.3)
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
    report = Healthy(settings_of(players=(PlayerSettings(gate=gate),))).live(60)
    assert report.findings == ()
    assert "nothing found" in report.text()


def test_starved_pairs_are_found_where_evidence_fades_too_fast() -> None:
    assert "starved pairs" in kinds(Patient(settings_of(payoff=PayoffSettings(half_life_steps=100.0))).live(100))


def test_a_gate_that_never_fires_is_found_with_the_rival_that_holds_it() -> None:
    report = Patient(settings_of()).live(120)
    (finding,) = [finding for finding in report.findings if finding.check == "gates that never fire"]
    assert "main-0" in finding.what
    assert "expected not to be beaten" in finding.evidence
    assert "gate.win_rate" in finding.change


def test_rating_drift_is_found_where_policies_beat_each_other_in_a_ring() -> None:
    class Ring(Patient):
        def chance(self, first: str, second: str) -> float:
            numbers = [0 if name == "main-0" else int(name.rpartition("s")[2]) % 3 for name in (first, second)]
            return (0.5, 0.9, 0.1)[(numbers[0] - numbers[1]) % 3]

    assert "rating drift" in kinds(Ring(settings_of()).live(150))


def test_seat_bias_is_found() -> None:
    class Biased(Patient):
        def chance(self, first: str, second: str) -> float:
            return 0.7

    report = Biased(settings_of()).live(60)
    (finding,) = [finding for finding in report.findings if finding.check == "seat bias"]
    assert "Seat 0 wins 7" in finding.what or "Seat 0 wins 6" in finding.what


@pytest.mark.parametrize(("drawn_turns", "found"), [(100, True), (60, False)])
def test_draws_are_suspected_only_where_they_last_as_long_as_the_longest_games(drawn_turns: int, found: bool) -> None:
    class Drawn(Patient):
        def draw_share(self) -> float:
            return 0.3

        def turns(self, drawn: int, games: int) -> int:
            return games * (drawn_turns if drawn else int(self.rng.integers(20, 80)))

    assert ("draws that are timeouts" in kinds(Drawn(settings_of()).live(60))) == found


def test_an_exploiter_that_beats_nobody_is_found() -> None:
    class Hopeless(Patient):
        def chance(self, first: str, second: str) -> float:
            return 0.02 if "exploiter" in first else 0.98 if "exploiter" in second else 0.5

    players = (PlayerSettings(gate=GATE), PlayerSettings(role="main_exploiter", gate=GATE))
    report = Hopeless(settings_of(players=players)).live(150)
    (finding,) = [finding for finding in report.findings if finding.check == "exploiters that learn nothing"]
    assert finding.what.startswith("main-exploiter-0 was frozen")


def test_games_against_solved_opponents_are_found() -> None:
    class Solved(Patient):
        def chance(self, first: str, second: str) -> float:
            return 1.0 if second == "bot:random" else 0.0 if first == "bot:random" else 0.5

    matchmaking = MatchmakingSettings(self_play=1.0, pfsp=0.0, verification=0.0)
    players = (PlayerSettings(gate=GATE, matchmaking=matchmaking),)
    settings = settings_of(players=players, guests=(GuestSettings("bot:random", 0.5),))
    report = Solved(settings).live(60)
    (finding,) = [finding for finding in report.findings if finding.check == "actors wasted on solved opponents"]
    assert "bot:random" in finding.evidence


def test_games_and_leases_that_come_to_nothing_are_found() -> None:
    patient = Patient(settings_of())
    patient.state.totals.aborted = 100
    patient.state.totals.leases_expired = 100
    assert [finding.check for finding in patient.live(30).findings].count("failing games") == 2


def test_a_run_folder_is_examined_from_its_journal(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: connect_four}\n")
    book = Book.create(folder.journal_path, wall_time=lambda: 0.0)
    book.execute(CreateLeague(0, 2, (0, 1), LeagueSettings()))
    book.commit()
    book.close()
    report = examine_run(tmp_path / "run")
    assert json.loads(report.to_json())["findings"] == []
