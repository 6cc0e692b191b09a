"""Behaviours: what policies do in every information state of a small game.

Shape letters: K slots or information states, A actions, C numbers of a memory, M policies, I information states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import InformationStates
from league.policies.exact.sequence_form import levels_of
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy

Array = NDArray[np.float64]
Fields = Mapping[str, NDArray[np.generic]]

PolicyFunction = Callable[[Fields, NDArray[np.bool_]], NDArray[np.floating]]
"""Probabilities [K, A] of what K seats see (fields [K, ...], as the game shows them) and may do, bool [K, A]."""

Mixture = Sequence[tuple[float, PolicyFunction]]
"""(weight, policy): for each game and seat one member is drawn, which then plays to the end of the game."""

MIN_SUM, MAX_SUM = 0.999, 1.001
"""Bounds on the sum of one row of probabilities before it is scaled to 1."""

ROWS_AT_ONCE = 65_536
"""Information states in one forward pass."""


@runtime_checkable
class RecurrentFunction(Protocol):
    """A `PolicyFunction` with a memory, which moves one step on with each decision of its seat. Called, it has none."""

    core_size: int

    def __call__(self, fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.floating]: ...

    def after(
        self, fields: Fields, legal: NDArray[np.bool_], core: NDArray[np.float32]
    ) -> tuple[NDArray[np.floating], NDArray[np.float32]]:
        """Probabilities [K, A] after memories [K, C], and the memories of the next decisions; zeros at the start."""
        ...


class _Recurrent:
    """A loaded network with a memory as a `RecurrentFunction`."""

    def __init__(self, policy: LoadedPolicy, core_size: int) -> None:
        self.core_size = core_size
        self.after = policy.probs_after
        self._first = policy.all_probs

    def __call__(self, fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.floating]:
        return self._first(fields, legal)


def uniform(fields: Fields, legal: NDArray[np.bool_]) -> Array:
    """Uniform play, as a `PolicyFunction`."""
    probs: Array = legal / legal.sum(axis=1, keepdims=True)
    return probs


def members_of(policy: LoadedPolicy | LoadedMixture) -> list[tuple[float, PolicyFunction]]:
    """A loaded policy or mixture as a `Mixture`."""
    return [(weight, _function_of(member)) for weight, member in policy.members]


def _function_of(policy: LoadedPolicy) -> PolicyFunction:
    core_size = policy.as_seat_policy().core_size
    return _Recurrent(policy, core_size) if core_size else policy.all_probs


def weighed(policy: PolicyFunction | Mixture) -> tuple[Array, list[PolicyFunction]]:
    """Weights [M] that sum to 1, and members."""
    mixture: Mixture = [(1.0, policy)] if callable(policy) else policy
    weights = np.array([weight for weight, _ in mixture], np.float64)
    if not len(weights) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:  # NaN is none of these
        raise ValueError(f"a mixture needs members of positive weight, got {weights.tolist()}")
    return weights / weights.sum(), [member for _, member in mixture]


def tables_of(states: InformationStates, policies: Sequence[PolicyFunction]) -> Array:
    """[M, I, A], what each policy does in every information state."""
    tables = np.zeros((len(policies), *states.legal.shape))
    for table, policy in zip(tables, policies, strict=True):
        if isinstance(policy, RecurrentFunction):
            _fill_recurrent(table, states, policy)
            continue
        for first in range(0, len(states.seat), ROWS_AT_ONCE):
            rows = np.arange(first, min(first + ROWS_AT_ONCE, len(states.seat)))
            table[rows] = probs_of(policy, _seen(states, rows), states.legal[rows])
    return tables


def _fill_recurrent(table: Array, states: InformationStates, policy: RecurrentFunction) -> None:
    """Fill in [I, A] by the number of a seat's decisions before: each begins with the memory of the one before."""
    cores = np.zeros((len(states.seat) + 1, policy.core_size), np.float32)  # the last row is that of no decision: -1
    for level in (rows for seat in levels_of(states) for rows in seat if rows.size):
        fields, legal = _seen(states, level), states.legal[level]
        probs, cores[level] = policy.after(fields, legal, cores[states.parent[level]])
        table[level] = checked(probs, legal)


def _seen(states: InformationStates, rows: NDArray[np.int64]) -> Fields:
    return {name: field[rows] for name, field in states.fields.items()}


def probs_of(policy: PolicyFunction, fields: Fields, legal: NDArray[np.bool_]) -> Array:
    """The probabilities that a policy answers, float64 [K, A].

    Raises:
      ValueError: as `checked`.
    """
    return checked(policy(fields, legal), legal)


def checked(answer: NDArray[np.floating], legal: NDArray[np.bool_]) -> Array:
    """Checks and returns the probabilities that a policy answered, float64 [K, A].

    Raises:
      ValueError: not of that shape, negative, on illegal actions, or a row does not sum to 1.
    """
    probs = np.asarray(answer, np.float64)
    if probs.shape != legal.shape:
        raise ValueError(f"the policy returned probabilities {list(probs.shape)}, expected {list(legal.shape)}")
    total = probs.sum(axis=1, keepdims=True)
    if not ((probs >= 0) & (legal | (probs == 0))).all() or not ((total > MIN_SUM) & (total < MAX_SUM)).all():
        raise ValueError("the policy's rows must be probabilities of legal actions that sum to 1")
    scaled: Array = probs / total
    return scaled
