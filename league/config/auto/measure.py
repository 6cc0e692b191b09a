"""Measures the situation of a run: random play of its game, the machine, and passes of the network."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable

from league.agents.nets.config import NetworkConfig
from league.config.auto.situation import SPENT_OF_MEASURED, SPENT_OF_NOMINAL, NetworkCosts, Situation
from league.config.ray_address import AUTO, OWN, ray_address
from league.config.run_config import BudgetConfig
from league.envs.facts.core_speed import WORK_S, work_s
from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.protocol import EnvConfig, EnvError, EnvSpec
from league.processes.processor_time import num_cores
from league.processes.task_thread import watched
from league.stages import begin_stage

CALL_DEADLINE_S = 60.0
"""Deadline of one call of the env; beyond it the settings rest on what was seen until then."""

DEAR_FACTOR = 2.5
"""Of the nominal cost of a network: from here on the measured one counts in full; below the nominal cost not at all."""

MAX_PLAY_S, MIN_PLAY_S, PLAY_FRACTION = 2.0, 0.3, 0.02
"""Seconds of random play: at most, at least, and as a share of the budget."""

PACE_WORKS, MAX_PACE = 300, 8.0
"""Pieces of work that show how fast a core is, about 20 ms; cores are taken for so many times slower or faster at most.
"""

MAX_LOAD_S, LOAD_FRACTION = 0.5, 0.005
"""Seconds that look for other programs on the machine: at most, and as a share of the budget."""


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
    share = 1.0 if budget.seconds is None else core_share(min(LOAD_FRACTION * budget.seconds, MAX_LOAD_S))
    return Situation(
        game,
        budget,
        cores=num_cores(),
        memory_mib=_memory_mib(),
        core_share=share,
        core_pace=core_pace(),
        cluster=cluster,
    )


def core_share(
    seconds: float,
    *,
    wall: Callable[[], float] = time.perf_counter,
    processor: Callable[[], float] = time.thread_time,
    work: Callable[[], object] = work_s,
) -> float:
    """Part of a core that a busy thread gets now, in (0, 1], in steps of a factor of the square root of 2.

    A machine that others share gives a run of so many seconds fewer core-seconds, and so fewer decisions.

    Args:
      seconds: of the wall, to be busy for.
    """
    began, used = wall(), processor()
    while wall() - began < seconds:
        work()
    share = (processor() - used) / max(wall() - began, 1e-9)
    return float(2.0 ** (min(round(2.0 * math.log2(max(share, 1e-3))), 0) / 2.0))


def core_pace(*, work: Callable[[], float] = work_s) -> float:
    """Seconds that a core takes now for a second's work of a core of 2024, in steps of a factor of the root of 2.

    All costs are those of a core of 2024, so that no setting depends on a machine's mood; a budget is spent here.
    """
    work()
    pace = sum(work() for _ in range(PACE_WORKS)) / PACE_WORKS / WORK_S
    return float(2.0 ** (round(2.0 * math.log2(min(max(pace, 1.0 / MAX_PACE), MAX_PACE))) / 2.0))


def network_costs(spec: EnvSpec, config: NetworkConfig) -> NetworkCosts:
    """Costs of a network: measured where passes are far dearer than the nominal ones, else nominal, or between both.

    The nominal costs are those of whole decisions, which passes of a small network do not show; and no setting of a
    small network should depend on a clock. In between nothing jumps, as measured costs vary.
    """
    from league.agents.learner.build import default_device
    from league.agents.learner.pass_costs import LARGE, PassCost, device_act_cost, pass_costs

    begin_stage("timing the network")
    device = default_device()
    nominal = NetworkCosts(learns_on_gpu=device.type != "cpu")
    try:
        act, learn, num_parameters = pass_costs(spec, config)
        gpu = None if device.type == "cpu" else device_act_cost(spec, config, device).of(LARGE) / LARGE
    except Exception:  # boundary: parts of the user's own; the check before the run says what is wrong with them
        return nominal
    usual_act = PassCost(nominal.act_call_s, nominal.act_s).of(LARGE)
    usual_learn = PassCost(nominal.update_call_s, nominal.learn_s).of(LARGE)
    excess = max(act.of(LARGE) / usual_act, learn.of(LARGE) / usual_learn) - 1.0
    share = min(max(excess / (DEAR_FACTOR - 1.0), 0.0), 1.0)

    def cost(measured: float, usual: float) -> float:
        return usual + share * max(measured - usual, 0.0)

    return NetworkCosts(
        act_call_s=cost(act.call_s, nominal.act_call_s),
        act_s=cost(act.each_s, nominal.act_s),
        update_call_s=cost(learn.call_s, nominal.update_call_s),
        learn_s=cost(learn.each_s, nominal.learn_s),
        timed_act_call_s=act.call_s,
        timed_update_call_s=learn.call_s,
        spent_share=SPENT_OF_NOMINAL + share * (SPENT_OF_MEASURED - SPENT_OF_NOMINAL),
        gpu_act_s=gpu if share == 1.0 else None,
        learns_on_gpu=nominal.learns_on_gpu,
        weights_mib=4.0 * num_parameters / 2**20,
    )


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _facts_of(env: EnvConfig, budget: BudgetConfig, *, is_exact: bool) -> GameFacts:
    limit = min((one for one in (budget.seconds, budget.core_seconds) if one is not None), default=None)
    seconds = MAX_PLAY_S if limit is None else min(max(PLAY_FRACTION * limit, MIN_PLAY_S), MAX_PLAY_S)
    begin_stage(f"playing {env.id} at random", seconds=None if is_exact else seconds)
    play = RandomPlay(env, seconds=None if is_exact else seconds)
    try:
        watched(play.run, deadline_s=CALL_DEADLINE_S, say=_say)
    except EnvError as error:
        found = play.facts()
        if found is None:
            raise
        _say(f"The settings rest on less than they should: {error}")
        return found
    found = play.facts()
    assert found is not None, "at least one turn is played"
    return found


def _memory_mib() -> float:
    """Memory of this machine in MiB; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    except (OSError, ValueError):
        return 8192.0
