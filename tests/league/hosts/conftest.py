"""One embedded Ray for all tests of the session; what it leaves is looked for when it has been closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from league.hosts.on_ray.cluster import Cluster
from league.processes.reaper import Reaper


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Cluster]:
    """A Ray with room for every runtime of these tests, one after the other, and two pretended GPUs."""
    cluster = Cluster("local", num_hosts=4, object_store_mb=80, num_gpus=2)
    reaper = Reaper(cluster.folder)
    reaper.start()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
        reaper.close()
    assert cluster.folder is not None
    assert not cluster.folder.exists()
