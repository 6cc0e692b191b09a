"""Configuration text with a comment behind every chosen value, and the way back from the comments to the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from league.config.dotted_keys import value_at
from league.config.run_config import RunConfig, config_plain, dump_config, paths_that_differ
from league.config.yaml import FastLoader, parse_yaml

MARK = "# auto: "
"""Begins the comment that gives the reason of a chosen value."""
SOURCE = "a configuration with reasons"
"""Names the text in a message."""


def dump_commented(config: RunConfig, reasons: Mapping[str, str]) -> str:
    """The configuration as `dump_config` writes it, with reasons as trailing comments.

    Args:
      reasons: dotted key -> reason, one line each. Keys that the text does not have are left out.
    """
    text = dump_config(config)
    lines = text.splitlines()
    for key, line, _ in _keys(text):
        if key in reasons:
            lines[line] = f"{lines[line]}  {MARK}{reasons[key]}"
    return "\n".join(lines) + "\n"


def reasons_in(text: str) -> dict[str, str]:
    """Dotted key -> reason, of every value with such a comment; empty for text that is no YAML mapping."""
    if MARK not in text:
        return {}
    lines = text.splitlines()
    found = {}
    try:
        for key, line, column in _keys(text):
            rest = lines[line][column:].strip()
            if rest.startswith(MARK):
                found[key] = rest.removeprefix(MARK)
    except yaml.YAMLError:
        return {}
    return found


def chosen_in(text: str) -> dict[str, tuple[object, str]]:
    """Dotted key -> value and reason, of every value with such a comment.

    Raises:
      ConfigError: it has such comments and goes beyond the limits of a configuration.
    """
    reasons = reasons_in(text)
    plain = parse_yaml(text, source=SOURCE) if reasons else None
    return {key: (value_at(plain, key)[1], reason) for key, reason in reasons.items()}


def recommented(config: RunConfig, text: str) -> str:
    """A changed configuration with the reasons of an earlier text, as far as the values are still those.

    Raises:
      ConfigError: the text is no configuration.
    """
    reasons = reasons_in(text)
    if not reasons:
        return dump_config(config)
    now, before = config_plain(config), parse_yaml(text, source=SOURCE)
    changed = paths_that_differ(before, now)
    kept = {
        key: reason
        for key, reason in reasons.items()
        if not any(f"{path}.".startswith(f"{key}.") or f"{key}.".startswith(f"{path}.") for path in changed)
    }
    return dump_commented(config, kept)


def _keys(text: str) -> Iterator[tuple[str, int, int]]:
    """(dotted key, line, column behind the value or, of a section or list in lines of its own, behind the colon)."""
    node = yaml.compose(text, Loader=FastLoader)
    if isinstance(node, yaml.MappingNode):
        yield from _keys_of(node, ())


def _keys_of(node: yaml.Node, path: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            line = key.end_mark.line
            is_short = value.start_mark.line == value.end_mark.line == line
            column = value.end_mark.column if is_short else key.end_mark.column + 1
            yield ".".join(here), line, column
            yield from _keys_of(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _keys_of(value, (*path, str(place)))
