"""Choices of settings with their reasons, and the draft of a configuration that they fill in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from league.agents.learner.algorithms.config import ALGORITHM_OPTIONS
from league.agents.learner.config import DEFAULT_ALGORITHM
from league.config.auto.situation import Situation
from league.config.dotted_keys import is_place, value_at
from league.config.run_config import RunConfig, config_plain
from league.envs.protocol import EnvConfig

AUTO = "auto"
"""Text that a user writes for a setting that is to be chosen."""

ALGORITHM = "learner.algorithm"

PRESET_PLAYERS = 4
"""Learning players of a preset, about."""


@dataclass(frozen=True)
class AutoValue:
    """One setting that was chosen.

    Fields:
      key: dotted; a number stands for the place in a list.
      value: plain, as in YAML.
      reason: a few words for the user.
    """

    key: str
    value: object
    reason: str


class Draft:
    """A configuration in the making: given values, then chosen ones, then the defaults of the records.

    A given value is never replaced, nor is one chosen earlier.

    Args:
      given: plain values of the user.
    """

    def __init__(self, given: Mapping[str, object]) -> None:
        self._plain: dict[str, object] = copy.deepcopy(dict(given))
        self._defaults = config_plain(RunConfig(env=EnvConfig("")))
        self._choices: dict[str, AutoValue] = {}
        self._open_algorithm()

    @property
    def plain(self) -> dict[str, object]:
        """The given and chosen values."""
        return self._plain

    @property
    def choices(self) -> tuple[AutoValue, ...]:
        """Everything that was chosen, in order."""
        return tuple(self._choices.values())

    def has(self, key: str) -> bool:
        """True if a value was given or chosen."""
        return value_at(self._plain, key)[0]

    def value(self, key: str) -> object:
        """The value as it stands: given, chosen, or the default of its record; None for an unknown key."""
        has, value = value_at(self._plain, key)
        return value if has else value_at(self._defaults, key)[1]

    def number(self, key: str) -> float:
        """The value of a key that holds a number; its default where something else is given, which is refused later."""
        for source in (self._plain, self._defaults):
            value = value_at(source, key)[1]
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return 0.0

    def whole(self, key: str) -> int:
        """As `number`, for a key that holds an integer."""
        return max(int(self.number(key)), 1)

    def groups(self) -> list[Mapping[str, object]]:
        """The groups of players as given or chosen; empty where a preset makes them."""
        value = value_at(self._plain, "league.players")[1]
        return [group for group in value if isinstance(group, Mapping)] if isinstance(value, list) else []

    def num_players(self) -> int:
        """Learning players of all groups; where a preset makes them, `PRESET_PLAYERS`."""
        return sum(count_of(group) for group in self.groups()) or PRESET_PLAYERS

    def algorithm_takes(self, kind: str) -> bool:
        """True if a registered algorithm has every option that is given."""
        record, given = ALGORITHM_OPTIONS.get(kind), value_at(self._plain, ALGORITHM)[1]
        names = set(given) - {"kind"} if isinstance(given, Mapping) else set()
        return record is not None and names <= {field.name for field in fields(record)}

    def take(self, choices: Iterable[AutoValue]) -> None:
        """Put choices in the places that are still open."""
        for choice in choices:
            if self._fits(choice.key) and not self.has(choice.key) and _put(self._plain, choice.key, choice.value):
                self._choices[choice.key] = choice

    def _fits(self, key: str) -> bool:
        """False for an option that the algorithm does not have."""
        if not key.startswith(f"{ALGORITHM}.") or key == f"{ALGORITHM}.kind":
            return True
        kind = self.value(f"{ALGORITHM}.kind") or DEFAULT_ALGORITHM
        record = ALGORITHM_OPTIONS.get(str(kind))
        return record is not None and key.rpartition(".")[2] in {field.name for field in fields(record)}

    def _open_algorithm(self) -> None:
        """Write an algorithm that is given by its name as a mapping, to which options can be added."""
        learner = self._plain.get("learner")
        if isinstance(learner, dict) and isinstance(learner.get("algorithm"), str):
            learner["algorithm"] = {"kind": learner["algorithm"]}


def count_of(group: Mapping[str, object]) -> int:
    """Players of a group."""
    count = group.get("count", 1)
    return count if isinstance(count, int) and count > 0 else 1


Rule = Callable[[Situation, Draft], Iterator[AutoValue]]
"""Chooses a group of settings. Its choices are taken one by one, so that it may read its earlier ones in the draft."""


def without_auto(plain: Mapping[str, object], known: Iterable[tuple[str, ...]]) -> tuple[dict[str, object], list[str]]:
    """The values that are really given, and the keys at which `auto` stands.

    A key whose own default is "auto" keeps it: there it is a value of its record.

    Args:
      known: paths of all keys, "*" for the elements of a list.
    """
    defaults, paths, found = config_plain(RunConfig(env=EnvConfig(""))), set(known), list[str]()

    def kept(value: object, path: tuple[str, ...]) -> object:
        if isinstance(value, Mapping):
            return {key: kept(item, (*path, str(key))) for key, item in value.items() if not is_open(item, path, key)}
        if isinstance(value, list):
            return [kept(item, (*path, str(place))) for place, item in enumerate(value)]
        return value

    def is_open(item: object, path: tuple[str, ...], key: object) -> bool:
        here = (*path, str(key))
        generic = tuple("*" if is_place(part) else part for part in here)
        dotted = ".".join(here)
        if item != AUTO or generic not in paths or value_at(defaults, dotted)[1] == AUTO:
            return False
        found.append(dotted)
        return True

    given = kept(plain, ())
    assert isinstance(given, dict)
    return given, found


def _put(plain: dict[str, object], key: str, value: object) -> bool:
    """Set a value, making the sections on the way; False if something else stands in the way."""
    here: object = plain
    *path, last = key.split(".")
    for part in path:
        if isinstance(here, dict):
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
        elif isinstance(here, list) and is_place(part) and int(part) < len(here):
            here = here[int(part)]
        else:
            return False
    if not isinstance(here, dict):
        return False
    here[last] = value
    return True
