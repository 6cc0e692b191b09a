"""Checks the options of components of `agents` and fills in those that are not given, without loading torch.

The options of a component from outside are checked where its code may be loaded, see `plugin_checks`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from league.agents.acting.kinds.config import ACTING_OPTIONS, DEFAULT_ACTING
from league.agents.learner.algorithms.config import ALGORITHM_OPTIONS
from league.agents.learner.config import DEFAULT_ALGORITHM, DEFAULT_OPTIMIZER, DEFAULT_ROW_SOURCE, DEFAULT_UPDATE_MODE
from league.agents.learner.data.row_source_config import ROW_SOURCE_OPTIONS
from league.agents.learner.replicas.config import UPDATE_MODE_OPTIONS
from league.agents.learner.step.optimizer_config import OPTIMIZER_OPTIONS
from league.envs.component_choice import Component, given_options, kind_of
from league.envs.plugin_options import OptionsError, make_options

Section = TypeVar("Section")


@dataclass(frozen=True)
class Alternatives:
    """A component that the settings choose.

    Fields:
      default: name of the component where none is given.
      records: name of a registered component -> the record of its options.
    """

    default: str
    records: Mapping[str, type]


CHOICES = {
    ("learner", "algorithm"): Alternatives(DEFAULT_ALGORITHM, ALGORITHM_OPTIONS),
    ("learner", "optimizer"): Alternatives(DEFAULT_OPTIMIZER, OPTIMIZER_OPTIONS),
    ("learner", "row_source"): Alternatives(DEFAULT_ROW_SOURCE, ROW_SOURCE_OPTIONS),
    ("learner", "pipeline", "update_mode"): Alternatives(DEFAULT_UPDATE_MODE, UPDATE_MODE_OPTIONS),
    ("actors", "acting"): Alternatives(DEFAULT_ACTING, ACTING_OPTIONS),
    ("actors", "acting_frozen"): Alternatives(DEFAULT_ACTING, ACTING_OPTIONS),
}
"""Path in the configuration -> the components to choose from."""


def with_options(section: str, config: Section) -> tuple[Section, list[str]]:
    """The settings of a section with every option of its components, and what is wrong with the given ones."""
    problems: list[str] = []
    for path, choice in CHOICES.items():
        first, *names = path
        if first == section:
            given = operator.attrgetter(".".join(names))(config)
            made, found = _completed(given, choice, place=".".join(path))
            config = _replaced(config, names, made)
            problems += found
    return config, problems


def _replaced(record: Any, path: Sequence[str], value: Component) -> Any:
    """The record with another value at a path of fields."""
    name, *rest = path
    return replace(record, **{name: _replaced(getattr(record, name), rest, value) if rest else value})


def _completed(given: Component, choice: Alternatives, *, place: str) -> tuple[Component, list[str]]:
    kind = kind_of(given, choice.default)
    record = choice.records.get(kind)
    if record is None:
        return given, []
    options = given_options(given)
    problems = []
    for key in [key for key in options if key not in _names(record)]:
        owners = [name for name, other in choice.records.items() if key in _names(other)]
        if owners:
            problems.append(f"{place}.{key}: unknown key of {kind}, it is an option of {' and '.join(owners)}")
            del options[key]
    try:
        made = make_options(record, options, place=place)
    except OptionsError as error:
        return given, [*problems, *error.problems]
    completed = asdict(made)
    return {"kind": kind, **completed} if completed else kind, problems


def _names(record: type) -> set[str]:
    return {field.name for field in fields(record)}
