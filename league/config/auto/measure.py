"""Measures the situation of a run: random play of its game, and the machine."""

from __future__ import annotations

import os
import sys

from envs.facts.game_facts import GameFacts
from envs.facts.game_probe import GameProbe
from envs.protocol import EnvConfig, EnvError
from league.config.auto.situation import Situation
from league.config.ray_address import AUTO, OWN, ray_address
from league.config.run_config import BudgetConfig
from league.runtime.task_thread import watched

CALL_DEADLINE_S = 60.0
"""Deadline of one call of the env; beyond it the settings rest on what was seen until then."""

PROBE_S, MIN_PROBE_S, PROBE_SHARE = 2.0, 0.3, 0.02
"""Seconds of random play: at most, at least, and as a share of the budget."""


def measure(env: EnvConfig, budget: BudgetConfig, *, is_exact: bool) -> Situation:
    """The situation of a new run.

    Args:
      is_exact: True if nothing may rest on a clock.
    Raises:
      EnvError: the env cannot be made, or its first step raised or did not come back.
    """
    game = _facts_of(env, budget, is_exact=is_exact)
    if is_exact:
        return Situation(game, budget, is_exact=True)
    named = ray_address(AUTO, os.environ)
    cluster = "" if named == OWN else named
    return Situation(game, budget, cores=num_cores(), memory_mib=_memory_mib(), cluster=cluster)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _facts_of(env: EnvConfig, budget: BudgetConfig, *, is_exact: bool) -> GameFacts:
    limit = min((one for one in (budget.seconds, budget.core_seconds) if one is not None), default=None)
    seconds = PROBE_S if limit is None else min(max(PROBE_SHARE * limit, MIN_PROBE_S), PROBE_S)
    probe = GameProbe(env, seconds=None if is_exact else seconds)
    try:
        watched(probe.run, deadline_s=CALL_DEADLINE_S, say=_say)
    except EnvError as error:
        found = probe.facts()
        if found is None:
            raise
        _say(f"The settings rest on less than they should: {error}")
        return found
    found = probe.facts()
    assert found is not None, "a probe plays at least one turn"
    return found


def _memory_mib() -> float:
    """Memory of this machine in MiB; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    except (OSError, ValueError):
        return 8192.0
