"""An env's spec as JSON text and back: it comes from a process that runs code of others, so nothing is unpickled."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from league.envs import protocol
from league.envs.protocol import EnvSpec

RECORDS: Mapping[str, type] = {
    name: value for name, value in vars(protocol).items() if isinstance(value, type) and dataclasses.is_dataclass(value)
}
"""Records that a spec may hold: those of the contract."""

STAYS = "user_format"
"""Field of a spec that is code, and stays in the process that made the env."""


def spec_to_text(spec: EnvSpec) -> str:
    """The spec without its `user_format`."""
    return json.dumps(_plain(dataclasses.replace(spec, user_format=None)))


def spec_from_text(text: str) -> EnvSpec:
    """The spec of `spec_to_text`.

    Raises:
      ValueError: the text is none.
    """
    try:
        spec = _record(json.loads(text))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no spec of an env: {error}") from error
    if not isinstance(spec, EnvSpec):
        raise ValueError(f"no spec of an env but a {type(spec).__name__}")
    return spec


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        return {"record": type(value).__name__, "fields": {k: v for k, v in items.items() if k != STAYS}}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _plain(item)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _record(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_record(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {key: _record(item) for key, item in value["mapping"]}
    return RECORDS[value["record"]](**{name: _record(item) for name, item in value["fields"].items()})
