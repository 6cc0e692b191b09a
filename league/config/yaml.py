"""Configuration text to plain values and back: a small, safe YAML, with limits checked before anything is built.

It differs from YAML 1.1 where that surprises: `1e6` is a number, `on`, `off`, `yes`, `no`, `12:30` and dates are text,
a key given twice is an error, and there are no tags.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import yaml

from league.errors import ConfigError

MAX_CHARACTERS = 1 << 18
MAX_DEPTH = 16
ONE_LINE = MAX_CHARACTERS
"""Width of the text that is written: a value stays in the line of its key, behind which its reason may stand."""
MAX_VALUES = 20_000
"""Limit of values after every alias is written out, so that a few lines cannot grow into gigabytes."""


class _Resolvers(yaml.resolver.BaseResolver):
    """The plain values below, and no others."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  yaml's own class table


class _DistinctKeys(yaml.constructor.SafeConstructor):
    """Builds mappings whose keys are distinct texts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """As of SafeConstructor, after a look at the keys."""
        keys = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key in keys:
                line = key_node.start_mark.line + 1
                what = "a key must be a word" if key is None else f"the key {key!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, f"{what} (line {line})", key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep=deep)


class _Loader(_Resolvers, _DistinctKeys, yaml.SafeLoader):
    """The loader whose messages people read."""


class FastLoader(_Resolvers, _DistinctKeys, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same in C where there is one: a change of a live run reads the configuration several times."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes text that YAML 1.1 or a loader of ours would take for something else, and writes numbers in one line."""


def _list_node(dumper: Any, values: Sequence[object]) -> yaml.Node:
    in_line = bool(values) and all(isinstance(value, int | float) for value in values)
    node: yaml.Node = dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=in_line or not values)
    return node


_Dumper.add_representer(list, _list_node)

_NUMBER_STARTS = list("-+0123456789.")
_PLAIN_VALUES = (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9_]*)$", _NUMBER_STARTS),
    (
        "float",
        r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$",
        _NUMBER_STARTS,
    ),
)
for _tag, _pattern, _starts in _PLAIN_VALUES:
    for _reader_or_writer in (_Resolvers, _Dumper):
        _reader_or_writer.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _starts)


def yaml_text(plain: object) -> str:
    """Plain values as YAML, which `parse_yaml` reads back equal."""
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=ONE_LINE)
    return text


def parse_yaml(text: str, *, source: str) -> object:
    """The plain value (dict, list, str, int, float, bool or None) that `text` says.

    Args:
      source: where the text came from, for the message.
    Raises:
      ConfigError: not YAML, a tag, a key given twice, or over one of the limits.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(source, [f"it has {len(text)} characters, at most {MAX_CHARACTERS} are read"])
    try:
        return _parsed(text, source, FastLoader)
    except (yaml.YAMLError, ValueError):
        return _explained(text, source)


def _explained(text: str, source: str) -> object:
    """Reads the text once more, so that the error is in the words of the loader for people."""
    try:
        return _parsed(text, source, _Loader)
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(source, [f"{where}{error.problem or error.context}"]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(source, [str(error)]) from error


def _parsed(text: str, source: str, kind: type[Any]) -> object:
    _check_depth(text, source, kind)
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_values(node, {}, source)
        plain: object = loader.construct_document(node)
        return plain
    finally:
        loader.dispose()


def _check_depth(text: str, source: str, kind: type[Any]) -> None:
    """Refuse deep nesting while reading events, before the recursive parts of the parser see it."""
    depth = 0
    for event in yaml.parse(text, Loader=kind):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = "" if event.start_mark is None else f"line {event.start_mark.line + 1}: "
                raise ConfigError(source, [f"{line}nested deeper than {MAX_DEPTH} levels"])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _count_values(node: yaml.Node, counts: dict[int, int | None], source: str) -> int:
    """Number of values under `node`, an aliased one counted as often as it is used. Each node is visited once."""
    known = counts.get(id(node), 0)
    if known is None:
        raise ConfigError(source, [f"line {node.start_mark.line + 1}: a value that contains itself"])
    if known:
        return known
    counts[id(node)] = None
    total = 1
    if isinstance(node, yaml.MappingNode):
        total += sum(
            _count_values(key, counts, source) + _count_values(value, counts, source) for key, value in node.value
        )
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_count_values(item, counts, source) for item in node.value)
    if total > MAX_VALUES:
        raise ConfigError(source, [f"line {node.start_mark.line + 1}: more than {MAX_VALUES} values"])
    counts[id(node)] = total
    return total
