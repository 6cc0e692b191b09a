"""Keeps each learner host and the workers of its learners together, on one machine where they fit there."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from league.hosts.on_ray.nodes.node_watch import Node

logger = logging.getLogger(__name__)

PLACE_S = 30.0
"""Longest wait for GPUs that are to be kept for a learner's workers."""

ANY = ""
"""Stands for a player that joined after the start of the run."""

Bundle = dict[str, float]


@dataclass(frozen=True)
class WorkerPlace:
    """The place that is kept for the workers of one learner.

    Fields:
      group: with the learner host in its bundle 0. first_bundle: with the GPU of the first worker; None for workers on
        the CPU, which are in bundle 0 too.
    """

    group: PlacementGroup
    first_bundle: int | None = None

    def options(self, rank: int) -> dict[str, Any]:
        """Ray's options of a worker."""
        bundle = 0 if self.first_bundle is None else self.first_bundle + rank
        strategy = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=bundle)
        return {"num_gpus": 0 if self.first_bundle is None else 1, "scheduling_strategy": strategy}


def bundles_of(players: Iterable[str], *, with_gpus: Iterable[str], num_workers: int) -> list[Bundle]:
    """The bundles of a learner host: its CPU, then a GPU for each worker of each of its players that has some."""
    kept = set(with_gpus)
    return [{"CPU": 1.0}, *({"GPU": 1.0} for player in players if player in kept for _ in range(num_workers))]


def strategy_of(bundles: Iterable[Mapping[str, float]], nodes: Iterable[Node]) -> str:
    """One machine for all of them where one is large enough, else as few as possible."""
    needed = list(bundles)
    cpus, gpus = (sum(bundle.get(kind, 0.0) for bundle in needed) for kind in ("CPU", "GPU"))
    return "STRICT_PACK" if any(node.cpus >= cpus and node.gpus >= gpus for node in nodes) else "PACK"


class LearnerGroups:
    """Decides which GPU is whose, for as long as a run lasts.

    Attributes:
      plan: as it could be carried out.
    """

    def __init__(self) -> None:
        self.plan = GpuPlan(0.0)
        self._groups: dict[str, PlacementGroup] = {}
        self._places: dict[str, WorkerPlace] = {}

    def place(self, nodes: Iterable[Node], players_of: Mapping[str, tuple[str, ...]], *, num_workers: int) -> None:
        """Keep room for every learner host whose learners compute in workers.

        Args:
          players_of: learner host -> the players that it holds.
        """
        machines = list(nodes)
        num_gpus = int(sum(node.gpus for node in machines))
        players = tuple(player for held in players_of.values() for player in held)
        plan = plan_gpus(num_gpus, players=players, learner_hosts=len(players_of), num_workers=num_workers)
        if num_workers:
            for host, held in players_of.items():
                self._keep(host, held, machines, plan)
        with_gpus = tuple(player for player, place in self._places.items() if place.first_bundle is not None)
        without = tuple(player for player in players if player not in with_gpus) if num_gpus and num_workers else ()
        self.plan = replace(plan, players=with_gpus, on_cpu=without)
        for warning in self.plan.warnings():
            logger.warning(warning)

    def host_options(self, host: str) -> dict[str, Any]:
        """Ray's options of a learner host."""
        if host not in self._groups:
            return {"num_gpus": self.plan.host_share}
        strategy = PlacementGroupSchedulingStrategy(self._groups[host], placement_group_bundle_index=0)
        return {"num_gpus": 0, "scheduling_strategy": strategy}

    def worker_places(self, host: str) -> Mapping[str, WorkerPlace]:
        """Player -> place of its workers; `ANY` for a player that joins later: on the CPU, beside the host."""
        group = self._groups.get(host)
        if group is None:
            return {}
        own = {player: place for player, place in self._places.items() if place.group is group}
        return {ANY: WorkerPlace(group), **own}

    def close(self) -> None:
        """Give up what was kept; may be called twice."""
        for group in self._groups.values():
            with contextlib.suppress(Exception):  # boundary: a cluster that is gone keeps nothing
                remove_placement_group(group)
        self._groups.clear()
        self._places.clear()

    def _keep(self, host: str, held: tuple[str, ...], nodes: list[Node], plan: GpuPlan) -> None:
        """Keep a group for a host: with the planned GPUs, or without them where another process has them."""
        for with_gpus in dict.fromkeys((plan.players, ())):
            bundles = bundles_of(held, with_gpus=with_gpus, num_workers=plan.num_workers)
            group = placement_group(bundles, strategy=strategy_of(bundles, nodes))
            if group.wait(PLACE_S):
                self._groups[host] = group
                break
            remove_placement_group(group)
        else:
            return
        first = 1
        for player in held:
            has_gpus = player in with_gpus
            self._places[player] = WorkerPlace(group, first if has_gpus else None)
            first += plan.num_workers if has_gpus else 0


@dataclass(frozen=True)
class GpuPlan:
    """The assignment of GPUs to hosts and workers.

    Fields:
      host_share: part of a GPU that every learner host asks for; 0 where its learners compute in workers.
      players: those whose workers get a GPU each. on_cpu: those whose workers must do without, although there are GPUs.
      num_workers: workers of each learner, 0 where it computes in its host. num_gpus: GPUs of the cluster.
    """

    host_share: float
    players: tuple[str, ...] = ()
    on_cpu: tuple[str, ...] = ()
    num_workers: int = 0
    num_gpus: int = 0

    def warnings(self) -> Iterator[str]:
        """One sentence where there are GPUs and some learner does not get what it could use."""
        if self.on_cpu:
            needed = self.num_workers * (len(self.players) + len(self.on_cpu))
            yield (
                f"{', '.join(self.on_cpu)}: the {self.num_workers} workers of each learner run on the CPU, as there "
                f"are {self.num_gpus} GPUs for {needed} workers; use fewer stages or replicas, or none."
            )

    def device_of(self, player: str) -> str:
        """Names the device of a player's learner, for people."""
        if self.num_workers:
            return f"{self.num_workers} GPUs" if player in self.players else f"{self.num_workers} workers on the CPU"
        if not self.host_share:
            return "CPU"
        return "a GPU" if self.host_share == 1.0 else f"1/{round(1.0 / self.host_share)} of a GPU"

    def text(self, players: Sequence[str]) -> str:
        """Names the devices of the learners of one host, for people."""
        if not self.num_workers:
            return self.device_of("")
        return ", ".join(f"{player}: {self.device_of(player)}" for player in players)


def plan_gpus(num_gpus: int, *, players: Sequence[str], learner_hosts: int, num_workers: int) -> GpuPlan:
    """Share GPUs out.

    Args:
      num_gpus: whole GPUs of the cluster. players: in the order of the league.
      num_workers: workers of each learner, 0 where it computes in its host.
    Returns:
      Hosts share as evenly as whole hosts fit on whole GPUs: 3 hosts on 2 GPUs take a half each, since of three shares
      of 2/3 only two would ever find room.
    """
    if num_workers:
        fit = min(num_gpus // num_workers, len(players))
        on_cpu = tuple(players[fit:]) if num_gpus else ()
        return GpuPlan(0.0, tuple(players[:fit]), on_cpu, num_workers, num_gpus)
    host_share = 1.0 / math.ceil(learner_hosts / num_gpus) if num_gpus else 0.0
    return GpuPlan(host_share, num_gpus=num_gpus)
