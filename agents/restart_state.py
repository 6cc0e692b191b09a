"""The layout of a learner's restart state; only this file knows the names of its arrays.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]
"""A restart state as plain arrays by name."""

WEIGHTS, TARGET, TEACHER, EMA = "values", "slow", "teacher", "ema"
VECTORS = (WEIGHTS, TARGET, TEACHER, EMA)
"""Entries with one number per parameter, empty if there are none yet. A teacher is loaded but never saved: it does
not change, and the caller of `load` has it."""
OPTIMIZER_VECTOR, OPTIMIZER_NUMBER = "optimizer_vector.", "optimizer_number."
"""Before the names of the optimizer's own entries: those with one number per parameter, and single numbers."""
OPTIMIZER_STEPS = "optimizer_steps"
MODE_VECTOR, MODE_NUMBER = "mode_vector.", "mode_number."
"""The same for the update mode's."""

_COUNTERS, _SCALES = "counters", "scales"


class RestartStateError(Exception):
    """Arrays are no restart state; the message names the missing entry."""


@dataclass(frozen=True)
class Counters:
    """Counters of a learner; see `Learner`. States of before `sampled_steps` hold one counter less: 0 there."""

    version: int
    trained_steps: int
    skipped_updates: int = 0
    bad_in_a_row: int = 0
    sampled_steps: int = 0


def is_vector(name: str) -> bool:
    """True if the entry of that name has one number per parameter, or is empty."""
    return name in VECTORS or name.startswith((OPTIMIZER_VECTOR, MODE_VECTOR))


def is_averaged(name: str) -> bool:
    """True if the entry is the mean over replicas where their weights differ; the others are those of one of them."""
    return name == WEIGHTS or name.startswith(MODE_VECTOR)


def restart_state(updater: Arrays, counters: Counters, scales: NDArray[np.generic]) -> Arrays:
    """Make the restart state of a learner from that of its updater."""
    return {**updater, _COUNTERS: np.array(astuple(counters), np.int64), _SCALES: scales}


def weights_alone(vector: NDArray[np.float32], *, teacher: NDArray[np.float32] | None = None) -> Arrays:
    """Arrays from which an updater starts with weights [P] and a new optimizer."""
    return with_teacher({WEIGHTS: vector}, teacher)


def with_weights(saved: Mapping[str, NDArray[np.generic]], vector: NDArray[np.float32]) -> Arrays:
    """A learner's restart state with other weights [P]: their average begins again, and so does every optimizer."""
    of_optimizer = (OPTIMIZER_VECTOR, OPTIMIZER_NUMBER, MODE_VECTOR, MODE_NUMBER)
    kept = {name: array for name, array in saved.items() if name != TARGET and not name.startswith(of_optimizer)}
    average = vector.copy() if ema_in(saved) is not None else np.zeros(0, np.float32)
    return {**kept, WEIGHTS: vector, EMA: average}


def with_teacher(saved: Mapping[str, NDArray[np.generic]], teacher: NDArray[np.float32] | None) -> Arrays:
    """The same arrays with the weights [P] of a teacher, which no restart state holds."""
    return dict(saved) if teacher is None else {**saved, TEACHER: teacher}


def weights_in(saved: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    """float32 [P], the weights. Raises RestartStateError if there are none."""
    return np.asarray(_entry(saved, WEIGHTS, "weights"), np.float32)


def weights_of_size(saved: Mapping[str, NDArray[np.generic]], size: int) -> NDArray[np.float32]:
    """float32 [size], a copy of the weights.

    Raises:
      ValueError: they are for a network of another size. RestartStateError: there are none.
    """
    values = weights_in(saved).copy()
    if values.shape != (size,):
        raise ValueError(f"saved for {values.size} parameters, the network has {size}")
    return values


def ema_in(saved: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float32] | None:
    """float32 [P], the moving average of the weights; None if there is none."""
    return np.asarray(saved[EMA], np.float32) if EMA in saved and saved[EMA].size else None


def optimizer_steps_in(saved: Mapping[str, NDArray[np.generic]]) -> int:
    """Steps of the optimizer since the weights were new; 0 where they are not known."""
    return int(np.asarray(saved[OPTIMIZER_STEPS], np.int64)) if OPTIMIZER_STEPS in saved else 0


def counters_in(saved: Mapping[str, NDArray[np.generic]]) -> Counters:
    """The counters of the learner. Raises RestartStateError if there are none."""
    return Counters(*(int(value) for value in np.asarray(_entry(saved, _COUNTERS, "counters"), np.int64)))


def scales_in(saved: Mapping[str, NDArray[np.generic]]) -> NDArray[np.generic]:
    """The running scales. Raises RestartStateError if there are none."""
    return _entry(saved, _SCALES, "scales")


def _entry(saved: Mapping[str, NDArray[np.generic]], name: str, what: str) -> NDArray[np.generic]:
    if name not in saved:
        raise RestartStateError(f"it holds no {what}")
    return saved[name]
