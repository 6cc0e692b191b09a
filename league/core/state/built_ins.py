"""The registry of the core's swap points: literal tables of names, and loading an entry."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from league.envs.component_choice import Component, given_options, kind_of
from league.higher_wings import SOLVERS as SOLVERS_ABOVE

MATCHMAKERS: Mapping[str, str] = {
    "main_agent": "league.core.matchmaking.roles:MainAgent",
    "main_exploiter": "league.core.matchmaking.roles:MainExploiter",
    "league_exploiter": "league.core.matchmaking.roles:LeagueExploiter",
    "self_play": "league.core.matchmaking.matchmakers:SelfPlay",
    "fictitious": "league.core.matchmaking.matchmakers:Fictitious",
    "window": "league.core.matchmaking.matchmakers:Window",
    "quality": "league.core.matchmaking.matchmakers:Quality",
    "meta_nash": "league.core.matchmaking.matchmakers:MetaNash",
    "even_odds": "league.core.matchmaking.matchmakers:EvenOdds",
    "fixed_opponents": "league.core.matchmaking.matchmakers:FixedOpponents",
    "generator": "league.core.matchmaking.generator:Generator",
}
"""Name -> "module:attribute" of a `league.core.matchmaking.roles.Matchmaker`; a built-in role is the name of its
matchmaker."""

GATES: Mapping[str, str] = {
    "posterior": "league.core.gates.posterior_gate:PosteriorGate",
    "threshold": "league.core.gates.gates:ThresholdGate",
}
"""Name -> "module:attribute" of a `league.core.gates.gates.Gate`."""

PBT_SELECTIONS: Mapping[str, str] = {
    "truncation": "league.core.pbt.pbt_selection:Truncation",
    "elo_gap": "league.core.pbt.pbt_selection:EloGap",
    "tournament": "league.core.pbt.pbt_selection:BinaryTournament",
    "weighted_mean": "league.core.pbt.pbt_selection:WeightedMean",
}
"""Name -> "module:attribute" of a `league.core.pbt.pbt_selection.PbtSelection`."""

AUTO = "auto"
"""The name that leaves the choice of a solver to the number of sides."""

SOLVERS: Mapping[str, str] = {
    **SOLVERS_ABOVE,
    "regret_matching": "league.core.metagame.solvers:regret_matching",
    "replicator": "league.core.metagame.solvers:replicator",
}
"""Name -> "module:attribute" of a `league.core.metagame.solvers.Solver`."""

PRESETS: Mapping[str, str] = {
    "alphastar": "league.core.state.presets:alphastar",
    "openai_five": "league.core.state.presets:openai_five",
    "self_play": "league.core.state.presets:self_play",
    "fictitious": "league.core.state.presets:fictitious",
    "window": "league.core.state.presets:window",
    "psro": "league.core.state.presets:psro",
    "pbt": "league.core.state.presets:pbt",
    "cross_play": "league.core.state.presets:cross_play",
    "exploit": "league.core.state.presets:exploit",
}
"""Name -> "module:attribute" of a `league.core.state.presets.Preset`."""


Options = dict[str, Any]
"""Options of a component as JSON holds them. Their types are the fields of the component, which is a dataclass."""


KeyPath = tuple[str | int, ...]
Load = Callable[[str], object]
Build = Callable[[type, Options], object]
_LOADERS: dict[str, Callable[..., object]] = {}


class ComponentOptionsError(ValueError):
    """Options that a component does not take. problems: (path of the key, what is wrong with it) each."""

    def __init__(self, problems: Sequence[tuple[KeyPath, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(": ".join([*filter(None, [dotted(path)]), text]) for path, text in problems))

    def under(self, *path: str | int) -> ComponentOptionsError:
        """The same, with the path of the section that holds the options before each key."""
        return ComponentOptionsError([((*path, *key), text) for key, text in self.problems])


def dotted(path: KeyPath) -> str:
    """A path of keys as a user writes it."""
    return ".".join(map(str, path))


def use_loaders(*, built_in: Load, own: Load, build: Build) -> None:
    """Set how a name becomes an object; the core imports nothing by name itself.

    Args:
      built_in: takes the "module:attribute" of a table above.
      own: takes a name of the user's own, and refuses it where nobody has trusted it.
      build: makes a component of its dataclass and options, or raises `ComponentOptionsError` with every problem.
    """
    _LOADERS.update(built_in=built_in, own=own, build=build)
    _loaded.cache_clear()
    _built.cache_clear()


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


def make(registry: Mapping[str, str], choice: Component, *, what: str, default: str = "") -> object:
    """The component of a name, with its options; one object for equal options.

    Args:
      default: name where none is given.
    Raises:
      ComponentOptionsError: it does not take the options.
      ValueError: unknown name, it cannot be loaded, or it is no dataclass.
    """
    name = kind_of(choice, default)
    component = load(registry, name, what=what)
    if not isinstance(component, type) or not dataclasses.is_dataclass(component):
        raise ValueError(
            f"{what} {name!r} is no dataclass; make it a class with @dataclass, whose fields are its options"
        )
    return _built(component, json.dumps(given_options(choice), sort_keys=True, default=str))


def completed(registry: Mapping[str, str], choice: Component, *, what: str, default: str = "") -> Options:
    """A mapping of the kind and of every option, with the defaults of those that were not given.

    The options of a component of the user's own stay as they are: reading a run must not run code from outside.

    Raises:
      ComponentOptionsError: the component does not take them.
    """
    name = kind_of(choice, default)
    if name not in registry:
        return {"kind": name, **given_options(choice)}
    return {"kind": name, **options_of(make(registry, choice, what=what, default=default))}


def options_of(component: object) -> Options:
    """All options of a component, as JSON holds them."""
    plain = _plain(component)
    assert isinstance(plain, dict), f"{component!r} is no dataclass"
    return plain


@functools.lru_cache(maxsize=4096)  # asked for at every lease; tuning draws values for ever
def _built(component: type, options: str) -> object:
    return _LOADERS["build"](component, json.loads(options))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value) if item.init}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value
