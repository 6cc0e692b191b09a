"""Settings refuse what cannot be meant, and say what is wrong; plug-ins are found by name."""

from __future__ import annotations

import numpy as np
import pydantic
import pytest

from envs.plugins import admit
from league.core.lifecycle import apply_created, create_league
from league.core.state.commands import CreateLeague
from league.core.state.events import LeagueCreated
from league.core.state.league_config import (
    GateConfig,
    LeagueConfig,
    MatchmakingConfig,
    PayoffConfig,
    PlayerConfig,
    RatingConfig,
)
from league.core.state.registry import GATES, MATCHMAKERS, load
from league.core.state.state import LeagueState


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (GateConfig, {"win_rate": 1.0}, "win_rate"),
        (GateConfig, {"min_steps": 10, "timeout_steps": 5}, "timeout_steps 5"),
        (GateConfig, {"reset_probability": 1.5}, "reset_probability"),
        (GateConfig, {"kind": "treshold"}, "nearest is 'threshold'"),
        (MatchmakingConfig, {"self_play": 0.5}, "= 1.15, not 1"),
        (MatchmakingConfig, {"self_play": -0.15, "pfsp": 1.0}, "negative"),
        (MatchmakingConfig, {"opponents_per_lease": 0}, "opponents_per_lease"),
        (PlayerConfig, {"role": "main_agnt"}, "nearest is 'main_agent'"),
        (PlayerConfig, {"matchmaker": "main"}, "no matchmaker 'main'"),
        (PlayerConfig, {"step_weight": 0.0}, "step_weight"),
        (PlayerConfig, {"count": 0}, "count"),
        (PlayerConfig, {"name": "../etc"}, "name"),
        (PlayerConfig, {"role": "my.module:role"}, "set `name`"),
        (PayoffConfig, {"half_life_steps": 0.0}, "half_life_steps"),
        (PayoffConfig, {"half_life_steps": -1.0}, "half_life_steps"),
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
    wrong = {"lease_turn": 1, "players": [{"gate": {"winrate": 0.5}, "matchmaking": {"x": 1}}], "payoff": {"y": 1}}
    with pytest.raises(pydantic.ValidationError) as caught:
        reader.validate_python(wrong)
    places = {".".join(map(str, problem["loc"])) for problem in caught.value.errors()}
    assert places == {"lease_turn", "players.0.gate.winrate", "players.0.matchmaking.x", "payoff.y"}


def test_roles_bring_their_published_resets_and_weightings() -> None:
    groups = [PlayerConfig(role=role) for role in ("main_agent", "main_exploiter", "league_exploiter")]
    assert [group.reset_probability for group in groups] == [0.0, 1.0, 0.25]
    assert [group.weighting for group in groups] == ["squared", "variance", "linear_capped"]
    assert [group.prefix for group in groups] == ["main", "main-exploiter", "league-exploiter"]
    own = PlayerConfig(gate=GateConfig(reset_probability=0.5), matchmaking=MatchmakingConfig(weighting="linear"))
    assert (own.reset_probability, own.weighting) == (0.5, "linear")


@pytest.mark.parametrize("registry", [MATCHMAKERS, GATES])
def test_every_registered_name_loads(registry: dict[str, str]) -> None:
    for name in registry:
        assert load(registry, name, what="plug-in") is not None


def test_a_plug_in_of_the_users_own_is_found_by_module_and_attribute() -> None:
    names = [
        f"{module}:{name}"
        for module in ("league.core.gates.gates", "no_such_module")
        for name in ("threshold", "nothing")
    ]
    for name in names:
        with pytest.raises(ValueError, match="nobody here has trusted"):
            load(GATES, name, what="gate")
    admit(names)
    assert load(GATES, "league.core.gates.gates:threshold", what="gate") is load(GATES, "threshold", what="gate")
    with pytest.raises(ValueError, match="has no 'nothing'"):
        load(GATES, "league.core.gates.gates:nothing", what="gate")
    with pytest.raises(ValueError, match="there is no module 'no_such_module'"):
        load(GATES, "no_such_module:nothing", what="gate")
