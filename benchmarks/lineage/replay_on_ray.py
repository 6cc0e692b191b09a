"""A replay host as a Ray actor of its own, and the row source of a learner over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import RowSource, SourcePlace, make_row_source
from league.agents.nets.config import NetworkConfig
from league.agents.unroll.codec import OpenChunk
from league.agents.unroll.unroll import UnrollSpec
from league.envs.protocol import EnvConfig
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.replay_host import replay_host_class
from league.hosts.on_ray.replay_rows import ReplayHandles
from league.hosts.setup import HostSetup
from league.processes.reaper import Reaper

RUN, PLAYER = "r", "p"


@contextmanager
def source_on_ray(env: EnvConfig, spec: UnrollSpec, config: LearnerConfig) -> Iterator[RowSource[OpenChunk]]:
    """The rows of one player in one replay host of a Ray on this machine. config: with a replay as its row source."""
    setup = HostSetup(
        run=RUN,
        env=env,
        network=NetworkConfig(),
        learner=config,
        num_envs=1,
        chunk_rows=config.batch_rows,
        seed=0,
        replay_hosts=1,
    )
    cluster = Cluster("local", num_hosts=1, object_store_mb=80)
    reaper = Reaper(cluster.folder)
    reaper.start()
    try:
        cluster.start()
        handles = ReplayHandles(1)
        handles.use((replay_host_class(num_actors=1, num_players=1).remote(setup, "replay-0"),))
        place = SourcePlace(OpenChunk.unrolls, chunk_rows=config.batch_rows, hosts=handles.rows_of(PLAYER, 0))
        source = make_row_source(spec, config, place)
        yield source
        source.close()
    finally:
        cluster.close()
        reaper.close()
