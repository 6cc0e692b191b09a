"""The Ray that a run uses: `runtime.address` together with the environment variable RAY_ADDRESS."""

from __future__ import annotations

import re
from collections.abc import Mapping

from league.errors import LeagueError

AUTO, OWN = "auto", "local"
CLIENT = "ray://"
"""Prefix of the address of a Ray Client server."""

_HOST_PORT = re.compile(r"(ray://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


def is_ray_address(text: str) -> bool:
    """True for "auto", "local", "host:port" and "ray://host:port"."""
    return text in (AUTO, OWN) or _HOST_PORT.fullmatch(text) is not None


def ray_address(configured: str, environment: Mapping[str, str]) -> str:
    """The Ray to use: "local" for one of the run's own, "auto" for the one that Ray finds on this machine, else an
    address.

    Args:
      configured: `runtime.address`; "auto" leaves it to RAY_ADDRESS, which a Ray job has, and to "local" without that.
    Raises:
      LeagueError: RAY_ADDRESS is none.
    """
    if configured != AUTO:
        return configured
    named = environment.get("RAY_ADDRESS", "").strip() or OWN
    if named.startswith(("http://", "https://")):
        raise LeagueError(
            f"RAY_ADDRESS is {named}, the dashboard, to which jobs are submitted. Submit the command with `ray job "
            "submit`, or name the cluster itself as HOST:PORT or ray://HOST:PORT (or `runtime.address: local`)."
        )
    if not is_ray_address(named):
        raise LeagueError(f"RAY_ADDRESS is {named!r}, which is neither HOST:PORT nor ray://HOST:PORT.")
    return named


def joins_cluster(configured: str, environment: Mapping[str, str]) -> bool:
    """True where hosts may run on other machines. Raises as `ray_address`."""
    return ray_address(configured, environment) != OWN
