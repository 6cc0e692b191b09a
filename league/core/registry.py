"""Which plug-ins fill the core's swap points: literal tables of names, and how an entry is loaded."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping

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


Load = Callable[[str], object]
_LOADERS: dict[str, Load] = {}


def use_loaders(*, built_in: Load, own: Load) -> None:
    """Set how a name becomes an object; the core imports nothing by name itself.

    Args:
      built_in: takes the "module:attribute" of a table above.
      own: takes a name of the user's own, and refuses it where nobody has trusted it.
    """
    _LOADERS.update(built_in=built_in, own=own)
    _loaded.cache_clear()


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
        f"no {what} {name!r}; nearest is {nearest[0]!r}, there are {known}, or give your own as module:attribute "
        "or path/file.py:attribute"
    )


def load(registry: Mapping[str, str], name: str, *, what: str) -> object:
    """The object behind a registered name or a name of the user's own.

    Raises:
      ValueError: unknown name, or it cannot be loaded.
    """
    check_name(registry, name, what=what)
    try:
        return _loaded("built_in", registry[name]) if name in registry else _loaded("own", name)
    except ValueError as error:
        raise ValueError(f"{what} {name!r} cannot be loaded: {error}") from error


@functools.cache  # asked for at every lease
def _loaded(loader: str, target: str) -> object:
    return _LOADERS[loader](target)
