"""The reference of the configuration, read from its records: every key with type, default and meaning."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass

import yaml

from league.config.dotted_keys import generic_key
from league.config.learner_options import CHOICES
from league.config.problems import json_schema
from league.config.run_config import RunConfig, dump_config
from league.core.state.built_ins import GATES, MATCHMAKERS, PBT_SELECTIONS, PRESETS, load
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.text_table import TextTable

LEARNER_OPTIONS = {".".join(path): choice.records for path, choice in CHOICES.items()}
CORE_OPTIONS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "league.players[].matchmaker": (MATCHMAKERS, "matchmaker"),
    "league.players[].gate.test": (GATES, "gate"),
    "league.pbt.selection": (PBT_SELECTIONS, "selection"),
}
"""Key that holds options -> registry of the components that have them, and what these are."""
_FIELDS = re.compile(r"^    Fields:\n(.*?)(?=^    \S|\Z)", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"(?:^|(?<=[.;] ))((?:\w+, )*\w+): ")

_INTRODUCTION = """# Configuration

Generated from the code by `python docs/generate.py`; a test compares the two.

A configuration is a YAML file. Only `env` must be given. `-s key=value` overrides a key for one run. An unknown key
is an error that names the nearest one.

`league config --explain KEY` prints one entry, `league config --default ENV_ID` a whole configuration and
`league config --schema` a JSON schema for editors. In a key, `[]` stands for an element of a list.
"""


@dataclass(frozen=True)
class KeyEntry:
    """One key of the configuration.

    Fields:
      key: dotted; `[]` stands for an element of a list.
      type: as a user would write it.
      default: in YAML; empty where the key must be given, and for a section.
      meaning: from the docstring of its record.
    """

    key: str
    type: str
    default: str
    meaning: str


def entries() -> list[KeyEntry]:
    """Every key of a configuration, in the order of its records' fields."""
    found = []
    for entry in _walk(RunConfig, ""):
        found.append(entry)
        if entry.key in LEARNER_OPTIONS:
            found += _options_of(entry.key, LEARNER_OPTIONS[entry.key])
        elif entry.key in CORE_OPTIONS:
            registry, what = CORE_OPTIONS[entry.key]
            loaded = {name: load(registry, name, what=what) for name in registry}
            found += _options_of(entry.key, {name: made for name, made in loaded.items() if isinstance(made, type)})
    return found


def explain(key: str) -> list[KeyEntry]:
    """The entry of one key, or all entries of a section.

    Args:
      key: dotted; an index, as in `league.players[0].role` or `league.players.0.role`, stands for any element.
    Raises:
      LeagueError: no such key; the message names the nearest.
    """
    wanted, known = generic_key(key), entries()
    for name in (wanted, wanted.removesuffix("[]")):  # elements of a list of numbers have no entries of their own
        found = [entry for entry in known if entry.key == name or entry.key.startswith((f"{name}.", f"{name}[]"))]
        if found:
            return found
    names = [entry.key for entry in known]
    near = [name for name in names if name.endswith(f".{wanted}")]
    near += [name for name in names if name.rpartition(".")[2] == wanted.rpartition(".")[2] and name not in near]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(near[:3])}?" if near else "; `league config` lists all keys."
    raise LeagueError(f"a configuration has no key {key!r}{hint}")


def entry_text(entry: KeyEntry) -> str:
    """An entry as two lines of text."""
    default = f", default {entry.default}" if entry.default else ""
    return f"{entry.key}: {entry.type}{default}\n    {entry.meaning}"


def defaults() -> list[str]:
    """One line for each key that is no section: `key = default`."""
    return [
        f"{entry.key} = {entry.default}" if entry.default else f"{entry.key} (must be given)"
        for entry in entries()
        if not entry.type.endswith("section")
    ]


def default_yaml(env_id: str) -> str:
    """A whole configuration of one game, as YAML; `parse_config` reads it back."""
    return dump_config(RunConfig(env=EnvConfig(env_id)))


def schema() -> str:
    """The JSON schema of a configuration."""
    return json.dumps(json_schema(RunConfig), indent=2)


def presets() -> list[tuple[str, str]]:
    """Name and summary of every registered population."""
    return [(name, _summary(load(PRESETS, name, what="preset"))) for name in PRESETS]


def markdown() -> str:
    """The reference as a page: a table per section."""
    sections: dict[str, list[KeyEntry]] = {}
    for entry in entries():
        sections.setdefault(entry.key.rpartition(".")[0], []).append(entry)
    lines = [_INTRODUCTION.rstrip()]
    for section, rows in sections.items():
        cells = [(f"`{row.key}`", row.type, f"`{row.default}`" if row.default else "", row.meaning) for row in rows]
        table = TextTable(("key", "type", "default", "meaning"), cells, range(4))
        lines += ["", f"## {section or 'Top level'}", "", *table.markdown()]
    return "\n".join(lines) + "\n"


def _walk(record: type, prefix: str) -> Iterator[KeyEntry]:
    hints = typing.get_type_hints(record)
    meanings = meanings_of(record)
    for item in dataclasses.fields(record):
        key, hint = f"{prefix}{item.name}", hints[item.name]
        inner, is_list = _record_in(hint)
        meaning = meanings.get(item.name, "").removesuffix("see there")
        if inner is not None and not meaning:
            meaning = _summary(inner).rstrip(".")
        yield KeyEntry(key, _type_text(hint), _default_text(item), re.sub(r"\bNone\b", "null", meaning))
        if inner is not None:
            yield from _walk(inner, f"{key}[]." if is_list else f"{key}.")


def _options_of(section: str, records: Mapping[str, type]) -> Iterator[KeyEntry]:
    """The options of the registered components that a key names, each once."""
    owners: dict[str, list[str]] = {}
    defaults: dict[str, dict[str, list[str]]] = {}
    found: dict[str, KeyEntry] = {}
    for kind, record in records.items():
        meanings = {name: text for base in reversed(record.__mro__[:-1]) for name, text in meanings_of(base).items()}
        for entry in _walk(record, f"{section}."):
            name = entry.key.rpartition(".")[2]
            found.setdefault(
                entry.key, dataclasses.replace(entry, meaning=meanings.get(name, "").replace("None", "null"))
            )
            owners.setdefault(entry.key, []).append(kind)
            defaults.setdefault(entry.key, {}).setdefault(entry.default, []).append(kind)
    for key, entry in found.items():
        all_have_it = len(owners[key]) == len(records)
        of = "" if all_have_it else f"Of {_listed(owners[key])}: "
        others = [(default, kinds) for default, kinds in defaults[key].items() if default != entry.default]
        rest = "".join(f"; the default of {_listed(kinds)} is `{default}`" for default, kinds in others)
        yield dataclasses.replace(entry, meaning=f"{of}{entry.meaning}{rest}")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def meanings_of(record: type) -> dict[str, str]:
    """Field -> its meaning, from the part "Fields:" of a record's docstring."""
    found = _FIELDS.search(record.__doc__ or "")
    if found is None:
        return {}
    names = {item.name for item in dataclasses.fields(record)}
    text = " ".join(line.strip() for line in found.group(1).splitlines())
    starts = [match for match in _HEAD.finditer(text) if names.issuperset(match.group(1).split(", "))]
    meanings: dict[str, str] = {}
    for index, match in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        meaning = text[match.end() : end].strip().rstrip(".;")
        meanings.update(dict.fromkeys(match.group(1).split(", "), meaning))
    return meanings


def _summary(documented: object) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0]


def _record_in(hint: object) -> tuple[type | None, bool]:
    """The record that a field's type holds, and whether it holds a list of them."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint, False
    if typing.get_origin(hint) in (tuple, list):
        return _record_in(typing.get_args(hint)[0])[0], True
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        found = [_record_in(option) for option in typing.get_args(hint)]
        return next((one for one in found if one[0] is not None), (None, False))
    return None, False


def _type_text(hint: object) -> str:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return "section"
    if origin is typing.Literal:
        return ", ".join(str(option) for option in options)
    if origin in (typing.Union, types.UnionType):
        shown = [_type_text(option) for option in options if option is not type(None)]
        return " or ".join([*shown, "null"] if type(None) in options else shown)
    if origin in (tuple, list):
        return f"list of {_type_text(options[0])}"
    names: dict[object, str] = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return names.get(hint, "mapping")


def _default_text(item: dataclasses.Field[typing.Any]) -> str:
    if item.default is not MISSING:
        value = item.default
    elif item.default_factory is not MISSING:
        value = item.default_factory()
    else:
        return ""
    if dataclasses.is_dataclass(value) or (isinstance(value, tuple) and any(map(dataclasses.is_dataclass, value))):
        return ""
    plain = list(value) if isinstance(value, tuple) else value
    text: str = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=1000)
    return text.removesuffix("\n").removesuffix("\n...")
