"""The league: matchmaking between players, and the daemon that runs it. Python users start with `load_policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from league.config.component_options import build_component
from league.core.state.registry import use_loaders
from league.envs.plugins import load, load_admitted
from league.version import __version__

if TYPE_CHECKING:
    from league.deploy.serving.opponent import as_opponent as as_opponent
    from league.policies.exact.load_policy import load_policy as load_policy

__all__ = ["__version__", "as_opponent", "load_policy"]


use_loaders(built_in=load, own=load_admitted, build=build_component)


def __getattr__(name: str) -> object:
    # Loading brings in torch, which `import league` (and with it every command) must not wait for.
    if name == "load_policy":
        from league.policies.exact.load_policy import load_policy

        return load_policy
    if name == "as_opponent":
        from league.deploy.serving.opponent import as_opponent

        return as_opponent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
