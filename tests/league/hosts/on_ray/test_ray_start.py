"""A Ray of our own starts without idle seconds."""

from __future__ import annotations

import pytest

from league.hosts.on_ray.ray_start import changed_start


def test_ray_asks_for_its_node_once_that_has_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks, and where that is too early, it waits for a whole second before it asks again."""
    import ray._raylet
    from ray._private import services

    has_registered = iter([False, False, True])
    node_id = ray.NodeID.from_random().hex()
    asked: list[tuple[str, str]] = []

    class Store:
        def __init__(self, address: str) -> None:
            assert address == "the store"

        def check_alive(self, nodes: list[ray.NodeID], timeout: float) -> list[bool]:
            assert not asked and [node.hex() for node in nodes] == [node_id]
            return [next(has_registered)]

    def get_node(gcs_address: str, node_id: str) -> str:
        asked.append((gcs_address, node_id))
        return "the node"

    monkeypatch.setattr(ray._raylet, "GcsClient", Store)
    monkeypatch.setattr(services, "get_node", get_node)
    with changed_start(None):
        assert services.get_node("the store", node_id) == "the node"
    assert asked == [("the store", node_id)]
    assert not [*has_registered]
    assert services.get_node is get_node
