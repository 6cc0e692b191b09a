"""The precision of a run's learners, measured once where it is left open."""

from __future__ import annotations

import os
from dataclasses import replace

from league.agents.learner.build import choose_dtype, default_device
from league.config.ray_address import joins_cluster
from league.config.run_config import RunConfig
from league.envs.protocol import EnvSpec
from league.stages import begin_stage


def with_precision(config: RunConfig, spec: EnvSpec) -> RunConfig:
    """The precision that "auto" means here, noted in the run: a resumed run must not depend on another measurement.

    A cluster's hosts may be of another kind than this machine, and where there is a GPU the learners have it and the
    actors do not: there every host measures for itself.
    """
    is_mixed = config.runtime.kind == "ray" and default_device().type != "cpu"
    is_elsewhere = config.runtime.kind == "ray" and joins_cluster(config.runtime.address, os.environ)
    if config.learner.precision != "auto" or is_elsewhere or is_mixed:
        return config
    begin_stage("choosing the precision of the learners")
    dtype = choose_dtype(spec, config.network, config.learner.precision)
    return replace(config, learner=replace(config.learner, precision=str(dtype).removeprefix("torch.")))
