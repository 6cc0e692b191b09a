"""Sections of a player's own: laid over the run's, opaque to the core, and checked under their full keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from league.agents.replay.row_bytes import RowLayout
from league.agents.unroll.unroll import UnrollSpec
from league.config import plugin_checks
from league.config.loading import parse_config
from league.config.player_settings import OwnValue, has_own, own_settings, own_values, settings_of
from league.config.plugin_checks import require_working_names
from league.config.plugin_names import outside_names
from league.config.run_config import RunConfig, config_plain, dump_config
from league.core.state.league_config import LeagueConfig
from league.core.state.state_codec import decode, encode
from league.envs.registry import spec_of
from league.errors import ConfigError
from league.run.launch import player_remarks

OWN: dict[str, Any] = {
    "learner": {"algorithm": {"kind": "ppo", "epochs": 2}, "batch_rows": 16, "pipeline": {"threads": 2}},
    "network": {"hidden": [8, 8]},
}


def config_of(own: dict[str, Any] = OWN, **sections: Any) -> RunConfig:
    """A main agent by the run's settings, and a group of two with its own."""
    plain = {
        "env": {"id": "tic_tac_toe"},
        "network": {"hidden": [12]},
        "learner": {"learning_rate": 0.004, "algorithm": {"kind": "vtrace", "value_cost": 0.3}},
        "league": {"players": [{"role": "main_agent"}, {"role": "main_agent", "name": "own", "count": 2, **own}]},
    }
    for section, values in sections.items():
        plain[section] = {**plain.get(section, {}), **values}
    return parse_config(yaml.safe_dump(plain), source="test")


def problems_of(own: dict[str, Any], **sections: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_of(own, **sections)
    return list(caught.value.problems)


def test_own_sections_lie_over_those_of_the_run() -> None:
    config = config_of()
    own = settings_of(config, "own-1")
    assert own.learner.learning_rate == config.learner.learning_rate == 0.004
    assert (own.learner.batch_rows, config.learner.batch_rows) == (16, 128)
    assert (own.learner.pipeline.threads, own.learner.pipeline.stages) == (2, 1)
    assert own.network.hidden == (8, 8) and config.network.hidden == (12,)
    assert own.learner.algorithm["kind"] == "ppo" and own.learner.algorithm["epochs"] == 2  # type: ignore[index]
    assert own.learner.algorithm["value_cost"] == 1.0, "the options of V-trace are not those of PPO"  # type: ignore[index]
    assert settings_of(config, "own-1-s3") == own, "a snapshot is as its player"
    for other in ("main-0", "main-0-s1", "bot:random", "imported:own-1"):
        assert settings_of(config, other).learner is config.learner
    assert list(own_settings(config)) == ["own"] and [has_own(group) for group in config.league.players] == [0, 1]


@pytest.mark.parametrize("choice", [{"lambda_": 0.5}, {"kind": "vtrace", "lambda_": 0.5}])
def test_options_of_the_same_component_are_laid_over_those_of_the_run(choice: dict[str, Any]) -> None:
    learner = settings_of(config_of({"learner": {"algorithm": choice}}), "own-0").learner
    assert (learner.algorithm["value_cost"], learner.algorithm["lambda_"]) == (0.3, 0.5)  # type: ignore[index]


def test_they_come_back_from_the_text_and_from_the_journal() -> None:
    config = config_of()
    assert parse_config(dump_config(config), source="again") == config
    assert decode(LeagueConfig, encode(config.league)) == config.league
    plain = encode(config.league)
    for group in plain["players"]:
        del group["learner"], group["network"]
    assert not any(map(has_own, decode(LeagueConfig, plain).players)), "a journal of an earlier version"


def test_every_problem_is_named_at_once_under_its_full_key() -> None:
    own = {
        "learner": {"batch_row": 4, "gamma": "high", "pipeline": {"replica": 2}},
        "network": {"hidden": "wide"},
    }
    found = problems_of(own)
    assert "league.players.1.learner.batch_row: unknown key, nearest is 'batch_rows'" in found
    for start in ("gamma: 'high' does not fit", "pipeline.replica: unknown key, nearest is 'replicas'"):
        assert any(problem.startswith(f"league.players.1.learner.{start}") for problem in found)
    assert any(problem.startswith("league.players.1.network.hidden: 'wide'") for problem in found)


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"learner": {"gamma": 2.0}}, "learner.gamma: 2.0 is not in (0, 1]"),
        (
            {"learner": {"algorithm": {"kind": "ppo", "correction": "none"}}},
            "learner.algorithm.correction: unknown key of ppo, it is an option of vtrace",
        ),
        (
            {"learner": {"batch_rows": 9, "microbatches": 2}},
            "learner.batch_rows: 9 rows do not cut into 2 equal microbatches",
        ),
        (
            {"learner": {"precision": "float32"}},
            "learner.precision: a host computes in one type for all of its players; set learner.precision",
        ),
        ({"actors": {"num_envs": 3}}, "actors.num_envs: the games are of all players; set actors.num_envs"),
        ({"actors": {"acting": {"kind": "sample", "temperature": 2}}}, "actors.acting.temperature: unknown key"),
        (
            {"network": {"value_output": "popart"}},
            "learner.value_normalisation: none does not go with network.value_output popart",
        ),
        (
            {"learner": {"pipeline": {"update_mode": "hogwild"}}},
            "learner.pipeline.update_mode: hogwild is for replicas that learn beside each other, not for 1",
        ),
        (
            {"learner": {"pipeline": {"update_mode": "local_sgd"}}},
            "learner.pipeline.update_mode: local_sgd is for several replicas, but pipeline.replicas is 1",
        ),
    ],
)
def test_sections_that_do_not_fit_are_one_sentence(own: dict[str, Any], problem: str) -> None:
    (found,) = problems_of(own)
    assert found.startswith(f"league.players.1.{problem}")


def test_a_problem_of_the_run_is_not_repeated_for_its_players() -> None:
    found = problems_of({"learner": {"batch_rows": 64}}, learner={"gamma": 2.0})
    assert found == ["learner.gamma: 2.0 is not in (0, 1]"]
    (found_once,) = problems_of({"network": {"hidden": [9]}}, learner={"pipeline": {"update_mode": "hogwild"}})
    assert found_once.startswith("learner.pipeline.update_mode: hogwild")


def test_a_replay_of_a_players_own_is_for_algorithms_that_learn_from_old_rows() -> None:
    config = config_of({"learner": {"row_source": {"kind": "replay", "capacity": 64, "min_rows": 8}}})
    with pytest.raises(ConfigError) as caught:
        require_working_names(config, spec_of(config.env), source="test")
    learns, small = caught.value.problems
    assert learns.startswith("league.players.1.learner.row_source: replay samples old decisions again, and vtrace")
    assert small.startswith(
        "league.players.1.learner.row_source.capacity: 64 rows are less than learner.batch_rows 128"
    )


def test_no_weights_are_copied_between_different_networks() -> None:
    pbt = {"selection": "truncation", "across_roles": True, "hyperparameters": [{"name": "learning_rate"}]}
    (found,) = problems_of(
        OWN, league={"pbt": pbt, "players": [{"role": "main_agent"}, {"role": "main_exploiter", **OWN}]}
    )
    assert "pbt.across_roles: true gives main weights of main-exploiter, and their `network` differs" in found
    exploiter = {"role": "main_exploiter", "gate": {"reset_to": "main"}, **OWN}
    (found,) = problems_of(OWN, league={"players": [{"role": "main_agent"}, exploiter]})
    assert "gate.reset_to: main gives main-exploiter weights of main, and their `network` differs" in found
    config_of(OWN, league={"players": [{"role": "main_agent"}, {**exploiter, "network": {}}]})


def test_code_from_outside_is_found_in_them() -> None:
    own = {
        "network": {"encoder": {"kind": "own_encoder.py:build", "width": 3}},
        "learner": {"optimizer": "own.py:adam"},
    }
    names = {found.path: found.entry for found in outside_names(config_plain(config_of(own)))}
    assert names["league.players.1.learner.optimizer"] == "own.py:adam"
    assert names["league.players.1.network.encoder.kind"].startswith("own_encoder.py:build {")


def test_what_differs_is_listed_with_the_value_of_the_run() -> None:
    assert list(own_values(config_of())) == [
        OwnValue(1, "learner.batch_rows", 16, 128),
        OwnValue(1, "learner.algorithm.kind", "ppo", "vtrace"),
        OwnValue(1, "learner.pipeline.threads", 2, 1),
        OwnValue(1, "network.hidden", [8, 8], [12]),
    ]
    (remark,) = player_remarks(config_of())
    assert remark.startswith('own: learner.batch_rows 16 (run: 128), learner.algorithm.kind "ppo" (run: "vtrace"), ')


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_replays_of_all_groups_have_to_fit_together(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(
        {"network": {"hidden": [8]}, "learner": {"row_source": {"kind": "replay", "capacity": 2000}}},
        network={"head": "q_values"},
        learner={"algorithm": "dqn", "row_source": {"kind": "replay", "capacity": 4000, "storage": storage}},
    )
    spec = spec_of(config.env)
    row_bytes = RowLayout(UnrollSpec(spec, config.learner.unroll_length)).row_bytes
    needed = row_bytes * (4000 + 2 * 2000)
    room = [needed]
    monkeypatch.setattr(plugin_checks, "disk_space", lambda path: (room[-1], 10 * needed))
    monkeypatch.setattr("os.sysconf", lambda name: room[-1] if name == "SC_PHYS_PAGES" else 1)
    require_working_names(config, spec, source="test", folder=tmp_path / "run")
    room.append(needed - 1)
    with pytest.raises(ConfigError) as caught:
        require_working_names(config, spec, source="test", folder=tmp_path / "run")
    (problem,) = caught.value.problems
    for words in (
        f"learner.row_source.capacity: 4,000 rows of {row_bytes} bytes for 1 player are ",
        f"; league.players.1.learner.row_source.capacity: 2,000 rows of {row_bytes} bytes for 2 players are ",
        "; together ",
        "of memory; use storage: file" if storage == "memory" else f"are free on the disk of {tmp_path}",
    ):
        assert words in problem
    if storage == "file":
        require_working_names(config, spec, source="test")  # a run that has its files
