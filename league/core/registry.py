"""Which plug-ins fill the core's swap points: literal tables of names, and the one way to load an entry."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Mapping

MATCHMAKERS: Mapping[str, str] = {
    "main_agent": "league.core.roles:MAIN_AGENT",
    "main_exploiter": "league.core.roles:MAIN_EXPLOITER",
    "league_exploiter": "league.core.roles:LEAGUE_EXPLOITER",
    "self_play": "league.core.matchmakers:SELF_PLAY",
    "fictitious": "league.core.matchmakers:FICTITIOUS",
    "window": "league.core.matchmakers:WINDOW",
    "quality": "league.core.matchmakers:QUALITY",
    "meta_nash": "league.core.matchmakers:META_NASH",
    "even_odds": "league.core.matchmakers:EVEN_ODDS",
    "guests": "league.core.matchmakers:GUESTS",
}
"""Name -> "module:attribute" of a `league.core.roles.Matchmaker`; a built-in role is the name of its matchmaker."""

GATES: Mapping[str, str] = {
    "posterior": "league.core.posterior_gate:posterior",
    "threshold": "league.core.gates:threshold",
}
"""Name -> "module:attribute" of a `league.core.gates.Gate`."""

TUNERS: Mapping[str, str] = {
    "truncation": "league.core.tuners:truncation",
    "elo_gap": "league.core.tuners:elo_gap",
    "tournament": "league.core.tuners:tournament",
}
"""Name -> "module:attribute" of a `league.core.tuners.Tuner`."""

SOLVERS: Mapping[str, str] = {
    "nash": "league.linear_program:nash",
    "regret_matching": "league.core.solvers:regret_matching",
    "replicator": "league.core.solvers:replicator",
}
"""Name -> "module:attribute" of a `league.core.solvers.Solver`. The linear program lies outside the core with the
package that solves it, and is loaded only where it is asked for."""

PRESETS: Mapping[str, str] = {
    "alphastar": "league.core.presets:alphastar",
    "openai_five": "league.core.presets:openai_five",
    "self_play": "league.core.presets:self_play",
    "fictitious": "league.core.presets:fictitious",
    "window": "league.core.presets:window",
    "psro": "league.core.presets:psro",
    "pbt": "league.core.presets:pbt",
    "exploit": "league.core.presets:exploit",
}
"""Name -> "module:attribute" of a `league.core.presets.Preset`."""


def check_name(registry: Mapping[str, str], name: str, *, what: str) -> None:
    """Accept a registered name or a "module:attribute" of the user's own.

    Raises:
      ValueError: neither; the message names the nearest registered name and all of them.
    """
    if name in registry or ":" in name:
        return
    nearest = difflib.get_close_matches(name, registry, n=1, cutoff=0.0)
    known = ", ".join(registry)
    raise ValueError(
        f"no {what} {name!r}; nearest is {nearest[0]!r}, there are {known}, or give your own as module:attribute"
    )


def load(registry: Mapping[str, str], name: str, *, what: str) -> object:
    """The object behind a registered name or a "module:attribute".

    Raises:
      ValueError: unknown name, or the module has no such attribute.
      ModuleNotFoundError: no such module.
    """
    check_name(registry, name, what=what)
    return _attribute(registry.get(name, name), what)


@functools.cache  # asked for at every lease
def _attribute(target: str, what: str) -> object:
    module_name, _, attribute = target.partition(":")
    module = importlib.import_module(module_name)
    if not hasattr(module, attribute):
        raise ValueError(f"{what} {target!r}: module {module_name} has no {attribute!r}")
    return getattr(module, attribute)
