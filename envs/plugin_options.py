"""Options of a component's own: `{kind: NAME, key: value}` is split, checked against the component's record, and made.

A component is a class or a function. It declares its options by a parameter `options` that is annotated with a
dataclass: the fields are the keys, with their types and defaults. A method `problems` of the record, if there is one,
returns sentences that begin with a field's name.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from league.envs.component_choice import Component, given_options, kind_of
from league.envs.plugins import PluginError, resolve

NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false"}


class OptionsError(PluginError):
    """Options that do not fit; `problems` are sentences that begin with the full key."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def options_record(component: Any) -> type | None:
    """The dataclass that a class or function declares by its parameter `options`; None where it declares none.

    Raises:
      PluginError: the parameter is not annotated with a dataclass.
    """
    parameter = inspect.signature(component).parameters.get("options")
    if parameter is None or parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return None
    maker = component.__init__ if inspect.isclass(component) else component
    holder = types.SimpleNamespace(__annotations__={"options": parameter.annotation})
    try:
        hint = typing.get_type_hints(holder, globalns=maker.__globals__)["options"]
    except (NameError, AttributeError, TypeError):
        hint = None
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        raise PluginError("its parameter `options` must be annotated with a dataclass of the same file")
    return hint


def component_of(choice: Component, registry: Mapping[str, str], *, what: str, place: str) -> Callable[..., Any]:
    """The class or function that a choice names, its options filled in.

    Args:
      registry: name -> "module:attribute". what: the swap point, for messages.
      place: dotted path of the choice in the configuration.
    Raises:
      PluginError: there is none such, or its options do not fit; names the key.
    """
    try:
        component = resolve(kind_of(choice), registry, what=what)
    except PluginError as error:
        raise PluginError(f"{place}: {error}") from error
    options = options_argument(component, choice, place=place)
    return functools.partial(component, **options)


def options_argument(component: Any, choice: Component, *, place: str) -> dict[str, Any]:
    """The keyword argument `options` for a component; nothing for one that declares none.

    Args:
      place: dotted path of the choice in the configuration.
    Raises:
      OptionsError: an option is unknown, missing, or does not fit.
    """
    record, given = options_record(component), given_options(choice)
    if record is None:
        return require_no_options(choice, place=place)
    return {"options": make_options(record, given, place=place)}


def require_no_options(choice: Component, *, place: str) -> dict[str, Any]:
    """Nothing, for a component that has no options.

    Raises:
      OptionsError: options are given.
    """
    given = given_options(choice)
    if given:
        raise OptionsError([f"{place}.{key}: unknown key, {kind_of(choice)} has no options" for key in given])
    return {}


def make_options(record: type, given: Mapping[str, object], *, place: str) -> Any:
    """The record of some options.

    Args:
      record: a dataclass. given: its values by name.
      place: dotted path of the component in the configuration.
    Raises:
      OptionsError: naming every option that is unknown, missing, or does not fit.
    """
    fields = {field.name: field for field in dataclasses.fields(record) if field.init}
    hints = typing.get_type_hints(record)
    problems = [f"{place}.{_unknown(key, list(fields))}" for key in given if key not in fields]
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name in given and dataclasses.is_dataclass(hints[name]):
            try:
                values[name] = _nested(given[name], hints[name], place=f"{place}.{name}")
            except OptionsError as error:
                problems += error.problems
        elif name in given:
            try:
                values[name] = _converted(given[name], hints[name])
            except ValueError as error:
                problems.append(f"{place}.{name}: {error}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{place}.{name}: is missing")
    if problems:
        raise OptionsError(problems)
    try:
        made = record(**values)
    except ValueError as error:
        raise OptionsError([f"{place}: {error}"]) from error
    problems = [f"{place}.{problem}" for problem in _own_problems(made)]
    if problems:
        raise OptionsError(problems)
    return made


def _nested(value: object, record: Any, *, place: str) -> object:
    """The record of options that are a mapping of their own."""
    if not isinstance(value, Mapping):
        raise OptionsError([f"{place}: {value!r} does not fit: it should be a mapping"])
    return make_options(record, value, place=place)


def _own_problems(made: object) -> Iterator[str]:
    check = getattr(made, "problems", None)
    if callable(check):
        yield from check()


def _unknown(key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(key), known, n=1)
    return f"{key}: unknown key, " + (f"nearest is {close[0]!r}" if close else f"the keys here are {', '.join(known)}")


def _converted(value: object, hint: Any) -> object:
    """A plain value as its field's type: lists as tuples, integers as numbers where a number is wanted.

    Raises:
      ValueError: it does not fit.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object):
        return value
    if origin is typing.Literal:
        if value not in inner:
            raise ValueError(f"{value!r} is none of {', '.join(str(choice) for choice in inner)}")
        return value
    if origin in (typing.Union, types.UnionType):
        return _converted_to_one(value, inner)
    if origin in (tuple, list):
        return _converted_list(value, origin, inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{value!r} does not fit: it should be a mapping")
        return dict(value)
    return _converted_scalar(value, hint)


def _converted_to_one(value: object, hints: Sequence[Any]) -> object:
    if value is None and type(None) in hints:
        return None
    problem = ValueError()
    for hint in hints:
        if hint is not type(None):
            try:
                return _converted(value, hint)
            except ValueError as error:
                problem = error
    raise problem


def _converted_list(value: object, origin: type, inner: Sequence[Any]) -> object:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{value!r} does not fit: it should be a list")
    hints = [inner[0]] * len(value) if origin is list or inner[-1] is Ellipsis else list(inner)
    if len(hints) != len(value):
        raise ValueError(f"{value!r} does not fit: it should have {len(hints)} elements")
    return origin(_converted(item, hint) for item, hint in zip(value, hints, strict=True))


def _converted_scalar(value: object, hint: Any) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and (is_number or isinstance(value, str)):
        try:
            return float(value)  # type: ignore[arg-type]  # a number or text
        except ValueError:
            pass
    elif hint is int and is_number and float.is_integer(float(value)):  # type: ignore[arg-type]  # infinity is none
        return int(value)  # type: ignore[call-overload]  # as above
    elif isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise ValueError(f"{value!r} does not fit: it should be {NAMES.get(hint, getattr(hint, '__name__', hint))}")
