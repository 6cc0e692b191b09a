"""A configuration is read whole or refused with every problem named."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.agents.learner.algorithms.config import PPOConfig
from league.agents.learner.config import LearnerConfig
from league.agents.learner.pipeline_config import PipelineConfig
from league.config.loading import load_config, parse_config
from league.config.run_config import RunConfig, config_plain, dump_config
from league.config.yaml import MAX_CHARACTERS, MAX_DEPTH, parse_yaml, yaml_text
from league.errors import ConfigError

MINIMAL = "env: {id: connect_four}\n"


def problems_of(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, source="test.yaml", overrides=overrides)
    assert str(caught.value).startswith("test.yaml: ")
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return list(caught.value.problems)


def test_a_game_alone_is_a_configuration() -> None:
    config = parse_config(MINIMAL, source="test.yaml")
    assert config.env.id == "connect_four"
    assert (
        dataclasses.replace(config.learner, algorithm="vtrace", optimizer="adam", pipeline=PipelineConfig())
        == LearnerConfig()
    )
    assert config.budget.seconds is None


def test_an_empty_section_is_its_defaults() -> None:
    assert parse_config(f"{MINIMAL}learner:\n", source="test.yaml") == parse_config(MINIMAL, source="test.yaml")


NUMBER_LIKE = st.from_regex(r"[-+]?[0-9_.]{1,4}([eE][-+]?[0-9]{1,3})?", fullmatch=True)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6), NUMBER_LIKE),
    st.sampled_from(["1e6", "on", "null", "~", "", "0x1F", "1_000", "12:30", "2026-11-22", "- a", "a: b", "#", "'"]),
)


@given(st.dictionaries(st.one_of(st.text(max_size=4), NUMBER_LIKE), st.one_of(SCALARS, st.lists(SCALARS, max_size=3))))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_reads_back_equal(plain: dict[str, object]) -> None:
    assert parse_yaml(yaml_text(plain), source="dump") == plain


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    config = parse_config(f"{MINIMAL}name: '1e6'\nwandb: {{tags: ['1e6', 'on', '007']}}\n", source="test.yaml")
    assert parse_config(dump_config(config), source="dump") == config


def test_what_is_dumped_reads_back_equal_and_is_json() -> None:
    text = f"""{MINIMAL}
name: my-run
seed: 3
network: {{hidden: [64, 32], activation: tanh}}
league: {{players: [{{role: main_agent, count: 2, gate: {{min_steps: 5e3}}}}, {{role: league_exploiter}}]}}
budget: {{env_steps: 1e6, core_seconds: 60}}
runtime: {{kind: inprocess}}
"""
    config = parse_config(text, source="test.yaml")
    assert config.network.hidden == (64, 32)
    assert config.league.players[0].gate.min_steps == 5000
    assert config.budget.env_steps == 1_000_000
    assert parse_config(dump_config(config), source="dump") == config
    assert json.loads(json.dumps(config_plain(config))) == config_plain(config)


def test_every_problem_is_named_at_once_with_path_and_nearest_key() -> None:
    problems = problems_of(
        """
name: Not A Name
enviroment: {id: connect_four}
env: {id: connect_four, kwarg: {}}
batch_rows: 3
learner: {batch_rws: 64, batch_rows: 100, microbatches: 3, gamma: 2}
runtime: {kind: rya, actor_hosts: -1}
league:
  players:
    - {role: main_agnt}
    - {role: main_exploiter, gate: {win_rat: 0.5, timeout_steps: -1}}
  ratings: {step_fraction: 2}
budget: {env_steps: 0, seconds: soon}
evaluation: {games: 7}
network: 5
""",
        "wandb.mode=onlin",
        "nonsense",
    )
    expected = [
        "-s 'nonsense': write it as dotted.key=value",
        "enviroment: unknown key, nearest is 'env'",
        "batch_rows: unknown key here, did you mean 'learner.batch_rows'?",
        "env.kwarg: unknown key, nearest is 'kwargs'",
        "network: 5 is not a section; its keys are encoder, input_scaling",
        "learner.batch_rws: unknown key, nearest is 'batch_rows'",
        "league.players.0: no role 'main_agnt'; nearest is 'main_agent'",
        "league.players.1.gate.win_rat: unknown key, the keys here are test, min_steps",
        "league.ratings: step_fraction must lie in [0, 1), not 2",
        "runtime.kind: 'rya' is not 'ray' or 'inprocess' (nearest: 'ray')",
        "budget.seconds: 'soon' does not fit",
        "wandb.mode: 'onlin' is not",
        "name: 'Not A Name' is not allowed",
        "learner.batch_rows: 100 rows do not cut into 3 equal microbatches",
        "learner.gamma: 2.0 is not in (0, 1]",
        "runtime.actor_hosts: -1 must be at least 0",
        "budget.env_steps: 0 must be greater than 0",
        "evaluation.games: 7 cannot be half from either seat; use 8",
    ]
    missed = [sentence for sentence in expected if not any(problem.startswith(sentence) for problem in problems)]
    assert missed == []


def test_a_problem_that_another_hides_in_its_record_comes_to_light() -> None:
    problems = problems_of(f"{MINIMAL}network: {{hiden: [3], hidden: [0]}}")
    assert len(problems) == 2
    assert problems[0] == "network.hiden: unknown key, nearest is 'hidden'"
    assert problems[1].startswith("network: hidden") and problems[1].endswith("got [0]")


@pytest.mark.parametrize(
    ("algorithm", "named"),
    [
        ("{kind: ppo, clip_ration: 0.3}", "learner.algorithm.clip_ration: unknown key, nearest is 'clip_ratio'"),
        ("{epochs: 2}", "learner.algorithm.epochs: unknown key of vtrace, it is an option of ppo and appo"),
        ("{kind: ppo, targets: gea}", "learner.algorithm.targets: 'gea' is none of gae, vtrace"),
        ("{kind: appo, clip_ratio: 0}", "learner.algorithm.clip_ratio: 0.0 must be greater than 0"),
        ("{value_cost: .nan}", "learner.algorithm.value_cost: must be a finite number"),
        ("5", "learner.algorithm: 5 does not fit"),
        ("vtrace\n  clip_ratio: 0.1", "learner.clip_ratio: unknown key here, did you mean 'learner.algorithm.clip_"),
    ],
)
def test_an_option_of_an_algorithm_that_does_not_fit_is_named_in_full(algorithm: str, named: str) -> None:
    (problem,) = problems_of(f"{MINIMAL}learner:\n  algorithm: {algorithm}\n")
    assert problem.startswith(named)


def test_an_algorithms_options_are_filled_in_and_read_back() -> None:
    config = parse_config(f"{MINIMAL}learner: {{algorithm: {{kind: ppo, epochs: 3}}}}", source="test.yaml")
    assert config.learner.algorithm == {"kind": "ppo", **dataclasses.asdict(PPOConfig(epochs=3))}
    assert parse_config(dump_config(config), source="dump") == config
    again = parse_config(dump_config(config), source="dump", overrides=["learner.algorithm.epochs=4"])
    assert again.learner.algorithm == {"kind": "ppo", **dataclasses.asdict(PPOConfig(epochs=4))}


def test_a_missing_game_is_named() -> None:
    assert problems_of("seed: 1") == ["env: is missing"]
    assert problems_of("") == ["env: is missing"]
    assert problems_of("env: {kwargs: {}}") == ["env.id: is missing"]


def test_the_value_of_an_unknown_key_is_not_repeated() -> None:
    problems = problems_of(f"{MINIMAL}wandb: {{api_key: CANARY}}", "wandb.key=CANARY")
    assert len(problems) == 2
    assert "CANARY" not in "".join(problems)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("runtime: {kind: inprocess, actor_hosts: 2}", "runtime.kind: inprocess is one process with 1 actor host"),
        ("runtime: {kind: inprocess, address: 'h:1'}", "runtime.address: 'h:1' is a Ray cluster"),
        (
            "runtime: {address: nowhere}",
            "runtime.address: 'nowhere' is none of auto, local, host:port and ray://host:port",
        ),
        ("runtime: {learner_hosts: 9}", "runtime.learner_hosts: 9 hosts for 3 players, 6 would have nothing to do"),
        ("learner: {learning_rate: .nan}", "learner.learning_rate: must be a finite number"),
        ("env: {id: x, kwargs: {a: [1, .inf]}}", "env.kwargs.a.1: must be a finite number"),
        ("seed: -1", "seed: -1 is not in"),
        ("evaluation: {bots: [random, 'mcts:0']}", "evaluation.bots.1: the bot 'mcts:0' needs a number"),
        ("evaluation: {bots: [tacticl]}", "evaluation.bots.0: unknown bot 'tacticl'; did you mean tactical?"),
        (
            "league: {ratings: {bots: ['bot:rndom']}}",
            "league.ratings.bots.0: unknown bot 'rndom'; did you mean random?",
        ),
        ("wandb: {project: a/b}", "wandb.project: 'a/b' may only hold"),
        ("retention: {snapshots: 1}", "retention.snapshots: 1 must be at least 2"),
        ("retention: {metrics_mib: 0}", "retention.metrics_mib: 0.0 must be at least 0.1"),
        ("actors: {num_envs: 0}", "actors.num_envs: 0 must be at least 1"),
        ("actors: {num_envs: 1.5}", "actors.num_envs: 1.5 does not fit"),
        ("name: ../x", "name: '../x' is not allowed"),
        ("learner: [1]", "learner: [1] is not a section"),
        ("league: {players: []}", "league: players: a league needs at least one player"),
    ],
)
def test_an_impossible_setting_is_refused_with_the_arithmetic(setting: str, named: str) -> None:
    text = setting if setting.startswith("env:") else f"{MINIMAL}{setting}\n"
    assert any(problem.startswith(named) for problem in problems_of(text))


def test_overrides_are_yaml_applied_in_order() -> None:
    config = parse_config(
        f"{MINIMAL}league: {{players: [{{role: main_agent}}, {{role: main_exploiter}}]}}",
        source="test.yaml",
        overrides=[
            "seed=4",
            "seed=5",
            "learner.gamma=0.9",
            "network.hidden=[8, 8]",
            "league.players.1.count=3",
            "env.kwargs.rows=4",
            "budget.seconds=null",
            "env.id=a:b=c",
        ],
    )
    assert (config.seed, config.learner.gamma, config.network.hidden) == (5, 0.9, (8, 8))
    exploiter = config.league.players[1]
    assert (exploiter.role, exploiter.count, exploiter.step_weight) == ("main_exploiter", 3, 1.0)
    assert (config.env.id, config.env.kwargs) == ("a:b=c", {"rows": 4})


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("seed", "-s 'seed': write it as dotted.key=value"),
        ("=3", "-s '=3': write it"),
        ("a..b=3", "-s 'a..b=3': write it"),
        ("seed.x=3", "-s seed.x: seed holds no keys"),
        ("league.players.0.count=2", "league.players: {'0': {'count': 2}} is no list, write [{'count': 2}]"),
        ("learner.gamma=[", "-s learner.gamma: line 1:"),
        ("lerner.gamma=0.9", "lerner: unknown key, nearest is 'learner'"),
    ],
)
def test_a_bad_override_is_named(override: str, named: str) -> None:
    assert any(problem.startswith(named) for problem in problems_of(f"{MINIMAL}seed: 1\n", override))


def test_a_missing_or_binary_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the file cannot be read: No such file"):
        load_config(tmp_path / "no.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "binary")


def test_a_games_file_becomes_absolute_so_that_every_host_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "mine.py").touch()
    (tmp_path / "configs" / "beside.py").touch()
    monkeypatch.chdir(tmp_path)
    for name, place in (("mine.py", tmp_path), ("beside.py", tmp_path / "configs")):
        (tmp_path / "configs" / "c.yaml").write_text(f"env: {{id: '{name}:make'}}")
        assert load_config(Path("configs/c.yaml")).env.id == f"{place / name}:make"
    assert parse_config("env: {id: 'pettingzoo:classic/go_v5'}", source="t").env.id == "pettingzoo:classic/go_v5"


def test_text_that_yaml_1_1_would_twist_stays_text_and_powers_of_ten_are_numbers() -> None:
    plain = parse_yaml("{a: on, b: 'no', c: 12:30, d: 2026-01-01, e: 1e6, f: 1_000, g: -.5, h: 010}", source="t")
    assert plain == {
        "a": "on",
        "b": "no",
        "c": "12:30",
        "d": "2026-01-01",
        "e": 1e6,
        "f": 1000,
        "g": -0.5,
        "h": 10.0,
    }


def billion_laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (billion_laughs(), "more than 20000 values"),
        ("[" * 3000 + "]" * 3000, f"nested deeper than {MAX_DEPTH}"),
        ("a: &a [*a]", "contains itself"),
        ("x" * (MAX_CHARACTERS + 1), "at most"),
        ("a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("a: !env HOME", "could not determine a constructor"),
        ("a: 1\na: 2", "line 2: the key 'a' is given twice"),
        ("? [a]\n: 1", "a key must be a word"),
        ("a: [1", "line 1: "),
        ("a: 1\n--- \nb: 2", "another document"),
        ("a: \x00", "special characters"),
        ("- 1", "it holds a list"),
    ],
)
def test_hostile_or_broken_text_is_refused(text: str, named: str) -> None:
    assert any(named in problem for problem in problems_of(text))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=20))
def test_no_text_and_no_override_escapes_as_another_error(text: str, override: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_config(MINIMAL + text, source="t", overrides=[override])


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [field.name for field in dataclasses.fields(RunConfig)] + ["id", "players", "gate", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_plain_value_is_a_configuration_or_a_list_of_problems(value: object) -> None:
    try:
        config = parse_config(json.dumps(value), source="t")
    except ConfigError as error:
        assert error.problems
    else:
        assert parse_config(dump_config(config), source="t") == config


def test_reading_a_configuration_imports_no_heavy_library() -> None:
    code = (
        "import sys, league.config.loading; print([m for m in ('torch', 'ray', 'wandb', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
