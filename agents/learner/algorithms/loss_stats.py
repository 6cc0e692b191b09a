"""Statistics of losses as sums over decisions: added over microbatches, stages and replicas, then divided once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class LossStats:
    """Sums over the learnt-from decisions of a batch.

    Fields:
      steps: number of decisions.
      policy, value, entropy: the three terms, unweighted. extra: weighted sum of the optional terms (UPGO, magnet,
        teacher). teacher_kl: of teacher to policy, unweighted.
      squared_advantage: of the raw advantages, each limited. target, squared_target: of the value targets.
      rho_clipped: decisions whose ratio was clipped.
      rho, squared_rho: of the unclipped ratios, for the effective sample size.
      kl: of behaviour to target, by the estimator (rho - 1) - log rho.
    """

    steps: float = 0.0
    policy: float = 0.0
    value: float = 0.0
    entropy: float = 0.0
    auxiliary: float = 0.0
    teacher_kl: float = 0.0
    squared_advantage: float = 0.0
    rho_clipped: float = 0.0
    rho: float = 0.0
    squared_rho: float = 0.0
    kl: float = 0.0
    target: float = 0.0
    squared_target: float = 0.0


COLUMNS = tuple(column.name for column in fields(LossStats))


@torch.no_grad()
def stack_stats(**parts: Tensor | float) -> Tensor:
    """Stack sums in the order of `COLUMNS` to one float64 [K] tensor, so that a device is read once per update.

    Args:
      parts: every column by its name, scalars: all tensors, or all numbers.
    """
    columns = [parts[name] for name in COLUMNS]
    tensors = [column for column in columns if isinstance(column, Tensor)]
    return torch.stack(tensors).double() if tensors else torch.tensor(columns, dtype=torch.float64)


def empty_stats(device: torch.device) -> Tensor:
    """float64 [K] zeros."""
    return torch.zeros(len(COLUMNS), dtype=torch.float64, device=device)


def sums_of(stacked: Tensor) -> LossStats:
    """Convert a tensor of columns to its record."""
    return LossStats(*stacked.tolist())
