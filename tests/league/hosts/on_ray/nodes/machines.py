"""Machines of a made-up cluster."""

from __future__ import annotations

from league.hosts.on_ray.nodes.node_watch import Node


def machine(name: str, *, cpus: float = 4.0, gpus: float = 0.0) -> Node:
    """A machine whose id is its name."""
    return Node(name, name, f"10.0.0.{len(name)}", cpus, gpus)
