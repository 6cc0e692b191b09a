"""Registers objectives, updaters without gradients, optimizers, step backends, update modes and their parts by name."""

from __future__ import annotations

from collections.abc import Mapping

OBJECTIVES: Mapping[str, str] = {
    "vtrace": "league.agents.learner.algorithms.vtrace:VTraceObjective",
    "ppo": "league.agents.learner.algorithms.ppo:PPOObjective",
    "appo": "league.agents.learner.algorithms.appo:APPOObjective",
    "dqn": "league.agents.learner.algorithms.dqn:DQNObjective",
    "ddpg": "league.agents.learner.algorithms.ddpg:DDPGObjective",
    "td3": "league.agents.learner.algorithms.ddpg:TD3Objective",
    "search_targets": "league.agents.learner.algorithms.search_targets:SearchTargets",
}
"""Name of `learner.algorithm` -> "module:attribute" of an `objective.Objective` class."""

UPDATERS: Mapping[str, str] = {
    "es": "league.agents.learner.evolution.es_updater:ESUpdater",
    "cmaes": "league.agents.learner.evolution.cma_updater:CMAUpdater",
}
"""Name of a `learner.algorithm` without gradients -> "module:attribute" of an `evolution_updater.Evolving`."""

OPTIMIZERS: Mapping[str, str] = {
    "adagrad": "league.agents.learner.step.optimizers:adagrad",
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

UPDATE_MODES: Mapping[str, str] = {
    "all_reduce": "league.agents.learner.replicas.all_reduce:AllReduce",
    "local_sgd": "league.agents.learner.replicas.local_sgd:LocalSGD",
    "gossip": "league.agents.learner.replicas.asynchronous_gossip:gossip",
    "hogwild": "league.agents.learner.replicas.hogwild:hogwild",
    "parameter_server": "league.agents.learner.replicas.parameter_server:parameter_server",
}
"""Name of `learner.pipeline.update_mode` -> "module:attribute" of an `update_mode.UpdateMode` class."""

TOPOLOGIES: Mapping[str, str] = {
    "ring": "league.agents.learner.replicas.topologies:ring",
    "torus": "league.agents.learner.replicas.topologies:torus",
    "exponential": "league.agents.learner.replicas.topologies:exponential",
    "one_peer": "league.agents.learner.replicas.topologies:one_peer",
}
"""Name of an update mode's `topology` -> "module:attribute" of a `topologies.Topology`."""

COMPRESSORS: Mapping[str, str] = {
    "bf16": "league.agents.learner.replicas.compressors:Bfloat16",
    "int8": "league.agents.learner.replicas.compressors:Int8",
    "sign": "league.agents.learner.replicas.compressors:Sign",
    "top_k": "league.agents.learner.replicas.compressors:TopK",
    "random_k": "league.agents.learner.replicas.compressors:RandomK",
}
"""Name of an update mode's `compression`, beside "none" -> "module:attribute" of a `compressors.Compressor` class."""
