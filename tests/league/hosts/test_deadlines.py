"""The table of deadlines: what waits for something waits longer than its loss takes to be noticed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from league.config.checks import run_deadlines
from league.config.deadlines import PROGRESS_EVERY_S, Deadlines
from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.envs.registry import make
from league.errors import ConfigError
from league.run.host_setup import host_setup
from tests.league.tiny_runs import tiny


def config_with(**runtime: Any) -> RunConfig:
    return parse_config(yaml.safe_dump(tiny(runtime={"kind": "ray", **runtime})), source="test")


@pytest.mark.parametrize(("lease_s", "progress_s"), [(120.0, 15.0), (40.0, 15.0), (10.0, 3.0), (3600.0, 15.0)])
def test_each_deadline_lies_within_that_of_what_waits_for_it(lease_s: float, progress_s: float) -> None:
    table = run_deadlines(config_with(lease_deadline_s=lease_s, progress_deadline_s=progress_s))
    assert table.lease_s > table.push_s > table.credit_s > 0.0
    assert table.push_s > PROGRESS_EVERY_S + table.progress_s == table.noticed_s
    config = config_with()
    assert table.directive_s > config.learner.pipeline.start_timeout_s + config.learner.pipeline.stage_timeout_s


def test_a_lease_that_would_be_given_up_before_a_hung_learner_is_noticed_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(ConfigError, match=r"runtime.lease_deadline_s: half of 15 s .* 1 \+ 15 s .* more than 32 s"):
        config_with(lease_deadline_s=15.0)


def test_hosts_are_given_the_deadlines_of_their_run() -> None:
    config = config_with(lease_deadline_s=50.0)
    setup = host_setup(config, make(config.env, num_envs=1).spec, run="r")
    assert setup.deadlines == run_deadlines(config)
    assert setup.deadlines.lease_s == 50.0


def test_the_defaults_of_the_table_are_those_of_the_default_configuration() -> None:
    assert run_deadlines(config_with()) == Deadlines()
