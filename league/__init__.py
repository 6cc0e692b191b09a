"""The league: matchmaking between players, and the daemon that runs it. Python users start with `load_policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from league.core.state.registry import Options, use_loaders
from league.version import __version__

if TYPE_CHECKING:
    from league.deploy.serving.opponent import as_opponent as as_opponent
    from league.policies.exact.load_policy import load_policy as load_policy

__all__ = ["__version__", "as_opponent", "load_policy"]


def _load(name: str) -> object:
    from league.envs.plugins import load

    return load(name)


def _load_admitted(name: str) -> object:
    from league.envs.plugins import load_admitted

    return load_admitted(name)


def _build(component: type, options: Options) -> object:
    from league.config.component_options import build_component

    return build_component(component, options)


# Every import of a part of this package passes here, also that of a bare learner: nothing else is imported yet.
use_loaders(built_in=_load, own=_load_admitted, build=_build)


def __getattr__(name: str) -> object:
    # Loading brings in torch, which `import league` (and with it every command) must not wait for.
    if name == "load_policy":
        from league.policies.exact.load_policy import load_policy

        return load_policy
    if name == "as_opponent":
        from league.deploy.serving.opponent import as_opponent

        return as_opponent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
