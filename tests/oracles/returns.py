"""Slow literal transcriptions of V-trace, GAE, TD(lambda) and UPGO: one column, plain Python floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

GrowableArray = Sequence[float]


def _bounded(ratio: float, bound: float | None) -> float:
    return ratio if bound is None or ratio < bound else bound


def vtrace_column(
    log_rhos: GrowableArray,
    discounts: GrowableArray,
    rewards: GrowableArray,
    values: GrowableArray,
    bootstrap: float,
    *,
    clip_rho: float | None,
    clip_c: float | None,
    clip_pg_rho: float | None,
    lambda_: float,
) -> tuple[list[float], list[float]]:
    """Targets by the double sum of IMPALA's equation 1, advantages from them."""
    num_steps = len(values)
    next_values = [*values[1:], bootstrap]
    targets = []
    for start in range(num_steps):
        total = values[start]
        for t in range(start, num_steps):
            weight = 1.0
            for i in range(start, t):
                weight *= discounts[i] * lambda_ * _bounded(math.exp(log_rhos[i]), clip_c)
            delta = rewards[t] + discounts[t] * next_values[t] - values[t]
            total += weight * _bounded(math.exp(log_rhos[t]), clip_rho) * delta
        targets.append(total)
    next_targets = [*targets[1:], bootstrap]
    advantages = [
        _bounded(math.exp(log_rhos[t]), clip_pg_rho) * (rewards[t] + discounts[t] * next_targets[t] - values[t])
        for t in range(num_steps)
    ]
    return targets, advantages


def n_step_column(
    discounts: GrowableArray, rewards: GrowableArray, values: GrowableArray, bootstrap: float
) -> tuple[list[float], list[float]]:
    """Returns and advantages by the loop of A3C's algorithm S3: R <- r_i + gamma R from the last step back."""
    targets, total = list[float](), bootstrap
    for t in reversed(range(len(values))):
        total = rewards[t] + discounts[t] * total
        targets.insert(0, total)
    return targets, [target - value for target, value in zip(targets, values, strict=True)]


def gae_column(
    discounts: GrowableArray, rewards: GrowableArray, values: GrowableArray, bootstrap: float, *, lambda_: float
) -> list[float]:
    """The discounted sum of temporal differences, step by step."""
    next_values = [*values[1:], bootstrap]
    advantages = []
    for start in range(len(values)):
        total, weight = 0.0, 1.0
        for t in range(start, len(values)):
            total += weight * (rewards[t] + discounts[t] * next_values[t] - values[t])
            weight *= discounts[t] * lambda_
        advantages.append(total)
    return advantages


def td_lambda_column(
    discounts: GrowableArray, rewards: GrowableArray, values: GrowableArray, bootstrap: float, *, lambda_: float
) -> list[float]:
    """The mixture of n-step returns with weights (1 - lambda) lambda^(n - 1), the rest on the longest."""
    num_steps = len(values)
    next_values = [*values[1:], bootstrap]
    targets = []
    for start in range(num_steps):
        total, weight = 0.0, 1.0
        for stop in range(start, num_steps):
            n_step, discount = 0.0, 1.0
            for t in range(start, stop + 1):
                n_step += discount * rewards[t]
                discount *= discounts[t]
            n_step += discount * next_values[stop]
            last = stop == num_steps - 1
            total += weight * (1.0 if last else 1.0 - lambda_) * n_step
            weight *= lambda_
        targets.append(total)
    return targets


def upgo_column(
    log_rhos: GrowableArray,
    discounts: GrowableArray,
    rewards: GrowableArray,
    values: GrowableArray,
    bootstrap: float,
    *,
    clip_pg_rho: float | None,
) -> tuple[list[float], list[float]]:
    """From each step, follow the actual rewards until a step turns out worse than its value."""
    num_steps = len(values)
    next_values = [*values[1:], bootstrap]
    returns = []
    for start in range(num_steps):
        total, discount, t = 0.0, 1.0, start
        while True:
            total += discount * rewards[t]
            discount *= discounts[t]
            disappoints = t + 1 == num_steps or (rewards[t + 1] + discounts[t + 1] * next_values[t + 1] < values[t + 1])
            if disappoints:
                break
            t += 1
        returns.append(total + discount * next_values[t])
    advantages = [
        _bounded(math.exp(ratio), clip_pg_rho) * (target - value)
        for ratio, target, value in zip(log_rhos, returns, values, strict=True)
    ]
    return returns, advantages


def split_at_invalid(
    run: Callable[[int, int, float], list[list[float]]], values: GrowableArray, bootstrap: float, valid: Sequence[bool]
) -> list[list[float]]:
    """Evaluate every stretch of valid steps as a sequence of its own that bootstraps from the value behind it.

    Args:
      run: (start, stop, bootstrap) -> result columns of that stretch, the first of them targets, the rest advantages.
    Returns:
      Whole columns: at invalid steps the target is the value and an advantage is 0.
    """
    num_results = len(run(0, 0, 0.0))
    columns = [[value if index == 0 else 0.0 for value in values] for index in range(num_results)]
    start = 0
    while start < len(values):
        if not valid[start]:
            start += 1
            continue
        stop = start
        while stop < len(values) and valid[stop]:
            stop += 1
        behind = bootstrap if stop == len(values) else values[stop]
        for column, piece in zip(columns, run(start, stop, behind), strict=True):
            column[start:stop] = piece
        start = stop
    return columns
