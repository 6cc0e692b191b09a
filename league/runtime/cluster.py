"""A Ray to run on: one of our own on this machine, or the user's. Whatever happens to us, ours does not outlive us."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from league.errors import RayUnreachable

PROBE_S = 1.0
"""A dead address is noticed by a plain connection in this time; Ray itself would try for 40 seconds."""

LOCAL_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "OMP_NUM_THREADS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Set before Ray starts: no statistics leave the machine, workers run at normal priority with one thread each."""


class Cluster:
    """The connection to Ray.

    Args:
      address: "local" for a Ray of our own, else host:port.
      num_hosts: actors that must find room.
      object_store_mb: shared memory of a Ray of our own, MiB.
    """

    def __init__(self, address: str, *, num_hosts: int, object_store_mb: int) -> None:
        self._address = address
        self._num_hosts = num_hosts
        self._object_store_mb = object_store_mb
        self.folder: Path | None = None
        if address == "local":
            stem = f"lg-{os.getpid()}-{secrets.token_hex(3)}"
            self.folder = Path(tempfile.gettempdir()) / stem  # short, since socket paths end at 107 bytes

    def start(self) -> None:
        """Connect.

        Raises:
          RayUnreachable: no cluster answers.
        """
        if self._address == "local":
            self._start_local()
        else:
            self._connect()

    def close(self) -> None:
        """Disconnect, and end a Ray of our own; may be called twice."""
        import ray

        if ray.is_initialized():
            ray.shutdown()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def gpus_per_learner(self, num_learners: int) -> float:
        """The share of a GPU that each learner host may ask for; 0 where the cluster has none."""
        import ray

        return min(1.0, float(ray.cluster_resources().get("GPU", 0.0)) / num_learners)

    def _start_local(self) -> None:
        os.environ.update(LOCAL_ENVIRONMENT)
        import ray

        assert self.folder is not None
        self.folder.mkdir(mode=0o700)
        with _private_files(), _quiet():
            ray.init(
                address="local",
                num_cpus=self._num_hosts,
                include_dashboard=False,
                object_store_memory=self._object_store_mb * 1024 * 1024,
                log_to_driver=False,
                logging_level="CRITICAL",
                _temp_dir=str(self.folder),
            )

    def _connect(self) -> None:
        import ray

        host, _, port = self._address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=PROBE_S):
                pass
        except (OSError, ValueError) as error:
            raise RayUnreachable(self._address, str(error) or type(error).__name__) from error
        try:
            ray.init(address=self._address, log_to_driver=False, logging_level="CRITICAL")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RayUnreachable(self._address, f"{error}; the token may be missing or wrong") from error


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """Files made inside are for this user alone: Ray would leave its access token readable to all."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray prints a warning of its own accord while it starts; ours is the console."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
