"""Which objectives, step backends and update modes exist, by name."""

from __future__ import annotations

from collections.abc import Mapping

OBJECTIVES: Mapping[str, str] = {
    "vtrace": "agents.learner.actor_critic:VTraceObjective",
    "ppo": "agents.learner.ppo:PPOObjective",
    "appo": "agents.learner.appo:APPOObjective",
}
"""Name of `learner.algorithm` -> "module:attribute" of an `objective.Objective` class."""

BACKENDS: Mapping[str, str] = {
    "single": "agents.learner.backend:SingleBackend",
    "local_pipe": "agents.learner.local_pipe:LocalPipeBackend",
    "dist_pipe": "agents.learner.dist_pipe:DistPipeBackend",
}
"""Name of `learner.backend` -> "module:attribute" of a `backend.StepBackend` class."""

UPDATE_MODES: Mapping[str, str] = {"all_reduce": "agents.learner.update_mode:AllReduce"}
"""Name of `learner.update_mode` -> "module:attribute" of an `update_mode.UpdateMode` class."""
