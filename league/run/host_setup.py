"""The setup that the hosts of a run build from, and the runtime that they run in."""

from __future__ import annotations

import secrets
from dataclasses import replace

from league.agents.acting.kinds.acting_kinds import ActingPlace, make_acting
from league.agents.learner.config import DEFAULT_ROW_SOURCE
from league.agents.unroll.codec import MAX_RAW_BYTES
from league.agents.unroll.unroll import UnrollSpec
from league.config.checks import run_deadlines
from league.config.player_settings import own_settings
from league.config.plugin_names import outside_names
from league.config.run_config import RunConfig, config_plain
from league.core.state.state import LeagueState
from league.envs.component_choice import kind_of
from league.envs.protocol import EnvSpec
from league.hosts.inprocess import InProcessRuntime
from league.hosts.protocol import Runtime
from league.hosts.setup import HostSetup

MAX_CHUNK_BATCHES = 4
"""Batches in one chunk at most: larger chunks cost fewer calls, smaller ones keep the policy lag down."""

MAX_CHUNK_BYTES = MAX_RAW_BYTES // 2
"""Of the unrolls in one chunk; the core states of memory come on top."""


def host_setup(config: RunConfig, spec: EnvSpec, *, run: str) -> HostSetup:
    """The setup that the hosts of a run build from."""
    players = {prefix: _one_setup(own.in_place_of(config), spec, run) for prefix, own in own_settings(config).items()}
    return replace(_one_setup(config, spec, run), players=players)


def _one_setup(config: RunConfig, spec: EnvSpec, run: str) -> HostSetup:
    rows = config.actors.num_envs * spec.num_seats
    is_fifo = kind_of(config.learner.row_source, DEFAULT_ROW_SOURCE) == "fifo"
    # the window of a replay is stated in batches, and one chunk must not span it
    batches = min(max(rows // (2 * config.learner.batch_rows), 1), MAX_CHUNK_BATCHES) if is_fifo else 1
    wanted = batches * config.learner.batch_rows
    if config.actors.wait_for_update:  # what completes together goes together, and no more than one update at a time
        wanted = min(rows, config.learner.batch_rows)
    recorded = make_acting(config.actors.acting, spec, ActingPlace()).recorded
    one_row = UnrollSpec(spec, config.learner.unroll_length, recorded=recorded).allocate(1).arrays().values()
    fitting = max(MAX_CHUNK_BYTES // sum(array.nbytes for array in one_row), 1)  # few, of large images
    return HostSetup(
        run=run,
        env=config.env,
        network=config.network,
        learner=config.learner,
        num_envs=config.actors.num_envs,
        chunk_rows=min(wanted, fitting),
        seed=config.seed,
        deadlines=run_deadlines(config),
        inference=secrets.token_hex(16) if config.actors.inference == "central" else "",
        num_splits=config.actors.num_splits,
        games=config.actors.games,
        wait_for_update=config.actors.wait_for_update,
        acting=config.actors.acting,
        acting_frozen=config.actors.acting_frozen,
        recorded=recorded,
        actor_hosts=max(config.runtime.actor_hosts, 1),
        replay_hosts=config.runtime.replay_hosts,
    )


def make_runtime(config: RunConfig, setup: HostSetup, state: LeagueState) -> Runtime:
    """The runtime that the configuration names. Ray is imported only where it is used."""
    if config.runtime.kind == "inprocess":
        return InProcessRuntime(setup, players=tuple(state.players), deadline_s=config.runtime.lease_deadline_s)
    from league.hosts.on_ray.runtime import RayRuntime

    own_names = tuple(found.name for found in outside_names(config_plain(config)))
    return RayRuntime(setup, config.runtime, players=tuple(state.players), own_names=own_names)
