"""Assigns GPUs to learners, once, when a run starts: a fraction for a host, or one for each of its workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


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
