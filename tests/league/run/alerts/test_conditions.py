"""What every alert condition must do: nothing is wrong in a quiet league, it names what goes wrong, and recovers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from league.agents.learner.learner import UpdateReport
from league.core.gates.gates import GATE, TIMEOUT
from league.core.metagame.ratings import RatingRow, league_ratings
from league.core.state.records import Progress, SnapshotInfo
from league.core.state.state import LeagueState, digest
from league.hosts.protocol import LearnerProgress
from league.run.alerts.condition import ALERT_CONDITIONS, AlertInputs, Condition, make_condition
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.judge.probes.leagues import PairLeague, chasing

MAIN = "main-0"
GIB = 1 << 30


def quiet() -> AlertInputs:
    """A league after its first games, of which nothing is wrong."""
    league = SimulatedLeague(three_roles())
    league.run(20)
    return AlertInputs(now=100.0, phase="training", state=league.state, disk_free=50 * GIB, disk_floor=GIB)


def progress_of(*, skipped: int = 0, entropy: float = 1.0, stale_steps: int = 0) -> dict[str, LearnerProgress]:
    zeros = {field.name: 0.0 for field in dataclasses.fields(UpdateReport) if field.default is dataclasses.MISSING}
    update = UpdateReport(**{**zeros, "steps": 100, "entropy": entropy, "stale_steps": stale_steps, "lag_mean": 70.0})  # type: ignore[arg-type]
    return {MAIN: LearnerProgress(Progress(MAIN, 1, 100), update, skipped)}


def with_reasons(seen: AlertInputs, *reasons: str) -> AlertInputs:
    """The main agent has as many snapshots more, taken for these reasons."""
    player = seen.state.players[MAIN]
    for reason in reasons:
        name = f"{MAIN}-s{player.num_snapshots}"
        seen.state.snapshots[name] = SnapshotInfo(name, "0" * 64, MAIN, player.role, None, 0, 0, reason)
        player.num_snapshots += 1
    return seen


def rated(seen: AlertInputs, *elos: float) -> AlertInputs:
    first = seen.state.players[MAIN].num_snapshots
    seen = with_reasons(seen, *[GATE] * len(elos))
    rows = {f"{MAIN}-s{first + number}": elo for number, elo in enumerate(elos)}
    return replace(seen, ratings={name: RatingRow(name, elo, elo - 30, elo + 30, 100) for name, elo in rows.items()})


def _skips(seen: AlertInputs) -> list[AlertInputs]:
    return [
        replace(seen, now=seen.now + later, progress=progress_of(skipped=skipped))
        for later, skipped in ((0, 0), (5, 9), (400, 9))
    ]


def _moved(state: LeagueState) -> LeagueState:
    for player in state.players.values():
        player.version += 1
    return state


def _chase() -> list[AlertInputs]:
    """A league that chases itself, before it was rated, then rated, then with a flat rating."""
    state = PairLeague(chasing, lambda number: 0.0, snapshots=20).state
    ratings = {row.policy: row for row in league_ratings(state)}
    flat = {name: replace(row, elo=0.0, low=-30.0, high=30.0) for name, row in ratings.items() if name != "main-0-s0"}
    return [replace(quiet(), state=state, ratings=some) for some in ({}, ratings, flat)]


Scene = Callable[[], list[AlertInputs]]
SCENES: Mapping[str, tuple[str, Scene, str]] = {
    "a host that stays away": (
        "host_lost",
        lambda: [
            replace(quiet(), now=now, gone=gone) for now, gone in ((0, {"a-1": "x"}), (40, {"a-1": "x"}), (45, {}))
        ],
        "a-1",
    ),
    "a parked host": ("host_lost", lambda: [quiet(), replace(quiet(), parked=("a-2",)), quiet()], "a-2"),
    "updates that are not finite": ("not_learning", lambda: _skips(quiet()), MAIN),
    "an entropy that is gone": (
        "not_learning",
        lambda: [replace(quiet(), progress=progress_of(entropy=entropy)) for entropy in (1.0, 0.01, 0.5)],
        MAIN,
    ),
    "decisions that are too old": (
        "not_learning",
        lambda: [replace(quiet(), progress=progress_of(stale_steps=stale)) for stale in (0, 200, 10)],
        MAIN,
    ),
    "no update for long": (
        "not_learning",
        lambda: [quiet(), replace(quiet(), now=1100.0), replace(quiet(), now=1200.0, state=_moved(quiet().state))],
        MAIN,
    ),
    "a gate that never fires": (
        "gate_silent",
        lambda: [
            quiet(),
            with_reasons(quiet(), GATE, *[TIMEOUT] * 4),
            with_reasons(quiet(), *[TIMEOUT] * 4, GATE),
        ],
        MAIN,
    ),
    "a disk that is nearly full": (
        "disk_low",
        lambda: [replace(quiet(), disk_free=free) for free in (50 * GIB, GIB, 2 * GIB)],
        "",
    ),
    "a player that gets worse": (
        "rating_drift",
        lambda: [rated(quiet(), 0, 100, 200), rated(quiet(), 0, 200, 50), rated(quiet(), 0, 200, 180)],
        MAIN,
    ),
    "ratings that rise alone": ("ratings_without_strength", _chase, ""),
}
"""What goes wrong -> its condition, the moments before, in and after it, and the subject that is named."""


def test_every_registered_condition_has_a_scene() -> None:
    assert {kind for kind, _, _ in SCENES.values()} == set(ALERT_CONDITIONS)


@pytest.mark.parametrize("kind", sorted(ALERT_CONDITIONS))
def test_in_a_quiet_league_nothing_is_wrong_and_nothing_is_changed(kind: str) -> None:
    condition, seen = make_condition(kind, place="alerts"), quiet()
    before = digest(seen.state)
    assert [condition.check(replace(seen, now=seen.now + later)) for later in (0.0, 5.0, 500.0)] == [{}] * 3
    assert digest(seen.state) == before


@pytest.mark.parametrize("name", SCENES)
def test_what_goes_wrong_is_named_and_recovers(name: str) -> None:
    kind, scene, subject = SCENES[name]
    condition: Condition = make_condition(kind, place="alerts")
    before, wrong, after = (dict(condition.check(seen)) for seen in scene())
    assert subject in wrong and subject not in before and subject not in after
    assert wrong[subject] and wrong[subject][-1] != "."


def test_a_condition_takes_its_options_and_refuses_others() -> None:
    seen = replace(quiet(), disk_free=2 * GIB)
    assert make_condition({"kind": "disk_low", "floors": 3}, place="a").check(seen)
    assert not make_condition("disk_low", place="a").check(seen)
    for wrong, sentence in (({"kind": "disk_low", "floor": 3}, "a.floor: unknown key"), ("fire", "alert condition")):
        with pytest.raises(ValueError, match=sentence):
            make_condition(wrong, place="a")


def test_a_paused_player_is_not_silent() -> None:
    condition, seen = make_condition("not_learning", place="a"), quiet()
    seen.state.training_paused = True
    assert not condition.check(seen) and not condition.check(replace(seen, now=2000.0))
