"""Members of a free group: replicas on clocks of their own, and the shards of their parameter server.

Shape letters: P parameters of the network, n numbers of a shard's slice.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.replicas.free_config import ParameterServerConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, GroupMemory, make_free_mode
from league.agents.learner.replicas.parameter_server import gradient_of, socket_of, weights_of
from league.agents.learner.replicas.parameter_shard import ParameterShard
from league.agents.learner.replicas.server_rules import part_bounds
from league.agents.learner.replicas.shard_link import ShardServer
from league.agents.learner.replicas.update_mode import PLACE
from league.agents.learner.step.backend import Placement, make_backend
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.updater import LocalUpdater
from league.agents.learner.workers.worker import (
    Answer,
    Describe,
    Description,
    Load,
    Rejoin,
    Request,
    Save,
    Update,
    Updated,
    WorkerSetup,
    answer_of,
)
from league.agents.restart_state import OPTIMIZER_NUMBER, OPTIMIZER_VECTOR, WEIGHTS
from league.agents.weights import Layout, layout_of
from league.envs.component_choice import given_options
from league.envs.plugin_options import make_options


def memory_of(folder: str, config: LearnerConfig, *, size: int) -> GroupMemory:
    """The memory of a group with these settings. size: P."""
    return GroupMemory(Path(folder), size, config.pipeline.replicas, config.pipeline.stage_timeout_s)


def server_options(config: LearnerConfig) -> ParameterServerConfig:
    """Options of the parameter server that the config names."""
    made: ParameterServerConfig = make_options(
        ParameterServerConfig, given_options(config.pipeline.update_mode), place=PLACE
    )
    return made


class FreeReplica:
    """A replica: its own network and gradient, and weights as its update mode has them.

    Args:
      setup: with the folder of the group; `rank` is the number of this replica.
    """

    def __init__(self, setup: WorkerSetup) -> None:
        config, device = setup.config, torch.device(setup.device)
        network = setup.plan.build().to(device)
        layout = layout_of(network)
        replicas = FreeReplicas(memory_of(setup.folder, config, size=layout.size), member=setup.rank)
        self._mode = make_free_mode(config.pipeline.update_mode, replicas)
        objective = make_objective(config, network.head)
        shared = self._mode.shared_values
        if shared is not None and shared.version == 0:
            shared.write(_vector_of(network), version=1)
        self._optimizer = FlatOptimizer(
            network,
            config,
            keep_target=objective.passes.target,
            values=None if shared is None else torch.from_numpy(shared.values),
        )
        if shared is not None:
            self._optimizer.share_state(lambda name, entry: _shared_entry(replicas.memory, name, entry))
        self._mode.start(self._optimizer.values)
        self._shares = shared is not None
        placement = Placement(dtype=getattr(torch, setup.dtype), device=device)
        self._updater = LocalUpdater(
            backend=make_backend(network, objective, config, placement),
            objective=objective,
            optimizer=self._optimizer,
            heads=network.blocks[-1].module,
            mode=self._mode,
            placement=placement,
            config=config,
        )
        self._description = Description(layout, needs_obs=True, device_type=device.type, replicas_differ=False)

    def handle(self, request: Request) -> Answer:
        """Serve a request."""
        match request:
            case Update():
                self._mode.begin(self._optimizer.values)
                answer = cast(Updated, answer_of(self._updater, self._description, request))
                return replace(answer, tally=self._mode.take_tally())
            case Rejoin(saved):
                if self._shares:  # what the others changed meanwhile is newer
                    live = self._optimizer.save()
                    shared = (WEIGHTS, OPTIMIZER_NUMBER, OPTIMIZER_VECTOR)
                    saved = {**saved, **{name: live[name] for name in live if name.startswith(shared)}}
                self._updater.load(saved)
                return None
            case _:
                return answer_of(self._updater, self._description, request)

    def close(self) -> None:
        """Leave the group."""
        self._mode.close()
        self._updater.close()


class ShardWorker:
    """A shard of the parameter server; it listens once weights were loaded.

    Args:
      setup: with the folder of the group; ranks above those of the replicas are shards.
    """

    def __init__(self, setup: WorkerSetup) -> None:
        config = setup.config
        options, shard = server_options(config), setup.rank - config.pipeline.replicas
        network = setup.plan.build()
        layout = layout_of(network)
        memory = memory_of(setup.folder, config, size=layout.size)
        start, stop = part_bounds(layout.size, options.shards)[shard]
        self._shared = weights_of(memory, options.shards)[shard]
        if self._shared.version == 0:
            self._shared.write(_vector_of(network)[start:stop], version=1)
        module = slice_module(layout, start, stop)
        values = torch.from_numpy(self._shared.values)
        self._optimizer = FlatOptimizer(module, config, keep_target=False, values=values)
        self._description = Description(
            self._optimizer.layout, needs_obs=False, device_type="cpu", replicas_differ=False
        )
        gradients = [gradient_of(memory, member).values[start:stop] for member in range(memory.members)]
        self._shard = ParameterShard(self._optimizer, self._shared, options, gradient_of=gradients.__getitem__)
        self._path = socket_of(memory, shard)
        self._lock = threading.Lock()
        self._server: ShardServer | None = None

    def handle(self, request: Request) -> Answer:
        """Serve a request of the group's leader, between those of the replicas."""
        with self._lock:
            match request:
                case Describe():
                    return self._description
                case Save():
                    return self._optimizer.save()
                case Load(saved) | Rejoin(saved):
                    with self._shared.changing(version=self._shared.version + 1):
                        self._optimizer.load(saved)
        if self._server is None:
            self._server = ShardServer(self._shard, self._path, lock=self._lock)
            threading.Thread(target=self._server.serve, name="parameter shard", daemon=True).start()
        return None

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.end()


def slice_module(layout: Layout, start: int, stop: int) -> nn.Module:
    """A module whose parameters are the pieces of a network's within [start, stop) of its flat vector.

    A piece of a matrix has two axes, so that it decays as the matrix does.
    """
    module, offset = nn.Module(), 0
    for index, (size, shape) in enumerate(zip(layout.sizes, layout.shapes, strict=True)):
        length = min(stop, offset + size) - max(start, offset)
        if length > 0:
            piece = torch.zeros((length, 1) if len(shape) > 1 else (length,))
            module.register_parameter(f"piece_{index}", nn.Parameter(piece))
        offset += size
    return module


def _vector_of(network: nn.Module) -> NDArray[np.float32]:
    with torch.no_grad():
        vector: NDArray[np.float32] = torch.cat([entry.reshape(-1) for entry in network.parameters()]).cpu().numpy()
    return vector


def _shared_entry(memory: GroupMemory, name: str, entry: Tensor) -> Tensor:
    """An entry of the optimizer's state that all replicas change; it starts with the value of the given one."""
    shared = memory.vector(f"moment-{name}", entry.numel())
    if shared.version == 0:
        shared.write(entry.reshape(-1).numpy(), version=1)
    return torch.from_numpy(shared.values).view(entry.shape)
