"""Placement of the hosts of a run: Ray's options of each, and which hosts come and go with the machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from league.hosts.on_ray.nodes.follow import Change, follow
from league.hosts.on_ray.nodes.learner_groups import LearnerGroups, WorkerPlace
from league.hosts.on_ray.nodes.node_watch import Node, NodeWatch

LIMITS: Mapping[str, Any] = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}

NO_ROOM = "No machine of the cluster has a CPU left for an actor host: nothing is played until one joins that has."


class HostPlacement:
    """The machines, and what is where.

    Args:
      watch: of the machines.
      follows: whether actor hosts come and go with the machines; else Ray chooses the machine of each.
    """

    def __init__(self, watch: NodeWatch, *, follows: bool) -> None:
        self.follows = follows
        self.groups = LearnerGroups()
        self._watch = watch
        self._pinned: dict[str, str] = {}
        self._nodes_of: dict[str, str] = {}
        self._remarks: list[str] = []
        self._is_full = False

    def start(self, players_of: Mapping[str, tuple[str, ...]], *, num_workers: int) -> None:
        """Look at the machines, and keep room for the learner hosts with these players."""
        self._watch.start()
        self.groups.place(self._watch.nodes, players_of, num_workers=num_workers)

    def learner_options(self, host: str) -> dict[str, Any]:
        """Ray's options of a learner host."""
        return {**LIMITS, **self.groups.host_options(host)}

    def worker_places(self, host: str) -> Mapping[str, WorkerPlace]:
        """As `LearnerGroups.worker_places`."""
        return self.groups.worker_places(host)

    def actor_options(self, host: str, *, is_extra: bool = False) -> dict[str, Any]:
        """Ray's options of an actor host: on its machine and nowhere else, where it follows one.

        Args:
          is_extra: whether it was added to a Ray of our own, which has CPUs for the first ones alone.
        """
        pinned = self._pinned.get(host)
        if pinned is None:
            return {**LIMITS, "num_cpus": 0 if is_extra else 1}
        return {**LIMITS, "scheduling_strategy": NodeAffinitySchedulingStrategy(pinned, soft=False)}

    def pin(self, host: str, node_id: str) -> None:
        """Decide on the machine of an actor host before it is started."""
        self._pinned[host] = node_id

    def started(self, host: str, node_id: str) -> str:
        """Note the machine on which a host came up; returns why it must not be used, empty if it may."""
        self._nodes_of[host] = node_id
        return self._watch.refusal(node_id)

    def forget(self, host: str) -> None:
        """A host is not there any more. One that follows a machine keeps its CPU there, so that no other takes it."""
        self._nodes_of.pop(host, None)

    def change(self, learner_hosts: tuple[str, ...]) -> Change:
        """Actor hosts to start and to give up. None are started before every learner host has its place."""
        if not self.follows:
            return Change()
        taken: dict[str, float] = {}
        for host in learner_hosts:
            if host in self._nodes_of:
                node_id = self._nodes_of[host]
                taken[node_id] = taken.get(node_id, 0.0) + float(LIMITS["num_cpus"])
        found = follow(self._watch.nodes, self._watch.usable, held=self._pinned, taken=taken)
        for host in found.remove:
            del self._pinned[host]
        if not all(host in self._nodes_of for host in learner_hosts):
            return Change(remove=found.remove)
        if not found.add and not self._pinned and self._watch.usable and not self._is_full:
            self._is_full = True
            self._remarks.append(NO_ROOM)
        return found

    def nodes(self) -> Mapping[Node, tuple[str, ...]]:
        """Every machine with the hosts that are up there."""
        return {
            node: tuple(host for host, where in self._nodes_of.items() if where == node.node_id)
            for node in self._watch.nodes
        }

    def take_remarks(self) -> list[str]:
        """Sentences for the user since the last call."""
        taken, self._remarks = [*self._watch.take_remarks(), *self._remarks], []
        return taken

    def close(self) -> None:
        """Stop watching, and give up what was kept; may be called twice."""
        self._watch.close()
        self.groups.close()
