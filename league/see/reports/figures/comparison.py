"""Several runs beside each other: the settings in which they differ, and the same curves of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from league.see.reports.figures.curves import Curve

MAX_DIFFERENCES = 200
"""Settings listed at most."""
UNSET = ""


class SettingValues(msgspec.Struct, frozen=True):
    """A setting that is not the same in all runs. values: of each run in turn as JSON, empty where it has none."""

    key: str
    values: tuple[str, ...]


class RunCurve(msgspec.Struct, frozen=True):
    """One run's points of a metric that several runs report."""

    run: str
    steps: tuple[float, ...]
    values: tuple[float, ...]


class SharedCurve(msgspec.Struct, frozen=True):
    """A metric over env steps in every run that reports it."""

    metric: str
    label: str
    unit: str
    meaning: str
    runs: tuple[RunCurve, ...]


class Comparison(msgspec.Struct, frozen=True):
    """Runs beside each other.

    Fields:
      runs: names, in the order asked for. settings: differences by key; num_settings: how many there are in all.
      curves: metrics of whole runs.
    """

    runs: tuple[str, ...]
    settings: tuple[SettingValues, ...]
    num_settings: int
    curves: tuple[SharedCurve, ...]


def comparison(runs: Sequence[tuple[str, object, Sequence[Curve]]]) -> Comparison:
    """Compares runs.

    Args:
      runs: of each its name, its plain configuration, and its curves.
    """
    flat = [dict(_leaves(plain)) for _, plain, _ in runs]
    differences = tuple(_differences(flat))
    shared: dict[str, list[RunCurve]] = {}
    known: dict[str, Curve] = {}
    for name, _, curves in runs:
        for curve in curves:
            known.setdefault(curve.metric, curve)
            shared.setdefault(curve.metric, []).append(RunCurve(name, curve.steps, curve.values))
    return Comparison(
        runs=tuple(name for name, _, _ in runs),
        settings=differences[:MAX_DIFFERENCES],
        num_settings=len(differences),
        curves=tuple(
            SharedCurve(metric, known[metric].label, known[metric].unit, known[metric].meaning, tuple(found))
            for metric, found in shared.items()
        ),
    )


def _differences(flat: Sequence[Mapping[str, str]]) -> Iterator[SettingValues]:
    """A row for each leaf, which any number of runs may lack; `league.config.changes` has the keys that a user sets."""
    for key in dict.fromkeys(key for settings in flat for key in settings):
        values = tuple(settings.get(key, UNSET) for settings in flat)
        if len(set(values)) > 1:
            yield SettingValues(key, values)


def _leaves(plain: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys of a plain configuration with their values as JSON; an empty list or mapping is a value."""
    if isinstance(plain, dict) and plain:
        for key, value in plain.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list) and any(isinstance(item, dict | list) for item in plain):
        for place, item in enumerate(plain):
            yield from _leaves(item, f"{path}.{place}")
    else:
        yield path, json.dumps(plain, default=str)
