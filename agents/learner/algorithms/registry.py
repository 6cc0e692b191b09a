"""Registers objectives, updaters without gradients, optimizers, step backends and update modes by name."""

from __future__ import annotations

from collections.abc import Mapping

OBJECTIVES: Mapping[str, str] = {
    "vtrace": "league.agents.learner.algorithms.vtrace:VTraceObjective",
    "ppo": "league.agents.learner.algorithms.ppo:PPOObjective",
    "appo": "league.agents.learner.algorithms.appo:APPOObjective",
}
"""Name of `learner.algorithm` -> "module:attribute" of an `objective.Objective` class."""

UPDATERS: Mapping[str, str] = {
    "es": "league.agents.learner.evolution.es_updater:ESUpdater",
    "cmaes": "league.agents.learner.evolution.cma_updater:CMAUpdater",
}
"""Name of a `learner.algorithm` without gradients -> "module:attribute" of an `evolution.evolution_updater.Evolving`."""

OPTIMIZERS: Mapping[str, str] = {
    "adam": "league.agents.learner.step.optimizers:adam",
    "rmsprop": "league.agents.learner.step.optimizers:rmsprop",
}
"""Name of `learner.optimizer` -> "module:attribute" of an `optimizers.OptimizerBuilder`."""

BACKENDS: Mapping[str, str] = {
    "single": "league.agents.learner.step.backend:SingleBackend",
    "data_parallel": "league.agents.learner.pipeline.data_parallel:DataParallelBackend",
    "threaded_pipeline": "league.agents.learner.pipeline.threaded_pipeline:ThreadedPipelineBackend",
    "torch_pipeline": "league.agents.learner.pipeline.torch_pipeline:TorchPipelineBackend",
}
"""Name of `learner.pipeline.backend` -> "module:attribute" of a `backend.StepBackend` class."""

UPDATE_MODES: Mapping[str, str] = {"all_reduce": "league.agents.learner.replicas.all_reduce:AllReduce"}
"""Name of `learner.pipeline.update_mode` -> "module:attribute" of an `update_mode.UpdateMode` class."""
