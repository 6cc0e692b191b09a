"""Settings that do not go with evolution strategies, which learn from episodes of perturbed weights."""

from __future__ import annotations

from collections.abc import Iterator

from league.agents.learner.config import DEFAULT_ALGORITHM, DEFAULT_OPTIMIZER, DEFAULT_ROW_SOURCE, LearnerConfig
from league.agents.learner.pipeline_config import DEFAULT_UPDATE_MODE
from league.envs.component_choice import kind_of

PERTURBED = "perturbed"
MIRRORED = "es"
"""The algorithm that plays each perturbation with its opposite."""


def evolution_problems(
    learner: LearnerConfig, *, acting: str, acting_frozen: str, num_splits: int, num_envs: int
) -> Iterator[str]:
    """Every conflict of other settings with `learner.algorithm`, one sentence each under its full key.

    acting, acting_frozen: kinds of acting. num_splits, num_envs: of an actor host.
    """
    kind = kind_of(learner.algorithm, DEFAULT_ALGORITHM)
    if acting_frozen == PERTURBED:
        yield "actors.acting_frozen: perturbed is for weights that are learnt, and these stay as they are; use sample"
    if not learner.evolves:
        if acting == PERTURBED:
            yield f"actors.acting: perturbed weights are for es and cmaes, and learner.algorithm is {kind}; use sample"
        return
    if acting != PERTURBED:
        yield f"actors.acting: {kind} learns from perturbed weights alone, and the actors {acting}; use perturbed"
    if kind == MIRRORED and num_splits != 2:
        yield (
            "actors.num_splits: es plays each perturbation and its opposite in two parts of the games, and there is "
            f"{num_splits}; use num_splits: 2"
        )
    if kind == MIRRORED and num_envs % 2:
        why = f"{num_envs} games do not make pairs of a perturbation and its opposite"
        yield f"actors.num_envs: {why}; use {num_envs + 1}"
    for problem in _learner_problems(learner, kind):
        yield f"learner.{problem}"


def _learner_problems(learner: LearnerConfig, kind: str) -> Iterator[str]:
    why, pipeline = f"{kind} computes no gradients", learner.pipeline
    mode = kind_of(pipeline.update_mode, DEFAULT_UPDATE_MODE)
    parts = {"stages": pipeline.stages, "replicas": pipeline.replicas, "threads": pipeline.threads}
    if mode != DEFAULT_UPDATE_MODE:
        yield (
            f"pipeline.update_mode: {why} on which replicas: {parts.pop('replicas')} would agree by {mode}; leave out "
            "update_mode and replicas"
        )
    for name, number in parts.items():
        if number > 1:
            yield f"pipeline.{name}: {why}, so that {number} {name} have nothing to share; use {name}: 1"
    source = kind_of(learner.row_source, DEFAULT_ROW_SOURCE)
    if source != DEFAULT_ROW_SOURCE:
        yield f"row_source: {kind} learns from each episode once, and {source} gives rows out again; use fifo"
    if learner.max_policy_lag:
        yield (
            f"max_policy_lag: {learner.max_policy_lag} updates, and {kind} learns from episodes of the newest weights "
            "alone; use 0"
        )
    optimizer = kind_of(learner.optimizer, DEFAULT_OPTIMIZER)
    if optimizer != DEFAULT_OPTIMIZER:
        yield f"optimizer: {kind} has a step of its own, not that of {optimizer}; leave it out"
    if learner.has_teacher:
        yield f"teacher_cost: {why}, and a teacher is a term of a loss; use teacher_cost: 0 and teacher_cost_end: 0"
    if learner.microbatches > 1:
        yield f"microbatches: {why} to be summed over {learner.microbatches} microbatches; use 1"
