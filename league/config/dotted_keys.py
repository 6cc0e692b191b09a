"""Dotted keys of a configuration: the value under one, and the same key as the reference of all keys has it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\[([0-9]*)\]")


def dotted_key(key: str) -> str:
    """The key with its places in lists between dots: `league.players.0.role` for `league.players[0].role`."""
    return _PLACE.sub(r".\1", key.strip())


def generic_key(key: str) -> str:
    """The key with any place in a list as `[]`: `league.players[].role` for `league.players.0.role`."""
    parts = dotted_key(key).split(".")
    return "".join("[]" if not part or is_place(part) else f".{part}" for part in parts).removeprefix(".")


def is_place(part: str) -> bool:
    """True for the number of a place in a list."""
    return part.isascii() and part.isdigit()


def value_at(plain: object, key: str) -> tuple[bool, object]:
    """Look a dotted key up: (True if plain values hold it, its value). A name in a mapping may have dots of its own."""
    here, parts = plain, key.split(".")
    while parts:
        taken = 1
        if isinstance(here, Mapping):
            names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
            name = next((name for name in names if name in here), None)
            if name is None:
                return False, None
            here, taken = here[name], name.count(".") + 1
        elif isinstance(here, list) and is_place(parts[0]) and int(parts[0]) < len(here):
            here = here[int(parts[0])]
        else:
            return False, None
        parts = parts[taken:]
    return True, here
