"""Changes of a live league: what may change, that the change holds, replays, and can be taken back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from league.core.league import apply
from league.core.retention import needed_snapshots
from league.core.state.commands import AddPlayer, ChangeLeague, NothingToLease, Refused, RequestLease, RequestReset
from league.core.state.events import ConfigChange, PlayerReset, SettingsChanged, SnapshotAdded
from league.core.state.league_config import GateConfig, LeagueConfig, PayoffConfig, PlayerConfig, RatingConfig
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from tests.league.core.simulated_league import QUICK_GATE, SimulatedLeague, env_steps_of, three_roles

TWO = LeagueConfig(
    players=(PlayerConfig(gate=QUICK_GATE), PlayerConfig(role="main_exploiter", gate=QUICK_GATE)),
    ratings=RatingConfig(step_fraction=0.0),
)


def league_of_two() -> SimulatedLeague:
    league = SimulatedLeague(TWO)
    league.confirm_directives()
    return league


def change(league: SimulatedLeague, **values: object) -> SettingsChanged:
    """Change keys, written with `__` for a dot and `_0_` for a number."""
    changes = tuple(ConfigChange(key.replace("__", "."), "null", json.dumps(value)) for key, value in values.items())
    event, *_ = league.ask(ChangeLeague(changes, by="somebody", reason="a test"))
    assert isinstance(event, SettingsChanged)
    return event


def replayed(league: SimulatedLeague) -> LeagueState:
    state = LeagueState()
    for event in league.journal:
        apply(state, event)
    return state


def test_a_half_life_that_follows_the_snapshots_is_kept_when_gates_change() -> None:
    league = SimulatedLeague(replace(TWO, payoff=PayoffConfig(half_life_snapshots=3.0)))
    league.confirm_directives()
    league.state.payoff.half_life_steps = 123.0
    change(league, league__players__0__gate__timeout_steps=77_000)
    assert league.state.payoff.half_life_steps == 123.0
    change(league, league__payoff__half_life_steps=9.0)
    assert league.state.payoff.half_life_steps == 9.0


def test_a_setting_of_the_league_holds_from_the_change_on_and_keeps_the_value_before() -> None:
    league = league_of_two()
    event = change(league, league__ratings__step_fraction=0.5, league__players__0__gate__min_steps=7)
    assert [row.old for row in event.changes] == ["0.0", str(QUICK_GATE.min_steps)]
    assert league.state.config is not None
    assert league.state.config.ratings.step_fraction == 0.5
    assert league.state.config_of("main-0").gate.min_steps == 7
    assert league.state.config_of("main-exploiter-0").gate.min_steps == QUICK_GATE.min_steps
    assert {league.grant().home for _ in range(8)} > {None}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("league.players.0.role", "main_exploiter", "settled when the league was created"),
        ("league.ratings.anchor", "x", "settled when the league was created"),
        ("league.ratings.step_fraction", 1.5, r"step_fraction must lie in \[0, 1\)"),
        ("league.ratings.step_fraction", 0.0, "is 0.0 already"),
        ("league.players.0.gate.min_steps", 10**12, "timeout_steps .* must be at least"),
        ("players.main-7.paused", True, "no player 'main-7'"),
        ("players.main-0.role", "x", "may change, not 'role'"),
        ("players.main-0.paused", 1, "give true or false"),
        ("players.main-0.step_weight", -1, "must be positive"),
        ("players.main-0.step_weight", True, "give a number"),
        ("players.main-0.self_play", 1.5, "self_play is a probability"),
        ("players.main-0.discount", 2.0, "not 'discount'"),
        ("tags.main-0", "main-0-s0", "a policy of the league"),
        ("tags.Release", "main-0-s0", "can be no tag"),
        ("tags.release", "main-0-s9", "no snapshot 'main-0-s9'"),
        ("tags.release", 3, "give the name of a snapshot"),
        ("pins.main-0-s9", True, "no snapshot 'main-0-s9'"),
        ("pins.main-0-s0", "yes", "give true or false"),
        ("pins.main-0-s0", False, "is false already"),
        ("hosts.actor-0", "away", "give working, parked or drained"),
        ("hosts.../x", "parked", "can be no host"),
    ],
)
def test_what_may_not_change_is_refused_with_the_rule(key: str, value: object, words: str) -> None:
    league = league_of_two()
    before = digest(league.state)
    with pytest.raises(Refused, match=words):
        league.ask(ChangeLeague((ConfigChange(key, "null", json.dumps(value)),)))
    assert digest(league.state) == before


def test_a_new_weight_shares_the_steps_that_follow_and_owes_none_for_those_before() -> None:
    league = league_of_two()
    league.run(40)
    before = env_steps_of(league.state)
    assert before["main-0"] == before["main-exploiter-0"]
    change(league, **{"players__main-0__step_weight": 3.0})
    league.run(40)
    more = {name: steps - before[name] for name, steps in env_steps_of(league.state).items()}
    assert more["main-0"] == 3 * more["main-exploiter-0"]


def test_a_weight_of_a_group_reaches_its_players() -> None:
    league = league_of_two()
    change(league, league__players__1__step_weight=0.25)
    league.run(50)
    steps = env_steps_of(league.state)
    assert steps["main-0"] == 4 * steps["main-exploiter-0"]


def test_a_paused_player_gets_nothing_and_catches_nothing_up() -> None:
    league = league_of_two()
    change(league, **{"players__main-exploiter-0__paused": True})
    league.run(20)
    assert env_steps_of(league.state)["main-exploiter-0"] == 0
    change(league, **{"players__main-exploiter-0__paused": False})
    before = env_steps_of(league.state)
    league.run(20)
    more = {name: steps - before[name] for name, steps in env_steps_of(league.state).items()}
    assert more["main-0"] == more["main-exploiter-0"] > 0


def test_the_last_player_that_learns_cannot_be_paused() -> None:
    league = league_of_two()
    change(league, **{"players__main-0__paused": True})
    with pytest.raises(Refused, match="no player would learn any more"):
        change(league, **{"players__main-exploiter-0__retired": True})


def test_training_and_rating_pause_apart() -> None:
    league = league_of_two()
    league.run(12)
    change(league, league_state__rating_paused=True, league__ratings__step_fraction=0.9)
    assert league.grant().home is not None
    change(league, league_state__rating_paused=False, league_state__training_paused=True)
    assert league.grant().home is None
    change(league, league__ratings__step_fraction=0.0)
    with pytest.raises(NothingToLease, match="training is paused"):
        league.grant()


def test_a_player_that_retires_is_frozen_first_and_met_no_more() -> None:
    league = league_of_two()
    league.run(8)
    change(league, **{"players__main-0__retired": True})
    frozen = league.state.directives
    assert [(order.player, order.reason) for order in frozen.values()] == [("main-0", "retired")]
    league.confirm_directives()
    before = env_steps_of(league.state)["main-0"]
    for _ in range(12):
        lease = league.grant()
        assert all("main-0" not in assignment.policies for assignment in lease.assignments)
        league.finish(lease)
        league.confirm_directives()
    assert env_steps_of(league.state)["main-0"] == before
    change(league, **{"players__main-0__retired": False})
    league.run(4)
    assert env_steps_of(league.state)["main-0"] > before


def test_a_player_that_joins_late_starts_from_a_snapshot_and_owes_nothing() -> None:
    league = league_of_two()
    league.run(20)
    before = env_steps_of(league.state)
    count = ConfigChange("league.players.1.count", "1", "2")
    league.ask(AddPlayer(1, (count,), "text", parent="main-0-s0"))
    player = league.state.players["main-exploiter-1"]
    assert (player.parent, player.role) == ("main-0-s0", "main_exploiter")
    league.confirm_directives()
    assert player.initial == "main-exploiter-1-s0"
    assert league.state.snapshots["main-exploiter-1-s0"].parent == "main-0-s0"
    league.run(30)
    more = {name: steps - before.get(name, 0) for name, steps in env_steps_of(league.state).items()}
    assert len(set(more.values())) == 1
    with pytest.raises(Refused, match="its count must become 3"):
        league.ask(AddPlayer(1, (), "text"))
    with pytest.raises(Refused, match="no snapshot 'nobody-s0'"):
        league.ask(AddPlayer(1, (ConfigChange("league.players.1.count", "2", "3"),), "text", parent="nobody-s0"))


def test_a_player_does_not_join_from_a_snapshot_of_another_network() -> None:
    other = replace(TWO.players[1], network={"hidden": [8]})
    league = SimulatedLeague(replace(TWO, players=(TWO.players[0], other)))
    league.confirm_directives()
    count = ConfigChange("league.players.1.count", "1", "2")
    with pytest.raises(Refused, match="main-0-s0 has another network than the players of main-exploiter"):
        league.ask(AddPlayer(1, (count,), "text", parent="main-0-s0"))
    league.ask(AddPlayer(1, (count,), "text", parent="main-exploiter-0-s0"))


def test_a_reset_that_is_asked_for_comes_after_a_snapshot_even_of_a_main_agent() -> None:
    league = league_of_two()
    league.run(6)
    since = len(league.journal)
    league.ask(RequestReset("main-0"))
    with pytest.raises(Refused, match="waits for its learner"):
        league.ask(RequestReset("main-0"))
    league.confirm_directives()
    order = [type(event) for event in league.journal[since:] if isinstance(event, SnapshotAdded | PlayerReset)]
    assert order == [SnapshotAdded, PlayerReset]
    assert league.state.players["main-0"].generation == 1


def test_changes_replay_to_the_same_state_and_back_through_the_stored_form() -> None:
    league = league_of_two()
    rng = np.random.default_rng(0)
    keys = ["players.main-0.step_weight", "players.main-0.learning_rate", "league.players.1.gate.timeout_steps"]
    for _ in range(30):
        key = keys[rng.integers(len(keys))]
        value = int(rng.integers(2_000, 9_000))
        league.ask(ChangeLeague((ConfigChange(key, "0", json.dumps(value)),), reason="r", remedy="some remedy"))
        league.run(3)
    assert digest(replayed(league)) == digest(league.state)
    assert digest(from_plain(json.loads(json.dumps(to_plain(league.state))))) == digest(league.state)
    assert league.state.remedies["some remedy"].times == 30


def test_tags_and_pins_keep_their_snapshots_and_replay_and_a_parked_host_is_given_no_lease() -> None:
    often = GateConfig(test={"min_games": 4}, min_steps=400, timeout_steps=400)
    league = SimulatedLeague(three_roles(gate=often))
    league.run(120)
    name = next(name for name in league.state.snapshots if name not in needed_snapshots(league.state))
    change(league, **{"tags__release-3": name, f"pins__{name}": True, "hosts__actor-7": "parked"})
    assert name in needed_snapshots(league.state)
    change(league, **{"tags__release-3": None})
    assert name in needed_snapshots(league.state)
    with pytest.raises(NothingToLease, match="actor-7 is parked"):
        league.ask(RequestLease("actor-7"))
    assert digest(replayed(league)) == digest(league.state)
    assert digest(from_plain(json.loads(json.dumps(to_plain(league.state))))) == digest(league.state)
    change(league, **{f"pins__{name}": False, "hosts__actor-7": "working"})
    assert name not in needed_snapshots(league.state)
    assert league.ask(RequestLease("actor-7"))


def test_a_state_stored_before_there_were_live_changes_is_folded_again() -> None:
    plain = to_plain(league_of_two().state)
    del plain["fair_share"]["base_steps"], plain["fair_share"]["base_claim"]
    with pytest.raises(ValueError, match="lacks its bases"):
        from_plain(plain)
