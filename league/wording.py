"""Numbers of things, amounts, values of settings, and the gist of errors, in words for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from league.envs.text.number_text import number_text

MIN_P = 0.0001
LONGEST_LINE = 300
"""Characters of an error's line that are shown."""
_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, as `noun_for` has it."""
    return f"{number:,} {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str = "") -> str:
    """The noun after a number: in the plural, by default with an s, unless there is one."""
    return noun if number == 1 else plural or f"{noun}s"


def duration_text(seconds: float) -> str:
    """As 12 s, 3.5 min, 2.0 h or 1.2 d."""
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def size_text(num_bytes: int) -> str:
    """As 512 B, 1.5 kB, 20.0 MB or 3.1 GB."""
    for size, unit in _SIZES:
        if num_bytes >= size:
            return f"{num_bytes / size:.1f} {unit}"
    return f"{num_bytes} B"


def setting_text(value: object) -> str:
    """The value of a setting: groups of players by their roles, a component by its name and options, others as JSON."""
    if isinstance(value, Mapping):
        options = ", ".join(f"{key} {_inner_text(item)}" for key, item in value.items() if key != "kind")
        return ": ".join(part for part in (str(value.get("kind", "")), options) if part) or "{}"
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "role" in item for item in value):
        return ", ".join(_group_text(group) for group in value)
    return json.dumps(value)


def _inner_text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    return f"({setting_text(value)})" if isinstance(value, Mapping) else setting_text(value)


def _group_text(group: Mapping[str, object]) -> str:
    count = group.get("count", 1)
    return str(group["role"]) if count == 1 else f"{count} x {group['role']}"


def last_line(text: str) -> str:
    """The last line that is not empty, at most `LONGEST_LINE` of it; empty if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_LINE] if lines else ""


def error_line(error: BaseException) -> str:
    """The last line of an error: Ray puts the traceback of another process before it."""
    return last_line(str(error)) or type(error).__name__


def clock_text(seconds: float) -> str:
    """h:mm:ss."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def short_count(value: float) -> str:
    """A number as a person reads it: 999, 12.3k, 4.56M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * limit:
            return f"{value / limit:.3g}{unit}" if abs(value) < 999.5 * limit else f"{value / limit:.0f}{unit}"
    return f"{value:.0f}"


def p_text(p_value: float) -> str:
    """A p-value in a sentence, such as "p 0.03" or "p below 0.0001"."""
    return f"p {number_text(p_value, 2)}" if p_value >= MIN_P else f"p below {MIN_P:.4f}"


def seats_text(names: Sequence[str], num_seats: int) -> str:
    """All seats of a game, for an error: by number, and by name where they have any."""
    return f"0 to {num_seats - 1}{', or ' if names else ''}{', '.join(names)}"


def seat_text(names: Sequence[str], seat: int) -> str:
    """A seat in the game's own terms. names: [S] of the game's seats, empty where it has none."""
    return names[seat] if seat < len(names) else f"seat {seat}"
