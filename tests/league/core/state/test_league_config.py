"""Settings refuse what cannot be meant, and say what is wrong; plug-ins are found by name."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pydantic
import pytest

from league.core.gates.gates import ThresholdGate
from league.core.gates.posterior_gate import PosteriorGate
from league.core.lifecycle import apply_created, create_league
from league.core.matchmaking.roles import MainAgent
from league.core.state.built_ins import GATES, MATCHMAKERS, ComponentOptionsError, dotted, load
from league.core.state.commands import CreateLeague
from league.core.state.events import LeagueCreated
from league.core.state.league_config import (
    GateConfig,
    LeagueConfig,
    PayoffConfig,
    PlayerConfig,
    RatingConfig,
)
from league.core.state.state import LeagueState
from league.core.state.state_codec import decode, encode
from league.envs.plugins import admit


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (ThresholdGate, {"win_rate": 1.0}, "win_rate"),
        (PosteriorGate, {"margin": 0.8}, "margin must lie in"),
        (GateConfig, {"min_steps": 10, "timeout_steps": 5}, "timeout_steps 5"),
        (GateConfig, {"reset_probability": 1.5}, "reset_probability"),
        (GateConfig, {"test": "treshold"}, "nearest is 'threshold'"),
        (MainAgent, {"self_play": 0.5}, "= 1.15, not 1"),
        (MainAgent, {"self_play": -0.15, "pfsp": 1.0}, "negative"),
        (PlayerConfig, {"opponents_per_lease": 0}, "opponents_per_lease"),
        (PlayerConfig, {"role": "main_agnt"}, "nearest is 'main_agent'"),
        (PlayerConfig, {"matchmaker": "main"}, "no matchmaker 'main'"),
        (PlayerConfig, {"step_weight": 0.0}, "step_weight"),
        (PlayerConfig, {"count": 0}, "count"),
        (PlayerConfig, {"name": "../etc"}, "name"),
        (PlayerConfig, {"role": "my.module:role"}, "set `name`"),
        (PayoffConfig, {"half_life_steps": 0.0}, "half_life_steps"),
        (PayoffConfig, {"half_life_steps": -1.0}, "half_life_steps"),
        (PayoffConfig, {"half_life_snapshots": 0.0}, "half_life_snapshots"),
        (PayoffConfig, {"prior_games": float("inf")}, "prior_games"),
        (RatingConfig, {"step_fraction": 1.0}, "step_fraction"),
        (RatingConfig, {"bots": ("bot:a", "bot:a")}, "twice"),
        (LeagueConfig, {"players": ()}, "at least one player"),
        (LeagueConfig, {"players": (PlayerConfig(), PlayerConfig())}, "'main'"),
        (LeagueConfig, {"lease_steps": 0}, "lease_steps"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(kind: type, wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        kind(**wrong)


@pytest.mark.parametrize(
    ("gates", "given", "expected"),
    [
        ([(1_000_000, 4_000_000)], None, 2_000_000),
        ([(10_000, 10_000)], None, 10_000),
        ([(1_000, 3_000), (5_000, 6_000)], None, 5_000),
        ([(1_000, 3_000)], 77.0, 77),
    ],
)
def test_evidence_fades_over_the_way_between_snapshots_unless_it_is_said_otherwise(
    gates: list[tuple[int, int]], given: float | None, expected: float
) -> None:
    players = tuple(
        PlayerConfig(name=f"group{place}", gate=GateConfig(min_steps=least, timeout_steps=timeout))
        for place, (least, timeout) in enumerate(gates)
    )
    config = LeagueConfig(players=players, payoff=PayoffConfig(half_life_steps=given))
    assert config.half_life_steps == expected
    state = LeagueState()
    for event in create_league(state, CreateLeague(0, 2, (0, 1), config), np.random.default_rng(0)):
        if isinstance(event, LeagueCreated):
            apply_created(state, event)
    assert state.payoff.half_life_steps == expected


def test_an_unknown_key_is_refused_at_every_level() -> None:
    reader = pydantic.TypeAdapter(LeagueConfig)
    wrong = {"lease_turn": 1, "players": [{"gate": {"winrate": 0.5}, "match": {"x": 1}}], "payoff": {"y": 1}}
    with pytest.raises(pydantic.ValidationError) as caught:
        reader.validate_python(wrong)
    places = {".".join(map(str, problem["loc"])) for problem in caught.value.errors()}
    assert places == {"lease_turn", "players.0.gate.winrate", "players.0.match", "payoff.y"}


def test_roles_bring_their_published_resets_and_weightings() -> None:
    groups = [PlayerConfig(role=role) for role in ("main_agent", "main_exploiter", "league_exploiter")]
    assert [group.reset_probability for group in groups] == [0.0, 1.0, 0.25]
    options = [group.matchmaker for group in LeagueConfig(players=tuple(groups)).players]
    assert [given["weighting"] for given in options] == ["squared", "variance", "linear_capped"]
    assert [group.prefix for group in groups] == ["main", "main-exploiter", "league-exploiter"]
    own = PlayerConfig(gate=GateConfig(reset_probability=0.5))
    assert own.reset_probability == 0.5


@pytest.mark.parametrize("registry", [MATCHMAKERS, GATES])
def test_every_registered_name_loads(registry: dict[str, str]) -> None:
    for name in registry:
        assert load(registry, name, what="plug-in") is not None


def test_a_plug_in_of_the_users_own_is_found_by_module_and_attribute() -> None:
    names = [
        f"{module}:{name}"
        for module in ("league.core.gates.gates", "no_such_module")
        for name in ("ThresholdGate", "nothing")
    ]
    for name in names:
        with pytest.raises(ValueError, match="nobody here has trusted"):
            load(GATES, name, what="gate")
    admit(names)
    assert load(GATES, "league.core.gates.gates:ThresholdGate", what="gate") is load(GATES, "threshold", what="gate")
    with pytest.raises(ValueError, match="has no 'nothing'"):
        load(GATES, "league.core.gates.gates:nothing", what="gate")
    with pytest.raises(ValueError, match="there is no module 'no_such_module'"):
        load(GATES, "no_such_module:nothing", what="gate")


OWN = GateConfig(test={"kind": "no_such_module:Gate", "patience": 3, "names": ["a"]})


def test_a_record_with_the_options_of_code_that_is_not_there_is_kept_and_read_back() -> None:
    """A journal is read, and a state stored, without a line of code from outside."""
    config = LeagueConfig(players=(PlayerConfig(gate=OWN),))
    assert config.players[0].gate == OWN
    created = LeagueCreated(0, 2, (0, 1), config)
    assert msgspec.json.decode(msgspec.json.encode(created), type=LeagueCreated) == created
    assert decode(LeagueConfig, json.loads(json.dumps(encode(config)))) == config


def test_every_option_of_a_registered_component_is_written_out() -> None:
    (group,) = LeagueConfig(players=(PlayerConfig(gate=GateConfig(test={"margin": 0}), matchmaker="window"),)).players
    assert group.gate.test == {
        "kind": "posterior",
        "win_rate": 0.7,
        "min_games": 10.0,
        "margin": 0.0,
        "confidence": 0.8,
    }
    assert group.matchmaker == {"kind": "window", "self_play": 0.35, "window": 10}


def test_all_wrong_options_of_a_league_are_named_at_once() -> None:
    players = (
        PlayerConfig(gate=GateConfig(test={"margn": 0.1, "win_rate": "high"})),
        PlayerConfig(role="main_exploiter", matchmaker={"pfsp": 1.0}),
    )
    with pytest.raises(ComponentOptionsError) as caught:
        LeagueConfig(players=players)
    assert [dotted(path) for path, _ in caught.value.problems] == [
        "players.0.gate.test.margn",
        "players.0.gate.test.win_rate",
        "players.1.matchmaker.pfsp",
    ]
