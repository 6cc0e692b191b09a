"""A Ray to run on: one of our own on this machine, or the user's. Whatever happens to us, ours does not outlive us."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from league.config.ray_address import AUTO, CLIENT, OWN
from league.errors import LeagueError, RayHeadLost, RayUnguarded, RayUnreachable
from league.hosts.on_ray import idle_agent, worker_request
from league.hosts.on_ray.fork_server import HostForks
from league.hosts.on_ray.nodes.shipped_files import runtime_env
from league.http.socket_folder import folder_for_sockets
from league.processes.child_process import run_within
from league.wording import error_line, last_line

logger = logging.getLogger(__name__)

PROBE_S = 1.0
"""A dead address is noticed by a plain connection in this time; Ray itself would try for 40 seconds."""

LOCAL_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "OMP_NUM_THREADS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_max_direct_call_object_size": str(2 * 1024 * 1024),
    "RAY_task_events_report_interval_ms": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_event_stats": "0",
}
"""Set before Ray starts: no statistics leave the machine, workers run at normal priority with one thread each.

RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER makes Ray take 127.0.0.1 for the address of its node, on every system: all of its
processes listen there alone. `ray.init(_node_ip_address="127.0.0.1")` would not: Ray puts the public address in its
place.

Where Ray gives up the first workers, its driver waits for them forever and takes no Ctrl-C: they have five minutes.

The last four spare Ray's own processes nine tenths of their work. Chunks and weights (100 KB and more) travel in its
messages, not through its store; nobody looks at the events and metrics of a Ray of our own."""

SOCKET_PATH = "/lg-4194304-abcdef/r/session_2026-11-27_12-00-00_000000_4194304/sockets/plasma_store"
"""A path of Ray below the folder for temporary files, as long as it can be."""

LOOPBACK = "127.0.0.1"
ASK_DEADLINE_S = 30.0
"""Longest wait for a cluster's answer to a client without a token; most of it is the import of Ray."""

ASK_WITHOUT_TOKEN = """
import sys
from ray import exceptions
from ray._raylet import GcsClient
try:
    GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, timeout=10)
except exceptions.AuthenticationError:
    sys.exit(3)
"""
ASK_AS_CLIENT = """
import sys
import grpc
from ray.core.generated import ray_client_pb2 as messages, ray_client_pb2_grpc as services
ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
try:
    server = services.RayletDriverStub(grpc.insecure_channel(sys.argv[1]))
    server.ClusterInfo(ping, timeout=10, metadata=(("client_id", "probe"),))
except grpc.RpcError as error:
    sys.exit(3 if error.code() is grpc.StatusCode.UNAUTHENTICATED else str(error.details()))
"""
"""The same question to the server of Ray Clients."""

REFUSED = 3
"""Exit code of these programs where the cluster demands a token; 0 where it answers any client."""


class Cluster:
    """The connection to Ray.

    Args:
      address: "local" for a Ray of our own; else host:port, ray://host:port, or "auto" for the one on this machine.
      num_hosts: actors that must find room.
      object_store_mb: shared memory of a Ray of our own, MiB.
      num_gpus: of a Ray of our own, None for those that it finds; tests pretend some.
      allow_tokenless: whether to join a cluster that takes commands from any client.
      own_names: code of the user's own that hosts load; its files travel to the machines of a cluster.

    Fields:
      has_head: False once `check_head` has found the control store dead.
    """

    def __init__(
        self,
        address: str,
        *,
        num_hosts: int,
        object_store_mb: int,
        num_gpus: int | None = None,
        allow_tokenless: bool = False,
        own_names: tuple[str, ...] = (),
    ) -> None:
        self._address = address
        self._own_names = own_names
        self._allow_tokenless = allow_tokenless
        self._num_hosts = num_hosts
        self._object_store_mb = object_store_mb
        self._num_gpus = num_gpus
        self.folder: Path | None = None
        self.has_head = True
        self._head: subprocess.Popen[bytes] | None = None
        if address == OWN:
            stem = f"lg-{os.getpid()}-{secrets.token_hex(3)}"
            self.folder = folder_for_sockets(len(SOCKET_PATH)) / stem
        self._fork_server: HostForks | None = None
        self._has_begun = False

    def start(self) -> None:
        """Connect.

        Raises:
          RayUnreachable: no cluster answers. RayUnguarded: it demands no token, and that is not allowed.
        """
        from ray._private import auto_init_hook, worker

        auto_init_hook.enable_auto_connect = False  # a call after the connection is lost must not start another Ray
        worker.print_to_stdstream = _to_the_log  # what Ray says of a process or machine that died: pages of its state
        if self._address == OWN:
            self._start_local()
        else:
            self._connect()

    def close(self) -> None:
        """Disconnect, and end a Ray of our own; may be called twice, and before the start."""
        import ray

        if self._has_begun and ray.is_initialized():
            ray.shutdown()
        if self._fork_server is not None:
            self._fork_server.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def check_head(self) -> bool:
        """Returns whether the control store of a Ray of our own lives; that of a cluster is its operator's affair.

        Without it Ray ends this process after a minute. Until then hosts can be asked, and nothing else be done.

        Raises:
          RayHeadLost: it was found dead just now.
        """
        if self.has_head and self._head is not None and self._head.poll() is not None:
            self.has_head = False
            raise RayHeadLost
        return self.has_head

    @property
    def is_own(self) -> bool:
        """True for a Ray of our own, whose processes are all on this machine."""
        return self.folder is not None

    def require_one_machine(self) -> None:
        """Raises LeagueError where the hosts may be on several machines, for a run with an inference host."""
        if not self.is_own:
            raise LeagueError(
                "actors.inference: central shares memory between the processes of one machine, and this run joins a "
                "Ray cluster; use actors.inference: local, or runtime.address: local"
            )

    def _start_local(self) -> None:
        os.environ.update(LOCAL_ENVIRONMENT)
        import ray
        from ray._private import ray_constants

        ray_constants.ENABLE_RAY_CLUSTER = False  # what the environment says, where Ray was imported before
        assert self.folder is not None
        self.folder.mkdir(mode=0o700)
        if sys.platform == "linux":  # elsewhere what was imported may have started threads
            self._fork_server = HostForks(self.folder)
        with _private_files(), _quiet(), _few_processes(), _forked_workers(self._fork_server), _own_signals():
            self._has_begun = True
            ray.init(
                address="local",
                num_cpus=self._num_hosts,
                num_gpus=self._num_gpus,
                include_dashboard=False,
                object_store_memory=self._object_store_mb * 1024 * 1024,
                log_to_driver=False,
                logging_level="CRITICAL",
                # Ray opens its folder to all, so it lies in a closed one; short, as socket paths end at 107 bytes.
                _temp_dir=str(self.folder / "r"),
            )
        self._head = ray._private.worker._global_node.all_processes["gcs_server"][0].process
        address = ray.util.get_node_ip_address()
        if address != LOOPBACK:
            raise RayUnguarded(
                f"Ray {ray.__version__} listens on {address} and not on {LOOPBACK} alone: install the version of"
                " Ray that this program names."
            )

    def _connect(self) -> None:
        import ray

        address = _address_here() if self._address == AUTO else self._address
        _require_listener(address)
        if not self._allow_tokenless and not demands_token(address):
            raise RayUnguarded(
                f"The Ray cluster at {address} asks for no token: whoever reaches it can run commands on it. "
                "Start it with RAY_AUTH_MODE=token, or take the risk with `-s runtime.allow_tokenless=true`"
                " (`--allow-tokenless` of a tournament)."
            )
        try:
            with tempfile.TemporaryDirectory(prefix="lgs-") as copies, _own_signals():
                env = runtime_env(self._own_names, Path(copies), os.environ)
                self._has_begun = True
                ray.init(address=address, runtime_env=env, log_to_driver=False, logging_level="CRITICAL")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RayUnreachable(address, f"{error_line(error)}; the token may be missing or wrong") from error


def _address_here() -> str:
    """The address of the cluster on this machine, as Ray finds it.

    Raises:
      RayUnreachable: it finds none.
    """
    from ray._private.services import canonicalize_bootstrap_address

    found = canonicalize_bootstrap_address(AUTO)
    if found is None:
        raise RayUnreachable(AUTO, "Ray knows of no cluster on this machine")
    return str(found)


def _require_listener(address: str) -> None:
    """Raise RayUnreachable where nobody listens, or where a Ray Client lacks its package."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S):
            pass
    except (OSError, ValueError) as error:
        raise RayUnreachable(address, str(error) or type(error).__name__) from error
    if address.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
        raise RayUnreachable(address, 'a Ray Client needs the package grpcio: pip install "ray[client]"')


def demands_token(address: str) -> bool:
    """True if the cluster at an address refuses clients without a token.

    Asked by a process of its own: how Ray proves who it is holds for the whole of a process.

    Raises:
      RayUnreachable: it gave no answer at all.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    program = ASK_AS_CLIENT if address.startswith(CLIENT) else ASK_WITHOUT_TOKEN
    try:
        asked = run_within(
            [sys.executable, "-c", program, address.removeprefix(CLIENT)],
            timeout_s=ASK_DEADLINE_S,
            env={**environment, "RAY_AUTH_MODE": "disabled"},
        )
    except subprocess.TimeoutExpired as error:
        raise RayUnreachable(address, f"no answer within {ASK_DEADLINE_S:g} s") from error
    if asked.returncode not in (0, REFUSED):
        raise RayUnreachable(address, last_line(asked.stderr.decode(errors="replace")) or "it gave no answer")
    return asked.returncode == REFUSED


def _to_the_log(message: Mapping[str, Any], ignore_prefix: bool) -> None:
    """Log the first line of a message of Ray's, which calls this so."""
    lines = str((message.get("lines") or [""])[0]).strip().splitlines()
    if lines:
        logger.info("Ray: %s", lines[0][:300])


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
def _own_signals() -> Iterator[None]:
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
