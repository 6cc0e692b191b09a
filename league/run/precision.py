"""The precision of a run's learners, measured once where it is left open."""

from __future__ import annotations

import os
from dataclasses import replace

from league.agents.learner.build import choose_dtype, default_device
from league.config.ray_address import joins_cluster
from league.config.run_config import RunConfig
from league.envs.protocol import EnvSpec
from league.stages import begin_stage


def with_precision(config: RunConfig, spec: EnvSpec, *, repeats: bool) -> tuple[RunConfig, str]:
    """The precision that "auto" means here, noted in the run: a resumed run must not depend on another measurement.

    A cluster's hosts may be of another kind than this machine, and where there is a GPU the learners have it and the
    actors do not: there every host measures for itself.

    Args:
      repeats: whether no clock may decide.
    Returns:
      The configuration, and the reason of the choice; empty where nothing was chosen.
    """
    is_mixed = config.runtime.kind == "ray" and default_device().type != "cpu"
    is_elsewhere = config.runtime.kind == "ray" and joins_cluster(config.runtime.address, os.environ)
    if config.learner.precision != "auto" or is_elsewhere or is_mixed:
        return config, ""
    if repeats and config.runtime.kind == "inprocess":
        return _with(config, "float32"), "a run that repeats exactly looks at no clock"
    begin_stage("choosing the precision of the learners")
    dtype = choose_dtype(spec, config.network, config.learner.precision)
    return _with(config, str(dtype).removeprefix("torch.")), "the fastest here"


def _with(config: RunConfig, precision: str) -> RunConfig:
    return replace(config, learner=replace(config.learner, precision=precision))
