"""The resolution of a file: given values win, `auto` is a value, errors are sentences, and its choices repeat."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from league.config.auto.resolve import resolve, run_name
from league.config.commented import chosen_in, dump_commented, reasons_in
from league.config.loading import load_config, parse_config
from league.config.run_config import BudgetConfig, config_plain, paths_that_differ
from league.envs.protocol import EnvError
from league.errors import ConfigError
from league.run.budget import Limits
from league.run.launch import train
from tests.league.commands import ROOT, league
from tests.league.tiny_runs import checkpoints_of, history_of, start, tiny

EXACT = ("budget.env_steps=1200", "runtime.kind=inprocess", "learner.precision=float32")


def written(folder: Path, plain: object) -> str:
    (folder / "own.yaml").write_text(yaml.safe_dump(plain))
    return str(folder / "own.yaml")


def at(plain: object, key: str) -> object:
    for part in key.split("."):
        plain = plain[int(part)] if isinstance(plain, list) else plain[part]  # type: ignore[index]
    return plain


def test_an_id_alone_is_a_whole_configuration_with_a_reason_for_every_choice() -> None:
    found = resolve("tic_tac_toe", overrides=EXACT)
    text = dump_commented(found.config, found.reasons)
    assert parse_config(text, source="text") == found.config
    assert reasons_in(text) == found.reasons
    assert len(found.choices) >= 25
    plain = config_plain(found.config)
    for choice in found.choices:
        assert choice.reason, choice
        if choice.key not in ("league.players", "league.players.0.matchmaker"):  # completed by their records
            assert at(plain, choice.key) == choice.value, choice
    assert chosen_in(text)["learner.unroll_length"][0] == found.config.learner.unroll_length


def test_given_values_win_and_auto_is_the_same_as_absent(tmp_path: Path) -> None:
    plain = {
        "env": {"id": "tic_tac_toe"},
        "seed": "auto",
        "actors": "auto",
        "learner": {"unroll_length": 3, "batch_rows": "auto", "precision": "auto"},
        "budget": {"env_steps": 3000},
    }
    found = resolve(written(tmp_path, plain))
    bare = resolve("tic_tac_toe", overrides=["budget.env_steps=3000", "learner.unroll_length=3"])
    assert found.config == bare.config
    assert found.config.learner.unroll_length == 3
    assert found.reasons["seed"] == "the same for every game and budget"
    assert {"learner.batch_rows", "actors.num_envs"} <= set(found.reasons)
    assert not {"learner.unroll_length", "learner.precision"} & set(found.reasons)
    assert {"learner.unroll_length", "budget.env_steps", "env.id"} <= found.given


def test_a_limit_is_the_budget_where_there_is_none() -> None:
    limit = BudgetConfig(core_seconds=40.0)
    without, other = resolve("tic_tac_toe", limit=limit), resolve("tic_tac_toe", overrides=EXACT, limit=limit)
    assert without.config.budget == limit
    assert without.reasons["budget.core_seconds"] == "the limit of the command that started the run"
    assert other.config.budget == BudgetConfig(env_steps=1200)


@pytest.mark.parametrize(
    ("overrides", "is_exact"),
    [
        ((), True),
        (("runtime.kind=inprocess", "budget.seconds=9"), True),
        (("budget.core_seconds=9",), True),
        (("budget.seconds=9",), False),
        (("runtime.kind=ray",), False),
        (("runtime.actor_hosts=2",), False),
    ],
)
def test_a_command_limited_by_steps_rests_on_no_clock_in_one_process(
    overrides: tuple[str, ...], is_exact: bool
) -> None:
    limit = BudgetConfig(env_steps=3000)
    found = resolve("tic_tac_toe", overrides=overrides, limit=limit, ends_by_steps=True)
    assert found.situation.is_exact == is_exact
    assert (found.situation.game.costs is None) == is_exact
    assert found.config.runtime.kind == "inprocess" or not is_exact


@pytest.mark.parametrize(
    ("source", "overrides", "words"),
    [
        ("tic_tac_too", (), "did you mean tic_tac_toe"),
        ("nothing.yaml", (), "the file cannot be read: No such"),
        ("tic_tac_toe", ("learner.batch_rowz=auto",), "nearest is 'batch_rows'"),
        ("tic_tac_toe", ("learner.batch_rows=-1",), "learner.batch_rows"),
        ("tic_tac_toe", ("league.players=[auto]",), "league.players.0"),
        ("tic_tac_toe", ("env=auto",), "env: is missing"),
        ("tic_tac_toe", ("learner=[auto]",), "learner"),
    ],
)
def test_what_is_wrong_is_a_sentence(source: str, overrides: tuple[str, ...], words: str) -> None:
    with pytest.raises((ConfigError, EnvError), match=words.replace("?", r"\?")):
        resolve(source, overrides=overrides)


def test_a_file_of_code_alone_is_a_game_without_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("game.py").write_text("def make():\n    return None\n")
    with pytest.raises(EnvError, match=r"did you mean game\.py:make"):
        resolve("game.py")


def test_a_folder_is_no_game_and_a_run_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("env: {id: tic_tac_toe}")
    cases = {
        "": "a folder without a run",
        "run": "the folder of a run: `league resume",
        "none": "no such file or folder",
    }
    for name, words in cases.items():
        for command in ("up", "init"):
            if (name, command) != ("run", "up"):
                ran = league(command, tmp_path / name)
                assert ran.code == 2 and words in ran.err, ran.err
    assert resolve("tic_tac_toe").config.env.id == "tic_tac_toe"


@pytest.mark.parametrize("source", ["tic_tac_toe", "pettingzoo:classic/tictactoe_v3", "{}/nim.py:make"])
def test_a_run_has_its_name_without_a_look_at_the_game(source: str, tmp_path: Path) -> None:
    (tmp_path / "nim.py").write_text("from pettingzoo.classic import tictactoe_v3\nmake = tictactoe_v3.env\n")
    source = source.format(tmp_path)
    resolved = resolve(source, overrides=["budget.env_steps=100"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("league.config.auto.resolve.measure", pytest.fail)
        assert run_name(source, []) == resolved.config.name
        assert run_name(source, ["name=own"]) == "own"


def test_a_misspelt_file_names_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, {})
    with pytest.raises(ConfigError, match=r"did you mean .*own\.yaml\?"):
        resolve(str(tmp_path / "onw.yaml"))


@pytest.mark.parametrize("env_id", ["tic_tac_toe", "kuhn_poker"])
def test_an_exact_run_with_chosen_settings_repeats(env_id: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        settings = [*EXACT, "wandb.mode=disabled", "evaluation.bots=[]"]
        train(env_id, overrides=settings, run_dir=tmp_path / name, limits=Limits())
    texts = [(tmp_path / name / "config.yaml").read_text() for name in ("one", "two")]
    assert texts[0] == texts[1]
    assert history_of(tmp_path / "one") == history_of(tmp_path / "two")
    assert checkpoints_of(tmp_path / "one") == checkpoints_of(tmp_path / "two")


def test_init_prints_a_configuration_that_trains_as_it_is(tmp_path: Path) -> None:
    ran = league("init", "kuhn_poker", "-s", "budget.env_steps=3000")
    assert ran.code == 0, ran.err
    (tmp_path / "mine.yaml").write_text(ran.out)
    found = resolve(str(tmp_path / "mine.yaml"))
    assert found.choices == ()
    assert found.config == parse_config(ran.out, source="init")
    assert "# auto: " in ran.out


def test_explain_tells_given_chosen_and_default_apart(tmp_path: Path) -> None:
    source = written(tmp_path, {"env": {"id": "tic_tac_toe"}, "seed": 3, "budget": {"env_steps": 3000}})
    origins = {
        key: league("explain", source, key, "--json").json["settings"][0]["origin"]
        for key in ("seed", "learner.unroll_length", "learner.max_grad_norm")
    }
    assert origins["seed"] == "given"
    assert origins["learner.unroll_length"].startswith("auto: a seat decides 5 times")
    assert origins["learner.max_grad_norm"] == "the default of every game"
    role = league("explain", source, "league.players.0.role", "--json").json["settings"][0]
    assert role["origin"] == "auto: chosen with league.players"
    players = league("explain", source, "league.players.0.gate.min_steps")
    assert "auto: " in players.out
    assert "trained steps since" in players.out
    assert league("explain", source, "learner.unrol_length").err.startswith("league: a configuration has no key")


def test_a_run_tells_what_was_chosen(tmp_path: Path) -> None:
    settings = [*EXACT, "wandb.mode=disabled", "seed=4"]
    train("tic_tac_toe", overrides=settings, run_dir=tmp_path / "run", limits=Limits())
    status = league("status", tmp_path / "run", "--settings")
    assert "learner.unroll_length = 8  (a seat decides 5 times a game at most)" in status.out
    assert league("status", tmp_path / "run", "--json").json["settings"]["network.encoder"][0] == "mlp"
    assert league("explain", tmp_path / "run", "seed", "--json").json["settings"][0]["origin"] == "given"
    assert "auto: " in league("explain", tmp_path / "run", "learner.batch_rows").out
    assert len(league("explain", tmp_path / "run", "learner", "--json").json["settings"]) > 20


def test_check_env_lists_the_settings() -> None:
    ran = league("check-env", "kuhn_poker", "--seconds", "0.2")
    assert ran.code == 0, ran.err
    assert "learner.unroll_length = 2  (a seat decides 2 times a game at most)" in ran.out
    found = league("check-env", "kuhn_poker", "--seconds", "0.2", "--json").json["settings"]
    assert found["network.encoder"][0] == "mlp"
    assert league("check-env", "kuhn_poker", "--seconds", "0", "--json").json["settings"] == {}


def test_a_run_of_given_settings_alone_lists_none(tmp_path: Path) -> None:
    start(tmp_path, tiny(), env_steps=200)
    assert "chosen for" not in league("status", tmp_path / "run").out


TUNED = ("cartpole", "connect_four", "connect_four_pipeline", "connect_four_strong", "kuhn", "leduc", "tic_tac_toe")
MAY_BE_CHOSEN = {
    "actors.num_splits",
    "env.workers",
    "game.information",
    "game.moves",
    "league.payoff.score",
    "learner.bootstrap_time_limits",
    "learner.ema_share",
    "learner.pipeline.threads",
    "probes.kinds",
}
"""Settings of which the choice changes nothing in what a tuned configuration trains, but for the time of its probes."""


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_configuration_states_whatever_would_be_chosen_otherwise(name: str) -> None:
    path = ROOT / "configs" / f"{name}.yaml"
    stated, found = config_plain(load_config(path)), config_plain(resolve(str(path)).config)
    assert set(paths_that_differ(stated, found)) <= MAY_BE_CHOSEN


@pytest.mark.parametrize("name", ['it\'s "x"', "back\\slash", "spiel_ü🎲", "{a}"])
def test_the_id_of_a_game_is_taken_as_it_is_written(name: str) -> None:
    with pytest.raises(EnvError, match=re.escape(f"unknown env {name!r}")):
        resolve(name)
