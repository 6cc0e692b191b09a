"""A Ray to run on: one of our own on this machine, or the user's. Whatever happens to us, ours does not outlive us."""

from __future__ import annotations

import importlib.util
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from league.config.ray_address import AUTO, CLIENT, OWN
from league.errors import LeagueError, RayHeadLost, RayUnguarded, RayUnreachable
from league.hosts.on_ray.fork_server import HostForks
from league.hosts.on_ray.nodes.shipped_files import runtime_env
from league.hosts.on_ray.ray_start import changed_start, own_signals
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
        with changed_start(self._fork_server):
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
            with tempfile.TemporaryDirectory(prefix="lgs-") as copies, own_signals():
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
