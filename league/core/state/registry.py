"""Which plug-ins fill the core's swap points: literal tables of names, and how an entry is loaded."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping

MATCHMAKERS: Mapping[str, str] = {
    "main_agent": "league.core.matchmaking.roles:MAIN_AGENT",
    "main_exploiter": "league.core.matchmaking.roles:MAIN_EXPLOITER",
    "league_exploiter": "league.core.matchmaking.roles:LEAGUE_EXPLOITER",
    "self_play": "league.core.matchmaking.matchmakers:SELF_PLAY",
    "fictitious": "league.core.matchmaking.matchmakers:FICTITIOUS",
    "window": "league.core.matchmaking.matchmakers:WINDOW",
    "quality": "league.core.matchmaking.matchmakers:QUALITY",
    "meta_nash": "league.core.matchmaking.matchmakers:META_NASH",
    "even_odds": "league.core.matchmaking.matchmakers:EVEN_ODDS",
    "fixed_opponents": "league.core.matchmaking.matchmakers:FIXED_OPPONENTS",
}
"""Name -> "module:attribute" of a `league.core.matchmaking.roles.Matchmaker`; a built-in role is the name of its
matchmaker."""

GATES: Mapping[str, str] = {
    "posterior": "league.core.gates.posterior_gate:posterior",
    "threshold": "league.core.gates.gates:threshold",
}
"""Name -> "module:attribute" of a `league.core.gates.gates.Gate`."""

PBT_SELECTIONS: Mapping[str, str] = {
    "truncation": "league.core.pbt.pbt_selection:truncation",
    "elo_gap": "league.core.pbt.pbt_selection:elo_gap",
    "tournament": "league.core.pbt.pbt_selection:tournament",
}
"""Name -> "module:attribute" of a `league.core.pbt.pbt_selection.Selection`."""

AUTO = "auto"
"""What a user writes to leave the choice of a solver to the number of sides."""

SOLVERS: Mapping[str, str] = {
    "nash": "league.policies.nash_lp:nash",
    "regret_matching": "league.core.metagame.solvers:regret_matching",
    "replicator": "league.core.metagame.solvers:replicator",
}
"""Name -> "module:attribute" of a `league.core.metagame.solvers.Solver`. The linear program lies outside the core with
the package that solves it, and is loaded only where it is asked for."""

PRESETS: Mapping[str, str] = {
    "alphastar": "league.core.state.presets:alphastar",
    "openai_five": "league.core.state.presets:openai_five",
    "self_play": "league.core.state.presets:self_play",
    "fictitious": "league.core.state.presets:fictitious",
    "window": "league.core.state.presets:window",
    "psro": "league.core.state.presets:psro",
    "pbt": "league.core.state.presets:pbt",
    "exploit": "league.core.state.presets:exploit",
}
"""Name -> "module:attribute" of a `league.core.state.presets.Preset`."""


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
