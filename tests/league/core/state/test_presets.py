"""Presets are a few lines over the same parts; what is given beside them takes their place."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import pydantic
import pytest

from league.core.state.built_ins import PRESETS
from league.core.state.events import EVENTS, LeagueCreated
from league.core.state.league_config import LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import (
    FixedOpponentConfig,
    HyperparameterConfig,
    MetaGameConfig,
    PbtConfig,
    PopulationConfig,
)
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from tests.league.core.simulated_league import SimulatedLeague

READER = pydantic.TypeAdapter(LeagueConfig)
SHAPES = [(0, 1), (0, 1, 2), (0, 0, 1, 1), (0,)]


@pytest.mark.parametrize("teams", SHAPES, ids=str)
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_runs_on_every_shape_of_game(name: str, teams: tuple[int, ...]) -> None:
    config = READER.validate_python({"preset": name, "population": {"save_steps": 2_000}})
    league = SimulatedLeague(config, teams=teams)
    league.run(60)
    assert len(league.state.snapshots) > len(league.state.players)
    assert league.state.totals.games > 0
    assert digest(from_plain(json.loads(json.dumps(to_plain(league.state))))) == digest(league.state)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_resolved_preset_is_read_back_equal(name: str) -> None:
    config = READER.validate_python({"preset": name})
    assert READER.validate_python(dataclasses.asdict(config)) == config
    created = LeagueCreated(0, 2, (0, 1), config)
    assert msgspec.json.decode(msgspec.json.encode(created), type=EVENTS["LeagueCreated"]) == created


def test_alphastar_is_the_default_and_counts_any_number_of_each() -> None:
    assert LeagueConfig(preset="alphastar").players == LeagueConfig().players
    population = PopulationConfig(main_agents=3, main_exploiters=3, league_exploiters=6, save_steps=1_000)
    groups = LeagueConfig(preset="alphastar", population=population).players
    assert [(group.role, group.count) for group in groups] == [
        ("main_agent", 3),
        ("main_exploiter", 3),
        ("league_exploiter", 6),
    ]
    assert groups[0].step_weight * 3 == pytest.approx(9.0), "half of the env steps for the main agents"
    assert {(group.gate.min_steps, group.gate.timeout_steps) for group in groups} == {(1_000, 2_000)}
    alone = LeagueConfig(preset="alphastar", population=PopulationConfig(main_exploiters=0, league_exploiters=0))
    assert [group.role for group in alone.players] == ["main_agent"]


def test_exploiters_of_alphastar_may_start_again_from_the_main_agent_and_mains_never() -> None:
    population = PopulationConfig(main_agents=4, main_exploiters=4, league_exploiters=4, exploiters_reset_to="main")
    groups = LeagueConfig(preset="alphastar", population=population).players
    assert [group.gate.reset_to for group in groups] == ["initial", "main", "main"]
    with pytest.raises(pydantic.ValidationError, match="exploiters_reset_to"):
        READER.validate_python({"preset": "alphastar", "population": {"exploiters_reset_to": "best"}})


def test_the_words_of_unity_mean_what_they_mean_there() -> None:
    given = {"window": 7, "play_against_latest_model_ratio": 0.3, "save_steps": 20_000}
    (group,) = READER.validate_python({"preset": "window", "population": given}).players
    assert group.matchmaker["window"] == 7
    assert group.matchmaker["self_play"] == pytest.approx(0.3)
    assert (group.gate.min_steps, group.gate.timeout_steps) == (20_000, 20_000)


def test_openai_five_plays_80_percent_against_the_newest_weights() -> None:
    (group,) = LeagueConfig(preset="openai_five").players
    assert (group.matchmaker["self_play"], group.matchmaker_name) == (0.8, "quality")
    assert group.matchmaker["quality_rate"] == 0.01


def test_an_exploiter_is_one_player_that_is_never_reset_and_frozen_by_steps() -> None:
    preset = {
        "preset": "exploit",
        "population": {"save_steps": 500},
        "fixed_opponents": [{"policy": "bot:a", "probability": 1.0}],
    }
    (group,) = READER.validate_python(preset).players
    assert (group.role, group.count, group.matchmaker_name) == ("main_exploiter", 1, "fixed_opponents")
    assert group.reset_probability == 0.0
    assert (group.gate.min_steps, group.gate.timeout_steps) == (500, 500)


def test_what_is_given_beside_a_preset_takes_its_place_even_where_it_equals_the_default() -> None:
    psro = READER.validate_python({"preset": "psro", "lease_steps": 8})
    assert (psro.ratings.step_fraction, psro.meta_game.solve, psro.lease_steps) == (0.2, True, 8)
    given = READER.validate_python(
        {"preset": "psro", "ratings": {"step_fraction": 0.05}, "meta_game": {"solve": False}}
    )
    assert (given.ratings, given.meta_game) == (RatingConfig(), MetaGameConfig())
    own = READER.validate_python({"preset": "pbt", "players": [{"role": "main_agent"}]})
    assert own.players == LeagueConfig(players=(PlayerConfig(),)).players
    assert own.pbt.selection_name == "elo_gap"


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (LeagueConfig, {"preset": "alphstar"}, "nearest is 'alphastar'"),
        (LeagueConfig, {"population": PopulationConfig(window=3)}, "numbers of a preset"),
        (PopulationConfig, {"window": 0}, "window must be at least 1"),
        (PopulationConfig, {"play_against_latest_model_ratio": 1.5}, "latest_model_ratio"),
        (FixedOpponentConfig, {"policy": "random"}, "bot:NAME"),
        (
            FixedOpponentConfig,
            {"policy": "bot:random", "probability": 1.01},
            "probability of bot:random must be above 0 and at most 1",
        ),
        (FixedOpponentConfig, {"policy": "bot:random", "source": "runs/a"}, "only imported:NAME comes from one"),
        (FixedOpponentConfig, {"policy": "imported:../x"}, "NAME must be 1 to 64"),
        (FixedOpponentConfig, {"policy": "imported:"}, "NAME must be 1 to 64"),
        (
            LeagueConfig,
            {"fixed_opponents": (FixedOpponentConfig("bot:a"), FixedOpponentConfig("bot:a"))},
            "named twice",
        ),
        (LeagueConfig, {"fixed_opponents": (FixedOpponentConfig("bot:a", roles=("nobody",)),)}, "nobody"),
        (
            LeagueConfig,
            {"fixed_opponents": tuple(FixedOpponentConfig(f"bot:{i}", 0.4) for i in range(3))},
            "must not exceed 1",
        ),
        (PbtConfig, {"selection": "elo"}, "nearest is 'elo_gap'"),
        (HyperparameterConfig, {"name": "learning_rat"}, "no hyperparameter"),
        (HyperparameterConfig, {"name": "reward:kills"}, "reward:kills: rewards have no parts"),
        (HyperparameterConfig, {"name": "learning_rate", "low": 2.0}, "low 2.0 <= initial 1.0"),
        (PbtConfig, {"hyperparameters": (HyperparameterConfig("discount"), HyperparameterConfig("discount"))}, "twice"),
        (PbtConfig, {"factor": 1.0}, "factor"),
        (MetaGameConfig, {"growth": 0.0}, "growth"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(kind: type, wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        kind(**wrong)


def test_a_state_stored_by_an_earlier_version_is_read_with_defaults() -> None:
    league = SimulatedLeague(LeagueConfig())
    league.run(10)
    plain = json.loads(json.dumps(to_plain(league.state)))
    for name in ("qualities", "mixture"):
        del plain[name]
    for _, player in plain["players"]:
        for name in ("hyperparameters", "transplants", "fresh_steps", "mean_return", "return_games"):
            player.pop(name)
    for name in ("preset", "population", "fixed_opponents", "meta_game", "pbt"):
        del plain["config"][name]
    restored = from_plain(plain)
    assert isinstance(restored, LeagueState)
    assert restored.config == league.state.config
    assert restored.mixture == league.state.mixture


def test_a_founding_written_by_an_earlier_version_is_read() -> None:
    players = b'[{"role":"main_agent","count":1,"step_weight":1.0}]'
    body = b'{"seed":1,"num_seats":2,"teams":[0,1],"config":{"players":' + players + b"}}"
    created = msgspec.json.decode(body, type=LeagueCreated)
    assert created.config == LeagueConfig(players=(PlayerConfig(),))


def test_the_life_of_a_counter_may_end_before_its_timeout() -> None:
    """Counters that won every game trained on for half of their lives, and the main agents learnt nothing of it."""
    main, counter = LeagueConfig(preset="cross_play", population=PopulationConfig(save_steps=80_000)).players
    assert (main.gate.min_steps, main.gate.timeout_steps) == (80_000, 80_000)
    assert (counter.gate.min_steps, counter.gate.timeout_steps) == (10_000, 80_000)
