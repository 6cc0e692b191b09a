"""Changes to how Ray starts: fewer processes, files and signals that stay ours, forked workers, and no idle second."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from league.hosts.on_ray import idle_agent, worker_request
from league.hosts.on_ray.fork_server import HostForks

LOOK_S = 0.01
"""Between two looks for a node that registers."""

REGISTER_S = 30.0
"""Longest wait for a node to register; Ray itself waits as long."""


@contextlib.contextmanager
def changed_start(server: HostForks | None) -> Iterator[None]:
    """For the start of a Ray of our own. server: of forked workers, if there is one."""
    with _private_files(), _quiet(), _few_processes(), _forked_workers(server), _prompt_node(), own_signals():
        yield


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """Files made inside are for this user alone: Ray would leave its access token readable to all."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def _few_processes() -> Iterator[None]:
    """Ray starts without the processes that a run on one machine has no use for: 250 MiB.

    They are the autoscaler, the reader of the workers' output, and what is left of a dashboard that is switched off.
    The two agents without which a raylet would not start are `idle_agent`.
    """
    from ray._private import ray_constants, services
    from ray._private.node import Node

    agents = {ray_constants.PROCESS_TYPE_DASHBOARD_AGENT, ray_constants.PROCESS_TYPE_RUNTIME_ENV_AGENT}
    python_command = services._build_python_executable_command_memory_profileable

    def command(component: str, *rest: Any, **options: Any) -> list[str]:
        if component in agents:
            return [sys.executable, "-I", "-S", idle_agent.__file__, component]
        return list(python_command(component, *rest, **options))

    starts = {name: getattr(Node, name) for name in ("start_monitor", "start_log_monitor", "start_api_server")}
    for name in starts:
        setattr(Node, name, lambda *_, **__: None)
    services._build_python_executable_command_memory_profileable = command
    try:
        yield
    finally:
        services._build_python_executable_command_memory_profileable = python_command
        for name, start in starts.items():
            setattr(Node, name, start)


@contextlib.contextmanager
def _forked_workers(server: HostForks | None) -> Iterator[None]:
    """A raylet started inside asks the server for its workers, if there is one."""
    if server is None:
        yield
        return
    from ray._private import ray_constants
    from ray._private.node import Node

    start_raylet = Node.start_raylet

    def start(node: Node, *rest: Any, **options: Any) -> None:
        setup_worker = node._ray_params.setup_worker_path
        node._ray_params.setup_worker_path = worker_request.__file__
        environment = {**server.listen(), worker_request.SETUP_WORKER: setup_worker}
        os.environ.update(environment)
        try:
            start_raylet(node, *rest, **options)
        finally:
            for name in environment:
                del os.environ[name]
        server.start(node.all_processes[ray_constants.PROCESS_TYPE_RAYLET][0].process.pid)

    Node.start_raylet = start
    try:
        yield
    finally:
        Node.start_raylet = start_raylet


@contextlib.contextmanager
def _prompt_node() -> Iterator[None]:
    """Ray asks for its node once that has registered: where it asks in vain it waits for a whole second."""
    from ray._private import services
    from ray._raylet import GcsClient, NodeID  # type: ignore[attr-defined]

    get_node = services.get_node

    def get_registered(gcs_address: str, node_id: str) -> Any:
        store, node = GcsClient(address=gcs_address), NodeID.from_hex(node_id)
        end = time.monotonic() + REGISTER_S
        while not store.check_alive([node], timeout=REGISTER_S)[0] and time.monotonic() < end:
            time.sleep(LOOK_S)
        return get_node(gcs_address, node_id)

    services.get_node = get_registered
    try:
        yield
    finally:
        services.get_node = get_node


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Ray takes none of our signals as it starts: a stop that came then broke it off, and ended this process by abort.

    It sets a handler in Python, and one in C++ while it connects. Until that is undone signals wait.
    """
    import ray._private.utils
    from ray._private import worker

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    set_handler, connect = ray._private.utils.set_sigterm_handler, worker.connect

    def connect_unheard(*rest: Any, **options: Any) -> None:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not None}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)
        try:
            connect(*rest, **options)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    ray._private.utils.set_sigterm_handler = lambda handler: None
    worker.connect = connect_unheard
    try:
        yield
    finally:
        ray._private.utils.set_sigterm_handler, worker.connect = set_handler, connect


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray prints a warning of its own accord while it starts; ours is the console."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
