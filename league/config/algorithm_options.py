"""Checks the options of a registered algorithm and fills in those that are not given, without loading torch.

The options of an algorithm from outside are checked where its code may be loaded, see `plugin_checks`.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace

from agents.learner.algorithms.config import ALGORITHM_OPTIONS
from agents.learner.config import DEFAULT_ALGORITHM, LearnerConfig
from envs.plugin_options import OptionsError, given_options, kind_of, make_options

PLACE = ("learner", "algorithm")


def with_algorithm_options(config: LearnerConfig) -> tuple[LearnerConfig, list[str]]:
    """The learner's settings with every option of its algorithm, and what is wrong with the given ones."""
    kind = kind_of(config.algorithm, DEFAULT_ALGORITHM)
    record = ALGORITHM_OPTIONS.get(kind)
    if record is None:
        return config, []
    given, place = given_options(config.algorithm), ".".join(PLACE)
    problems = []
    for key in [key for key in given if key not in _names(record)]:
        owners = [name for name, other in ALGORITHM_OPTIONS.items() if key in _names(other)]
        if owners:
            problems.append(f"{place}.{key}: unknown key of {kind}, it is an option of {' and '.join(owners)}")
            del given[key]
    try:
        options = make_options(record, given, place=place)
    except OptionsError as error:
        return config, [*problems, *error.problems]
    return replace(config, algorithm={"kind": kind, **asdict(options)}), problems


def _names(record: type) -> set[str]:
    return {field.name for field in fields(record)}
