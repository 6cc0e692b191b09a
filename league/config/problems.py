"""Turns what is wrong with a configuration into sentences: dotted path, value, and the nearest key that exists."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from league.config.dotted_keys import is_place
from league.config.yaml import parse_yaml
from league.core.state.built_ins import ComponentOptionsError, dotted
from league.errors import ConfigError

MAX_SHOWN = 60
_ALTERNATIVE = re.compile(r"str|dict\[.*\]")
_QUOTED = re.compile(r"'([^']*)'")


@dataclasses.dataclass(frozen=True)
class KnownPaths:
    """The keys that a configuration may have.

    Fields:
      types: path -> type of the value; an element of a list has the path part "*".
    """

    types: dict[tuple[str, ...], object]

    def keys_of(self, section: tuple[str, ...]) -> list[str]:
        """The keys of one section, in the order of the record."""
        return [path[-1] for path in self.types if path[:-1] == section]

    def named(self, key: str) -> list[str]:
        """Dotted paths of the keys of that name, wherever they are."""
        return [".".join(path) for path in self.types if path[-1] == key and "*" not in path]


def known_paths(record: type, *, options: Mapping[tuple[str, ...], Sequence[type]] | None = None) -> KnownPaths:
    """Every path under a record of records.

    Args:
      options: path of a component -> the records of options that registered components have there.
    """
    found = dict(_walk(record, ()))
    for path, records in (options or {}).items():
        for own in records:
            found.update(_walk(own, path))
    return KnownPaths(found)


def _walk(hint: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint)
        for item in dataclasses.fields(hint):
            yield (*path, item.name), hints[item.name]
            yield from _walk(hints[item.name], (*path, item.name))
    elif typing.get_origin(hint) in (tuple, list):
        element = typing.get_args(hint)[0]
        yield from _walk(element, (*path, "*"))
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for option in typing.get_args(hint):
            yield from _walk(option, path)


def validate(plain: dict[str, object], record: type, paths: KnownPaths) -> tuple[dict[str, object], list[str]]:
    """Turn the sections of a configuration into their records, and list all that is wrong with them.

    What is wrong is put aside and the rest looked at again, so that one mistake hides no other. The values returned
    are complete only where no problem is.

    Args:
      plain: section -> plain values.
      record: dataclass whose fields are the sections.
    Returns: (section -> validated value, problems).
    """
    values: dict[str, object] = {}
    problems = [_unknown_key((key,), paths) for key in plain if (key,) not in paths.types]
    for section in dataclasses.fields(record):
        if section.name in plain:
            hint = paths.types[(section.name,)]
            given = plain[section.name]
            value, found = _validated(hint, {} if given is None else given, section.name, paths)
            problems += found
            if value is not None:
                values[section.name] = value
        elif section.default is dataclasses.MISSING and section.default_factory is dataclasses.MISSING:
            problems.append(f"{section.name}: is missing")
    return values, problems


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[object]:
    """Building one takes longer than all that it then validates."""
    return TypeAdapter(hint)


def _validated(hint: Any, given: object, section: str, paths: KnownPaths) -> tuple[object, list[str]]:
    adapter = _adapter(hint)
    rest = {section: copy.deepcopy(given)}
    problems: list[str] = []
    while section in rest:
        try:
            return adapter.validate_python(rest[section]), problems
        except ValidationError as error:
            found = error.errors()
        located = dict(item for problem in found for item in _located(section, problem, paths))
        problems += located.values()
        for location in reversed(located):
            _put_aside(rest, location)
    return None, problems


def _located(section: str, problem: Any, paths: KnownPaths) -> list[tuple[tuple[str | int, ...], str]]:
    """Places and sentences of a problem that pydantic found; a record that builds components may have found several."""
    location, error = _location(section, problem), problem.get("ctx", {}).get("error")
    if isinstance(error, ComponentOptionsError):
        return [(path, f"{dotted(path)}: {text}") for path, text in error.under(*location).problems]
    return [(location, _sentence(problem, location, paths))]


def _location(section: str, problem: Any) -> tuple[str | int, ...]:
    """The path of a problem, without the alternatives of a name or mapping that were tried."""
    location = (section, *problem["loc"])
    return location[:-1] if _ALTERNATIVE.fullmatch(str(location[-1])) else location


def _put_aside(rest: dict[str, object], location: tuple[str | int, ...]) -> None:
    """Remove the innermost key on the path to a problem; a list goes whole, so that places in it keep their numbers."""
    holder, key = rest, str(location[0])
    target: object = rest
    for part in location:
        if isinstance(target, dict):
            holder, key = target, str(part)
            target = target.get(part)
        elif isinstance(target, list) and isinstance(part, int) and part < len(target):
            target = target[part]
        else:
            break
    if key in holder:
        del holder[key]
    else:
        rest.pop(str(location[0]), None)  # a missing key: the section cannot be made whole


def _sentence(problem: Any, location: tuple[str | int, ...], paths: KnownPaths) -> str:
    dotted = ".".join(str(part) for part in location)
    kind = problem["type"]
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return _unknown_key(location, paths)  # without its value, which may be a password in a wrong place
    if kind in ("missing", "missing_argument"):
        return f"{dotted}: is missing"
    value = _shown(problem["input"])
    if kind == "value_error":
        return f"{dotted}: {problem['ctx']['error']}"
    if kind == "literal_error":
        expected = problem["ctx"]["expected"]
        close = difflib.get_close_matches(str(problem["input"]), _QUOTED.findall(expected), n=1)
        hint = f" (nearest: {close[0]!r})" if close else ""
        return f"{dotted}: {value} is not {expected}{hint}"
    if kind in ("dataclass_type", "dataclass_exact_type"):
        keys = ", ".join(paths.keys_of(_generic(location)))
        return f"{dotted}: {value} is not a section; its keys are {keys}"
    if kind in ("tuple_type", "list_type"):
        return f"{dotted}: {value} is no list, write [{_entries(problem['input'])}]"
    message = problem["msg"]
    return f"{dotted}: {value} does not fit: {message[0].lower()}{message[1:]}"


def _entries(given: object) -> str:
    """The entries of the intended list; for a section with numbered keys, as PATH.0.KEY makes it, its values."""
    if isinstance(given, dict) and given and all(str(key).isdigit() for key in given):
        return ", ".join(_shown(value) for value in given.values())
    return _shown(given).strip("'")


def _unknown_key(location: tuple[str | int, ...], paths: KnownPaths) -> str:
    dotted = ".".join(str(part) for part in location)
    key = str(location[-1])
    section = _generic(location[:-1])
    siblings = paths.keys_of(section)
    deeper = [".".join(path) for path in paths.types if path[-1] == key and path[: len(section)] == section]
    if section and deeper and "*" not in deeper[0]:
        return f"{dotted}: unknown key here, did you mean {deeper[0]!r}?"
    close = difflib.get_close_matches(key, siblings, n=1) or [name for name in siblings if key.startswith(name)]
    if close:
        return f"{dotted}: unknown key, nearest is {close[0]!r}"
    names = sorted({path[-1] for path in paths.types})
    elsewhere = [dotted for name in difflib.get_close_matches(key, names, cutoff=0.8) for dotted in paths.named(name)]
    if elsewhere:
        return f"{dotted}: unknown key here, did you mean {elsewhere[0]!r}?"
    return f"{dotted}: unknown key, the keys here are {', '.join(siblings)}"


def _generic(location: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple("*" if isinstance(part, int) else part for part in location)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def apply_override(plain: dict[str, object], override: str) -> str | None:
    """Set one "dotted.key=value" in plain values, a number in the path being a place in a list.

    Returns: what is wrong with it, or None.
    """
    dotted, equals, text = override.partition("=")
    parts = dotted.strip().split(".")
    if not equals or not all(parts):
        return f"-s {override[:MAX_SHOWN]!r}: write it as dotted.key=value"
    try:
        value = parse_yaml(text, source=dotted)
    except ConfigError as error:
        return f"-s {dotted}: {'; '.join(error.problems)}"
    target: object = plain
    for depth, part in enumerate(parts[:-1]):
        if isinstance(target, dict):
            if target.get(part) is None:
                target[part] = {}
            target = target[part]
        else:
            target = _element(target, part)
        if not isinstance(target, dict | list):
            return f"-s {dotted}: {'.'.join(parts[: depth + 1])} holds no keys in the file; set it as a whole"
    last = parts[-1]
    if isinstance(target, dict):
        target[last] = value
    elif isinstance(target, list) and is_place(last) and int(last) < len(target):
        target[int(last)] = value
    else:
        return f"-s {dotted}: there is no place {last!r} in that list; set the whole list instead"
    return None


def json_schema(record: type) -> dict[str, Any]:
    """The JSON schema of a record of records."""
    return TypeAdapter(record).json_schema()


def _element(target: object, part: str) -> object:
    if isinstance(target, list) and is_place(part) and int(part) < len(target):
        return target[int(part)]
    return None
