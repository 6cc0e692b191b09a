"""Measured costs of a network on one core, of acting and of learning; of acting on a GPU of this machine too.

A pass over n decisions costs `call_s + n * each_s`; both are found from a small and a large pass. Costs on a core
are those at its usual speed, see `league.envs.facts.core_speed`.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.build import local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.step.backend import Placement
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import with_own_defaults
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import layout_of
from league.envs.facts.core_speed import WORK_S, Pace, work_s
from league.envs.protocol import EnvSpec

SMALL, LARGE = 32, 512
"""Decisions in the two passes."""
MAX_NUMBERS = 4_000_000
"""Numbers observed and actions, of all decisions in the large pass together; above it, it is smaller."""
UNROLL_LENGTH = 8
SLOW_S = 0.03
"""A small pass that takes longer is taken to cost by its decisions alone; no large one is made."""
REPEATS = 3

Clock = Callable[[], float]


class PassCost(NamedTuple):
    """Seconds of a pass whatever the number of decisions, and seconds that each decision adds."""

    call_s: float
    each_s: float

    def of(self, decisions: int) -> float:
        """Seconds of a pass over so many decisions."""
        return self.call_s + decisions * self.each_s


@with_own_defaults
def pass_costs(
    spec: EnvSpec, config: NetworkConfig, *, clock: Clock = time.process_time, pace: Pace = work_s
) -> tuple[PassCost, PassCost, int]:
    """Costs of one forward pass of acting and of one update by V-trace in float32, and the number of parameters.

    Args:
      spec: of the game.
      clock: seconds of processor time. pace: speed of the core.
    Raises:
      ValueError: the network cannot be made from the configuration. And whatever parts of the user's own raise.
    """
    network, cpu = build_network(spec, config, seed=0), torch.device("cpu")
    unrolls = UnrollSpec.of(spec, network, unroll_length=UNROLL_LENGTH)
    updater = local_updater(copy.deepcopy(network), LearnerConfig(), Placement(torch.float32, cpu))
    inputs = UpdateInputs(1e-3, LossWeights(0.01, 1.0), oldest_version=0, microbatches_per_block=1)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return (
            _act_cost(network, unrolls, cpu, clock, pace),
            _cost(
                lambda batch: updater.update([batch], inputs),
                lambda decisions: synthetic_unrolls(unrolls, rows=decisions // UNROLL_LENGTH, seed=0),
                large_of(spec),
                clock,
                pace,
            ),
            layout_of(network).size,
        )
    finally:
        updater.close()
        torch.set_num_threads(threads)


@with_own_defaults
def device_act_cost(
    spec: EnvSpec, config: NetworkConfig, device: torch.device, *, clock: Clock = time.perf_counter
) -> PassCost:
    """Cost of one forward pass of acting on a device, copies to and from it included.

    Args:
      clock: seconds on the wall. The first pass, in which a GPU loads its kernels, is not timed.
    Raises: as `pass_costs`.
    """
    network = build_network(spec, config, seed=0).to(device)
    unrolls = UnrollSpec.of(spec, network, unroll_length=UNROLL_LENGTH)
    _act_cost(network, unrolls, device, lambda: 0.0, lambda: WORK_S)
    return _act_cost(network, unrolls, device, clock, lambda: WORK_S)


def _act_cost(network: Network, unrolls: UnrollSpec, device: torch.device, clock: Clock, pace: Pace) -> PassCost:
    """Cost of one forward pass and one sample for each row, which ends with the actions on the CPU."""

    def act(batch: Unrolls) -> None:
        obs = {name: torch.from_numpy(array[:, 0].copy()).to(device) for name, array in batch.obs.items()}
        mask = None if batch.action_mask is None else torch.from_numpy(batch.action_mask[:, 0].copy()).to(device)
        rows = len(batch.core)
        with torch.inference_mode():
            core = torch.zeros(rows, network.core_size, device=device)
            output = network.step(obs, core=core, action_mask=mask)
            noise = torch.full((rows, network.head.num_noise), 0.5, device=device)
            network.head.sample(output.logits, noise)[0].cpu()

    large = large_of(unrolls.game)
    return _cost(act, lambda decisions: synthetic_unrolls(unrolls, rows=decisions, seed=0), large, clock, pace)


def large_of(spec: EnvSpec) -> int:
    """Decisions in the large pass: a batch of many thousand actions would take longer to make than to learn from."""
    numbers = spec.actions.num_actions + sum(math.prod(array.shape) for array in spec.observations.values())
    return max(2 * SMALL, min(LARGE, MAX_NUMBERS // max(numbers, 1)))


def _cost(
    run: Callable[[Unrolls], object], make: Callable[[int], Unrolls], large: int, clock: Clock, pace: Pace
) -> PassCost:
    small_s = _shortest(run, make(SMALL), clock, pace)
    if small_s > SLOW_S:
        return PassCost(0.0, small_s / SMALL)
    each_s = max((_shortest(run, make(large), clock, pace) - small_s) / (large - SMALL), 0.0)
    return PassCost(max(small_s - SMALL * each_s, 0.0), each_s)


def _shortest(run: Callable[[Unrolls], object], batch: Unrolls, clock: Clock, pace: Pace) -> float:
    """Seconds of the shortest of a few runs; one that is slow is not repeated."""
    shortest, works = float("inf"), [pace(), pace()]  # the first one warms up
    for _ in range(REPEATS + 1):  # the first one builds kernels and buffers
        began = clock()
        run(batch)
        shortest = min(shortest, clock() - began)
        works.append(pace())
        if shortest > SLOW_S:
            break
    return shortest * WORK_S / min(works)
