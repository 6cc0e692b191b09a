"""The sums over decisions that losses report: added over microbatches, stages and replicas, divided once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class LossStats:
    """Sums over the learnt-from decisions of a batch.

    Fields:
      steps: how many decisions.
      policy, value, entropy: the three terms, unweighted. extra: weighted sum of the optional terms (UPGO, magnet,
        teacher). teacher_kl: of teacher to policy, unweighted.
      squared_advantage: of the raw advantages. target, squared_target: of the value targets.
      rho_clipped: decisions whose ratio was cut.
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


def stack_stats(**parts: Tensor) -> Tensor:
    """Sums as one float64 [K] tensor in the order of `COLUMNS`, so that a device is asked once an update.

    Args:
      parts: every column by its name, scalars.
    """
    return torch.stack([parts[name].detach() for name in COLUMNS]).double()


def empty_stats(device: torch.device) -> Tensor:
    """float64 [K] zeros."""
    return torch.zeros(len(COLUMNS), dtype=torch.float64, device=device)


def sums_of(stacked: Tensor) -> LossStats:
    """The record that a tensor of columns stands for."""
    return LossStats(*stacked.tolist())
