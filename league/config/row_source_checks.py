"""Refuses a replay whose rows do not fit the machine, or whose algorithm cannot learn from old rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from league.agents.acting.kinds.registry import ActingPlace, make_acting
from league.agents.learner.algorithms.objective import needs_fresh
from league.agents.learner.config import DEFAULT_ALGORITHM
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.nets.network import build_network
from league.agents.replay.row_bytes import RowLayout
from league.agents.unroll.unroll import UnrollSpec
from league.config.run_config import RunConfig
from league.envs.component_choice import given_options, kind_of
from league.envs.plugin_options import make_options
from league.envs.protocol import EnvSpec
from league.store.disk_space import disk_space
from league.wording import counted, size_text

KEY = "learner.row_source"


def row_source_problems(config: RunConfig, spec: EnvSpec, *, folder: Path | None) -> Iterator[str]:
    """Conflicts of a replay with the algorithm, the game and the machine, one sentence each.

    Args:
      folder: of a run that is to begin; None for one that has its files.
    """
    if kind_of(config.learner.row_source) != "replay":
        return
    try:
        yield from _replay_problems(config, spec, folder)
    except ValueError:
        return  # a part of the configuration cannot be made, which is said elsewhere


def _replay_problems(config: RunConfig, spec: EnvSpec, folder: Path | None) -> Iterator[str]:
    learner = config.learner
    options: ReplayConfig = make_options(ReplayConfig, given_options(learner.row_source), place=KEY)
    if needs_fresh(learner):
        yield (
            f"{KEY}: replay samples old decisions again, and {kind_of(learner.algorithm, DEFAULT_ALGORITHM)} learns "
            "from fresh ones alone; use fifo, or an algorithm for old decisions"
        )
    if options.capacity < learner.batch_rows:
        yield f"{KEY}.capacity: {options.capacity} rows are less than learner.batch_rows {learner.batch_rows}"
    recorded = make_acting(config.actors.acting, spec, ActingPlace()).recorded
    if options.initial == "actor" and "values" not in recorded:
        yield (
            f"{KEY}.initial: actor needs the values of the acting policy, and actors.acting "
            f"{kind_of(config.actors.acting)} does not record them; use max"
        )
    network = build_network(spec, config.network, seed=0)
    row_bytes = RowLayout(
        UnrollSpec.of(spec, network, unroll_length=learner.unroll_length, recorded=recorded)
    ).row_bytes
    players = sum(group.count for group in config.league.players)
    needed = options.capacity * row_bytes * players
    rows = f"{options.capacity:,} rows of {row_bytes:,} bytes for {counted(players, 'player')} are {size_text(needed)}"
    if options.storage == "memory":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > memory:
            yield f"{KEY}.capacity: {rows}, and this machine has {size_text(memory)} of memory; use storage: file"
    elif folder is not None:
        free, _ = disk_space(next(parent for parent in folder.parents if parent.exists()))
        if needed > free:
            yield f"{KEY}.capacity: {rows}, and {size_text(free)} are free on the disk of {folder}"
