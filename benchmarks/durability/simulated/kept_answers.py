"""Answers of pure functions, kept between schedules, which ask the same of a few configurations thousands of times.

The functions are those of production and give the first answer. None of them reads a state or a file of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from league.agents.nets.network import build_network
from league.config.commented import recommented
from league.config.run_config import RunConfig
from league.envs.registry import spec_of
from league.policies import policy_store
from league.run.operations import plans

MAX_KEPT = 5_000
"""Answers of one function after which it forgets all of them."""


class _Same:
    """An argument that is known again as the same object: a configuration cannot be hashed, and never changes."""

    def __init__(self, value: object) -> None:
        self._value = value  # held, so that no other object takes its address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


class KeptAnswers:
    """A function in front of a pure one, which asks it once for each key.

    Args:
      function: the pure one. key: of the answer, from the same arguments.
    """

    def __init__(self, function: Callable[..., Any], key: Callable[..., object]) -> None:
        self._function, self._key = function, key
        self._answers: dict[object, Any] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The answer of `function`, which the caller does not change."""
        key = self._key(*arguments, **named)
        if key not in self._answers:
            if len(self._answers) >= MAX_KEPT:
                self._answers.clear()
            self._answers[key] = self._function(*arguments, **named)
        return self._answers[key]


_CONFIGS: dict[str, RunConfig] = {}


def one_of_equals(config: RunConfig) -> RunConfig:
    """The same object for equal configurations, so that what is kept for one is found for the other."""
    if len(_CONFIGS) >= MAX_KEPT:
        _CONFIGS.clear()
    return _CONFIGS.setdefault(repr(config), config)


def _overridden(config: RunConfig, pairs: Iterable[tuple[str, object]]) -> RunConfig:
    return one_of_equals(_PLAN_OVERRIDDEN(config, pairs))


_PLAN_OVERRIDDEN = plans.overridden
_KEPT = (
    (plans, "overridden", KeptAnswers(_overridden, lambda config, pairs: (_Same(config), json.dumps(pairs)))),
    (plans, "recommented", KeptAnswers(recommented, lambda config, text: (_Same(config), text))),
    (policy_store, "build_network", KeptAnswers(build_network, lambda *given, seed: (repr(given), seed))),
    (policy_store, "spec_of", KeptAnswers(spec_of, repr)),
)
"""Where a function is asked, its name there, and what stands in front of it."""


@contextmanager
def kept_answers() -> Iterator[None]:
    """A context in which production asks those functions through `KeptAnswers`."""
    with ExitStack() as stack:
        for module, name, function in _KEPT:
            stack.enter_context(mock.patch.object(module, name, function))
        yield
