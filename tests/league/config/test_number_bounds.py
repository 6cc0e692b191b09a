"""Every number of a configuration has bounds: what cannot work is a sentence that names the key, and never a crash."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import replace

import pytest

from league.agents.nets.config import NetworkConfig
from league.config.auto.resolve import resolve
from league.config.auto.rules_network import AS_IT_IS, _moments
from league.config.loading import KNOWN, parse_config
from league.envs.facts.number_sizes import NumberSize
from league.errors import ConfigError

NEEDS_A_PRESET = ("league", "population")


def numeric_keys() -> Iterator[tuple[str, type]]:
    """Dotted keys of integers and numbers, outside of lists, with their types."""
    for path, hint in KNOWN.types.items():
        options = typing.get_args(hint) if isinstance(hint, types.UnionType | typing._UnionGenericAlias) else (hint,)  # type: ignore[attr-defined]
        for kind in (int, float):
            if kind in options and "*" not in path and path[:2] != NEEDS_A_PRESET:
                yield ".".join(path), kind


def problems(*overrides: str) -> str:
    """What is wrong with a configuration; empty where nothing is."""
    try:
        parse_config("env: {id: kuhn_poker}", source="file", overrides=overrides)
    except ConfigError as error:
        return str(error)
    return ""


def owners_of(key: str) -> Iterator[str]:
    """Settings under which the key exists, where it is an option of a component."""
    kinds = {"learner.algorithm": ("vtrace", "ppo", "appo"), "learner.optimizer": ("adam", "rmsprop")}
    section = key.rpartition(".")[0]
    for kind in kinds.get(section, ()):
        setting = f"{section}.kind={kind}"
        if "unknown key" not in problems(setting, f"{key}=1"):
            yield setting


@pytest.mark.parametrize(("key", "kind"), list(numeric_keys()))
def test_a_number_that_is_none_or_beyond_all_bounds_is_refused_by_its_key(key: str, kind: type) -> None:
    values = (".nan", ".inf") if kind is float else (str(10**40), str(-(10**40)))
    for setting in list(owners_of(key)) or ["seed=1"]:
        for value in values:
            said = problems(setting, f"{key}={value}")
            section, _, name = key.rpartition(".")
        assert name in said or f"{section}: unknown key" in said, f"{key}={value}: {said or 'taken'}"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("network.core_layers=1000000000", "network: core_layers must be at least 1 and at most 64, got 1000000000"),
        ("network.pointer_size=100000", "network: pointer_size must be at least 1 and at most 65536, got 100000"),
        ("network.channels=[8, 100000]", "network: channels must hold widths of at least 1 and at most 65536"),
        ("network.init_gain=1e30", "network: init_gain must be in [0.001, 1000], got 1e+30"),
        ("network.init_gain=1e-30", "network: init_gain must be in [0.001, 1000], got 1e-30"),
        ("network.value_moments=[1e30, 1]", "network: value_moments must be at most 1e+18"),
        ("network.input_moments={x: [[0, 1e-45]]}", "network: input_moments of 'x' must be finite in float32"),
        ("learner.learning_rate=1e16", "learner.learning_rate: 1e+16 must be at most 1,000"),
        ("learner.learning_rate_end=-1", "learner.learning_rate_end: -1.0 must be at least 0"),
        ("learner.entropy_cost=-0.1", "learner.entropy_cost: -0.1 must be at least 0"),
        ("learner.entropy_cost_end=-0.1", "learner.entropy_cost_end: -0.1 must be at least 0"),
        ("learner.max_policy_lag=-1", "learner.max_policy_lag: -1 must be at least 0"),
        ("learner.batch_rows=1000000000", "learner.batch_rows: 1000000000 must be at most"),
        ("learner.batch_rows=0", "learner.batch_rows: 0 must be at least 1"),
        ("learner.microbatches=0", "learner.microbatches: 0 must be at least 1"),
        ("learner.pipeline.replicas=0", "learner.pipeline.replicas: 0 is not between 1 and 1024"),
        ("learner.pipeline.stages_per_worker=0", "learner.pipeline.stages_per_worker: 0 is not between 1 and 1024"),
        (
            "learner.pipeline.stage_timeout_s=1e30",
            "learner.pipeline.stage_timeout_s: 1e+30 must be greater than 0",
        ),
        (
            "learner.algorithm.value_cost=-1",
            "learner.algorithm.value_cost: -1.0 must be at least 0 and at most 1,000,000",
        ),
        ("learner.algorithm.clip_rho=0", "learner.algorithm.clip_rho: 0.0 must be greater than 0, or null for no clip"),
        ("learner.algorithm={kind: ppo, clip_value: 0}", "learner.algorithm.clip_value: 0.0 must be greater than 0"),
        (
            "learner.algorithm={kind: ppo, epochs: 1000000}",
            "learner.algorithm.epochs: 1000000 must be at least 1",
        ),
        ("learner.optimizer.weight_decay=2", "learner.optimizer.weight_decay: 2.0 must lie in [0, 1]"),
        ("learner.teacher_cost_end=1", "learner.teacher_cost 0 and teacher_cost_end 1; give a teacher and a cost"),
        ("env.step_deadline_s=1e30", "env.step_deadline_s: 1e+30 must be at most 1,000,000"),
        ("runtime.lease_deadline_s=1e30", "runtime.lease_deadline_s: 1e+30 must be at most 1,000,000"),
        ("runtime.actor_hosts=1000000000", "runtime.actor_hosts: 1000000000 must be at most 65,536"),
        ("probes.deadline_s=1e30", "probes.deadline_s: 1e+30 must be at most 1,000,000"),
        ("retention.snapshots_gib=1e300", "retention.snapshots_gib: 1e+300 must be at most 1,000,000,000"),
        ("evaluation.games=100000000000000000000", "evaluation.games: 100000000000000000000 must be less than 2**63"),
    ],
)
def test_what_cannot_work_is_said_by_its_key(setting: str, sentence: str) -> None:
    assert sentence in problems(setting)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("budget.core_seconds=.nan", "budget.core_seconds: must be a finite number"),
        ("budget.core_seconds=.inf", "budget.core_seconds: must be a finite number"),
        ("budget.seconds=1e300", "budget.seconds: 1e+300 must be at most 10,000,000,000"),
        ("budget.env_steps=-3", "budget.env_steps: -3 must be greater than 0"),
        ("env.step_deadline_s=.nan", "env.step_deadline_s: must be a finite number"),
    ],
)
def test_a_budget_that_is_none_is_refused_before_settings_are_chosen_for_it(setting: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve("kuhn_poker", overrides=[setting])
    assert sentence in str(refused.value)


def test_the_largest_budget_is_one_that_settings_can_be_chosen_for() -> None:
    assert resolve("kuhn_poker", overrides=["budget.core_seconds=1e14"]).config.budget.core_seconds == 1e14


def test_numbers_too_small_to_be_divided_by_are_left_as_they_are() -> None:
    size = NumberSize(mean=0.0, deviation=1e-42, low=-1e-42, high=1e-42, whole=False)
    assert _moments(size) == AS_IT_IS
    assert _moments(replace(size, deviation=1e-30, high=1e-30)) == [0.0, 1e-30]
    NetworkConfig(input_moments={"x": ((0.0, 1e-30),)})
