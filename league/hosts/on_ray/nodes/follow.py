"""Decides on which machines of a cluster actor hosts should be, and how many on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from league.hosts.on_ray.nodes.node_watch import Node


@dataclass(frozen=True)
class Change:
    """Changes to make. add: machine of each actor host to start. remove: actor hosts whose machine is gone."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def follow(
    nodes: Iterable[Node], usable: Iterable[Node], *, held: Mapping[str, str], taken: Mapping[str, float]
) -> Change:
    """One actor host for each whole CPU that is left, on machines without GPUs where there are any.

    A host stays where it is, also where a better machine joins: moving it would cost a lease.

    Args:
      nodes: every machine of the cluster. usable: those that may have hosts.
      held: actor host -> machine. taken: machine -> CPUs that learner hosts have there.
    """
    present = {node.node_id for node in nodes}
    removed = tuple(host for host, node_id in held.items() if node_id not in present)
    counts: dict[str, int] = {}
    for node_id in held.values():
        counts[node_id] = counts.get(node_id, 0) + 1
    rooms = {node: int(node.cpus - taken.get(node.node_id, 0.0) + 1e-6) for node in usable}
    plain = [node for node, room in rooms.items() if not node.gpus and room > 0]
    chosen = plain or [node for node, room in rooms.items() if room > 0]
    added = tuple(node.node_id for node in chosen for _ in range(max(rooms[node] - counts.get(node.node_id, 0), 0)))
    return Change(added, removed)
