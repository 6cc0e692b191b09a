"""The space of a sweep: dotted keys of the configuration, each with a range or a list of choices, in YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from league.config.auto.draft import without_auto
from league.config.loading import KNOWN, config_of, plain_config
from league.config.yaml import parse_yaml
from league.errors import ConfigError

FORMS = "{low: 1.0e-4, high: 1.0e-2, log: true} or a list of choices"
_RANGE_KEYS = {"low", "high", "log"}


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included; whole ones where both ends are. log: drawn by their logarithm."""

    low: float
    high: float
    log: bool

    @property
    def is_whole(self) -> bool:
        """True for whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class Choices:
    """Values to choose from, each as JSON."""

    values: tuple[str, ...]


Space = Mapping[str, Range | Choices]


def read_space(path: Path) -> dict[str, Range | Choices]:
    """The space in a file.

    Raises:
      ConfigError: with every problem at once.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), ["the file cannot be read"]) from error
    return space_of(text, source=str(path))


def space_of(text: str, *, source: str) -> dict[str, Range | Choices]:
    """The space in the text of a file. source: its name.

    Raises:
      ConfigError: with every problem at once.
    """
    plain = parse_yaml(text, source=source)
    if not isinstance(plain, dict) or not plain:
        raise ConfigError(source, [f"it holds no `dotted.key: ...` lines, each with {FORMS}"])
    space: dict[str, Range | Choices] = {}
    problems = []
    for key, value in plain.items():
        found = _dimension(value)
        if isinstance(found, str):
            problems.append(f"{key}: {found}")
        else:
            space[str(key)] = found
    if problems:
        raise ConfigError(source, problems)
    return space


def _dimension(value: object) -> Range | Choices | str:
    """One dimension, or what is wrong with it."""
    if isinstance(value, list):
        if len(value) < 2:
            return f"give at least two choices, not {len(value)}"
        choices = tuple(json.dumps(choice) for choice in value)
        return Choices(choices) if len(set(choices)) == len(choices) else "a choice stands twice"
    if not isinstance(value, dict) or not {"low", "high"} <= set(value) <= _RANGE_KEYS:
        return f"give {FORMS}"
    low, high, log = value["low"], value["high"], value.get("log", False)
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    if not numbers or not isinstance(log, bool):
        return "low and high are numbers, log is true or false"
    if not low < high:
        return f"low {low} must be below high {high}"
    if log and low <= 0:
        return f"low {low} must be above 0 where log is true"
    return Range(low, high, log)


def overrides_of(values: Mapping[str, object]) -> tuple[str, ...]:
    """Values of the dimensions as "dotted.key=value" settings. values: numbers, or choices as JSON."""
    return tuple(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items())


def check_space(space: Space, *, source: str, overrides: tuple[str, ...]) -> None:
    """Refuse a space with keys or values that the configuration cannot have.

    Args:
      source: configuration file, or the id of an env. overrides: of the command.
    Raises:
      ConfigError: with every problem of one end of the ranges, or of one of the choices.
    """
    path = Path(source)
    text = path.read_text(encoding="utf-8") if path.is_file() else json.dumps({"env": {"id": source}})
    folder = path.parent if path.is_file() else None
    most = max((len(found.values) for found in space.values() if isinstance(found, Choices)), default=2)
    for number in range(max(most, 2)):
        values = {key: _example(found, number) for key, found in space.items()}
        plain, problems = plain_config(
            text, source=source, overrides=(*overrides, *overrides_of(values)), folder=folder
        )
        given, _ = without_auto(plain, KNOWN.types)
        config_of(given, problems, source=source)


def _example(found: Range | Choices, number: int) -> object:
    """A value of a dimension: the low end, then the high one; or the choice of that number, at most the last."""
    if isinstance(found, Range):
        return found.high if number else found.low
    return found.values[min(number, len(found.values) - 1)]
