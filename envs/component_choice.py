"""The choice of a component in a configuration: its name, or a mapping of its `kind` and of its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Component = str | Mapping[str, object]


def kind_of(choice: Component, default: str = "") -> str:
    """The name of the component, `default` where none is given."""
    return (choice if isinstance(choice, str) else str(choice.get("kind", ""))) or default


def given_options(choice: Component) -> dict[str, Any]:
    """The options that are given beside the kind."""
    return {} if isinstance(choice, str) else {key: value for key, value in choice.items() if key != "kind"}
