"""The two hosts as Ray actors: the plain host, made in its own process, and its way to the others."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
import torch

from league.agents.acting.central.central_policy import InferenceLost
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.acting.central.inference_server import InferenceServer
from league.agents.acting.central.socket_client import SocketClient
from league.agents.learner.build import choose_dtype
from league.agents.learner.errors import LearnerError
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import EvolvedWeights, WeightsFollower, WeightSteps
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import prepare_process
from league.agents.weights import Weights
from league.core.state.commands import FinishLease
from league.core.state.records import Lease
from league.envs.failures import GameFailure
from league.envs.protocol import EnvSpec
from league.envs.registry import spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.host_log import logs_its_errors, open_log
from league.hosts.learners.async_learner_host import AsyncLearnerHost
from league.hosts.learners.learner_host import UnknownPlayer, Workers
from league.hosts.on_ray.frozen_objects import NewestAnswer, NewestObjects
from league.hosts.on_ray.nodes.learner_groups import ANY, WorkerPlace
from league.hosts.on_ray.ray_actors import actor_class
from league.hosts.on_ray.replay_rows import ReplayHandles
from league.hosts.on_ray.worker_group import RayWorkerGroup
from league.hosts.protocol import CheckpointTaken, InstallPlayer, LearnerProgress, Reconfigure, SnapshotTaken
from league.hosts.setup import HostSetup

CREDITS = 1
"""Chunks of one actor host on their way to a learner while it plays on. The learner answers when it has room for the
chunk, so that with what it holds itself about two batches lie between acting and learning."""

ACTORS = "actors"
"""Ray's name for the threads that serve actor hosts: these may wait for room, directives must not wait behind them."""

PROGRESS = "progress"
"""The same for the one thread that says how far the learners are: an answer shows that the host lives."""

MIN_ACTORS = 16
"""Actor hosts for which a learner host has threads at least, so that more can be added to a small run."""

MAX_THREADS = 768


LEARNER_LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.GetTimeoutError,
    ray.exceptions.ObjectLostError,
    LearnerError,
)
"""Errors of an answer that did not come; weights in the object store are lost with the learner host that put them."""


class LeaseUnplayable(Exception):  # noqa: N818
    """The lease at hand cannot be played on, through no fault of its host.

    A learner host or the inference host died, did not answer in time, or holds the player no more; or a snapshot's
    weights did not come.
    """


@dataclass(frozen=True)
class _Held:
    """The weights of a player that came last, with their serial on its learner host."""

    serial: int
    weights: Weights


NOTHING = -1
"""Serial that no weights have."""


class RemoteClient:
    """Learners in other processes.

    Args:
      handles: player -> handle of the learner host that holds it.
      push_s: longest wait for one answer.
      sender: name of the actor host. credits: see `CREDITS`; 0 waits for the answer to every chunk.
      seed: of the run, for the noise of evolution strategies.
    """

    def __init__(
        self, handles: Mapping[str, Any], *, push_s: float, sender: str = "", credits: int = CREDITS, seed: int = 0
    ) -> None:
        self._handles = handles
        self._push_s = push_s
        self._sender = sender
        self._credits = credits
        self._pushed_to: set[str] = set()
        self._on_the_way: deque[tuple[str, Any]] = deque()
        self._held: dict[str, _Held] = {}
        self._followed = defaultdict[str, WeightsFollower](lambda: WeightsFollower(noise_table(seed)))

    def use(self, handles: Mapping[str, Any]) -> None:
        """Take over new handles; what is on its way to a replaced host is given up."""
        for player, handle in handles.items():
            if self._handles.get(player) != handle:
                self._on_the_way = deque(item for item in self._on_the_way if item[0] != player)
                self._held.pop(player, None)
        self._handles = handles

    def push(self, player: str, chunk: bytes) -> Weights | None:
        """As in the protocol; waits while the player's learner has as many chunks to do as there are credits."""
        self._pushed_to.add(player)
        push = self._handles[player].push.remote(player, chunk, have=self._have(player), sender=self._sender)
        self._on_the_way.append((player, push))
        newest = None
        while sum(name == player for name, _ in self._on_the_way) > self._credits:
            newest = self._take(player) or newest
        return newest

    def leave(self) -> None:
        """Tell the learners that no chunk follows for now, where others wait for one."""
        if not self._credits:
            for player in self._pushed_to & self._handles.keys():
                self._handles[player].leave.remote(player, sender=self._sender)
        self._pushed_to.clear()

    def weights(self, player: str) -> Weights:
        self._get(player, self._handles[player].weights.remote(player, have=self._have(player)))
        return self._held[player].weights

    def _have(self, player: str) -> int:
        return self._held[player].serial if player in self._held else NOTHING

    def _take(self, player: str) -> Weights | None:
        """Wait for the oldest chunk on its way to a player."""
        for item in self._on_the_way:
            if item[0] == player:
                self._on_the_way.remove(item)
                return self._get(player, item[1])
        return None

    def _get(self, player: str, reference: Any) -> Weights | None:
        """The weights of an answer, which are held from then on; None where those held are as new."""
        try:
            answer: NewestAnswer | None = ray.get(reference, timeout=self._push_s)
            if answer is None or answer.serial < self._have(player):  # overtaken by a later one
                return None
            newest = answer.weights or ray.get(answer.reference, timeout=self._push_s)
        except UnknownPlayer as error:
            raise LeaseUnplayable("the learner host holds the player no more") from error
        except LEARNER_LOST as error:
            raise LeaseUnplayable(f"the learner did not answer: {type(error).__name__}") from error
        if isinstance(newest, EvolvedWeights | WeightSteps):
            newest = self._followed[player].follow(newest)
        self._held[player] = _Held(answer.serial, newest)
        return self._held[player].weights


def frozen_weights(frozen: Mapping[str, Any], *, timeout_s: float) -> dict[str, Weights]:
    """Snapshot -> its weights, from references to them.

    Raises:
      LeaseUnplayable: they did not come in time, as from a machine that is cut off. The next lease may find a copy.
    """
    try:
        return dict(zip(frozen, ray.get(list(frozen.values()), timeout=timeout_s), strict=True))
    except (ray.exceptions.GetTimeoutError, ray.exceptions.ObjectLostError) as error:
        raise LeaseUnplayable(f"weights of {', '.join(frozen)} did not come: {type(error).__name__}") from error


class ActorHostProcess:
    """An actor host in a process of its own."""

    def __init__(self, setup: HostSetup, name: str) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides no GPU from a host that asks for none; actors use the CPU
        prepare_process()
        open_log(setup.logs, name)
        spec = spec_of(setup.env)
        self._push_s = setup.deadlines.push_s

        def connect(spec: EnvSpec, network: Network, capacity: int) -> SocketClient:
            return SocketClient(setup.inference, spec, network, capacity=capacity, deadline_s=self._push_s)

        dtype = choose_dtype(spec, setup.network, setup.learner.precision)
        self._host = ActorHost(setup, name=name, dtype=dtype, connect=connect if setup.inference else None)
        credits = 0 if setup.wait_for_update else CREDITS
        self._client = RemoteClient({}, push_s=self._push_s, sender=name, credits=credits, seed=setup.seed)

    def ready(self) -> tuple[int, str]:
        """The process id and the machine, once everything is built."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    @logs_its_errors
    def play(
        self,
        lease: Lease,
        *,
        frozen: Mapping[str, Any],
        learners: Mapping[str, Any],
        networks: Mapping[str, NetworkConfig],
    ) -> tuple[FinishLease, tuple[GameFailure, ...]]:
        """Play under a lease; returns also the failures of single games.

        frozen: snapshot -> reference to its weights; learners: player -> learner host; networks: as in `PlayLease`.
        """
        self._host.add_networks(networks)
        self._client.use(learners)
        missing = [name for name in self._host.missing(lease.assignments) if name in frozen]
        weights = frozen_weights({name: frozen[name] for name in missing}, timeout_s=self._push_s)
        try:
            answer = self._host.play(lease, frozen=weights, learners=self._client)
        except InferenceLost as error:
            raise LeaseUnplayable(str(error)) from error
        finally:
            self._client.leave()
        return answer, self._host.take_failures()


class InferenceHostProcess:
    """An inference host in a process of its own, on the last GPU of its machine where there is one."""

    @logs_its_errors
    def __init__(self, setup: HostSetup, name: str) -> None:
        prepare_process()
        open_log(setup.logs, name)
        spec = spec_of(setup.env)
        network = build_network(spec, setup.network, seed=setup.seed)
        gpus = torch.cuda.device_count()
        device = torch.device("cuda", gpus - 1) if gpus else torch.device("cpu")
        dtype = choose_dtype(spec, setup.network, setup.learner.precision)
        host = InferenceHost(network, dtype=dtype, device=device)
        self._server = InferenceServer(host, spec, network, name=setup.inference)
        self._silence_s = setup.deadlines.progress_s
        self._thread = threading.Thread(target=self._server.serve, name="inference", daemon=True)
        self._thread.start()

    def ready(self) -> tuple[int, str]:
        """The process id and the machine, once everything is built."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    @logs_its_errors
    def progress(self, *, budget_fraction: float) -> list[LearnerProgress]:
        """Nothing to report: the answer shows that it serves. Raises RuntimeError where it does not."""
        silence_s = time.monotonic() - self._server.lived_at
        if not self._thread.is_alive() or silence_s > self._silence_s:
            raise RuntimeError(f"the inference host has not served for {silence_s:.0f} s")
        return []


class LearnerHostProcess:
    """A learner host in a process of its own."""

    @logs_its_errors
    def __init__(self, setup: HostSetup, name: str, places: Mapping[str, WorkerPlace], *, spare_cores: int = 0) -> None:
        """Start the host.

        Args:
          places: player -> the place that is kept for the workers of its learner.
          spare_cores: cores that no host needs.
        """
        prepare_process()
        open_log(setup.logs, name)
        spec = spec_of(setup.env)
        dtype = choose_dtype(spec, setup.network, setup.learner.precision)
        self._replays = ReplayHandles(setup.replay_hosts)
        host = AsyncLearnerHost(
            setup,
            dtype=dtype,
            workers_of=lambda player: _workers(places.get(player, places.get(ANY))),
            pushes_each=CREDITS + 1,
            spare_cores=spare_cores,
            rows_of=self._replays.rows_of,
        )
        host.start()
        self._host = host
        self._newest = NewestObjects(ray.put)

    def ready(self) -> tuple[int, str]:
        """The process id and the machine, once everything is built."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    @logs_its_errors
    def install(self, task: InstallPlayer) -> None:
        """As `LearnerHost.install`."""
        self._host.install(task)

    @logs_its_errors
    @ray.method(concurrency_group=ACTORS)  # type: ignore[untyped-decorator]
    def push(self, player: str, chunk: bytes, *, have: int, sender: str) -> NewestAnswer | None:
        """As `LearnerHost.push`, answered as by `NewestObjects.answer`."""
        return self._newest.answer(player, self._host.push(player, chunk, sender=sender), have=have)

    @ray.method(concurrency_group=ACTORS)  # type: ignore[untyped-decorator]
    def leave(self, player: str, *, sender: str) -> None:
        """As `AsyncLearnerHost.leave`."""
        self._host.leave(player, sender=sender)

    @ray.method(concurrency_group=ACTORS)  # type: ignore[untyped-decorator]
    def weights(self, player: str, *, have: int) -> NewestAnswer | None:
        """The weights of a player that were published last, as by `NewestObjects.answer`."""
        return self._newest.answer(player, self._host.published(player), have=have)

    @logs_its_errors
    @ray.method(concurrency_group=PROGRESS)  # type: ignore[untyped-decorator]
    def progress(self, *, budget_fraction: float, replays: tuple[Any, ...] = ()) -> list[LearnerProgress]:
        """As `LearnerHost.progress`; its learners use this budget fraction and these replay hosts from now on."""
        self._host.budget_fraction = budget_fraction
        self._replays.use(replays)
        return self._host.progress()

    def snapshot(self, directive_id: int, player: str) -> SnapshotTaken:
        """The player's weights as they are now."""
        newest = self._host.newest(player)
        return SnapshotTaken(directive_id, player, newest.weights, newest.progress.trained_steps)

    @logs_its_errors
    def reset(self, player: str, weights: Weights) -> None:
        """As `LearnerHost.reset`."""
        self._host.reset(player, weights)

    @logs_its_errors
    def reconfigure(self, task: Reconfigure) -> None:
        """As `LearnerHost.reconfigure`."""
        self._host.reconfigure(task)

    @logs_its_errors
    def checkpoint(self, player: str) -> CheckpointTaken:
        """As `LearnerHost.checkpoint`."""
        return self._host.checkpoint(player)


def learner_host_class(options: Mapping[str, Any], *, num_actors: int) -> Any:
    """The Ray actor class of a learner host with these options, which serves so many actor hosts."""
    # Every chunk on its way may wait for room, and one question more of each actor host must still get through.
    threads = min(max(num_actors, MIN_ACTORS) * (CREDITS + 2), MAX_THREADS)
    return actor_class(LearnerHostProcess, **{ACTORS: threads, PROGRESS: 1}).options(**options)


def _workers(place: WorkerPlace | None) -> Workers:
    has_gpus = place is not None and place.first_bundle is not None
    return Workers(functools.partial(RayWorkerGroup, place=place), torch.device("cuda" if has_gpus else "cpu"))
