"""The reference of the configuration: every key, its meaning, a whole default configuration, and a schema."""

from __future__ import annotations

import json

import pytest

from league.cli.main import main
from league.config.loading import parse_config
from league.config.reference import default_yaml, entries, explain, presets, schema
from league.config.run_config import RunConfig
from league.core.state.built_ins import PRESETS
from league.envs.protocol import EnvConfig
from league.errors import LeagueError


def test_a_key_is_explained_with_type_and_default() -> None:
    (entry,) = explain("learner.batch_rows")
    assert (entry.type, entry.default) == ("integer", "128")
    assert "unrolls" in entry.meaning


def test_an_index_stands_for_every_element() -> None:
    assert explain("league.players[0].role") == explain("league.players[].role")


def test_options_of_the_algorithms_are_keys_with_their_owners() -> None:
    (entry,) = explain("learner.algorithm.clip_ratio")
    assert (entry.type, entry.default) == ("number", "0.2")
    assert entry.meaning.startswith("Of ppo and appo: largest distance of the ratio")
    assert "decay of" in explain("learner.algorithm.lambda_")[0].meaning


def test_a_section_is_explained_with_its_keys() -> None:
    keys = [entry.key for entry in explain("budget")]
    assert keys == ["budget", "budget.seconds", "budget.core_seconds", "budget.env_steps"]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("learner.batch_row", "learner.batch_rows"), ("gate.timeout_steps", "league.players[].gate.timeout_steps")],
)
def test_an_unknown_key_names_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(LeagueError, match="no key") as error:
        explain(key)
    assert nearest in str(error.value)


def test_null_stands_where_the_code_says_none() -> None:
    assert not [entry.key for entry in entries() if "None" in entry.meaning]


def test_the_default_configuration_reads_back_as_the_default() -> None:
    assert parse_config(default_yaml("tic_tac_toe"), source="default") == RunConfig(env=EnvConfig("tic_tac_toe"))


def test_the_schema_has_every_section_and_forbids_other_keys() -> None:
    plain = json.loads(schema())
    sections = {entry.key for entry in entries() if "." not in entry.key}
    assert set(plain["properties"]) == sections
    assert plain["additionalProperties"] is False and plain["required"] == ["env"]


def test_every_preset_has_a_summary() -> None:
    assert [name for name, summary in presets() if summary] == list(PRESETS)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["config"], "learner.batch_rows = 128"),
        (["config", "--explain", "league.lease_steps"], "integer, default 64"),
        (["config", "--default", "tic_tac_toe"], "id: tic_tac_toe"),
        (["config", "--schema"], '"RunConfig"'),
        (["config", "--markdown"], "| `learner.batch_rows` | integer | `128` |"),
        (["presets"], "self_play"),
        (["--version"], "league 0."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_print_the_reference(
    words: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["league", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert shown in capsys.readouterr().out


def test_two_forms_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["league", "config", "--schema", "--markdown"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "give one of" in capsys.readouterr().err
