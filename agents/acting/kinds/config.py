"""Options of the built-in kinds of acting, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SampleConfig:
    """Options of `sample`: none."""


@dataclass(frozen=True)
class PerturbedConfig:
    """Options of `perturbed`, with which evolution strategies act.

    Fields:
      sigma: standard deviation of the perturbation of each weight; candidates of `cmaes` have their own.
      greedy: whether perturbed seats take the likeliest action; False for samples.
    """

    sigma: float = 0.02
    greedy: bool = False

    def problems(self) -> list[str]:
        """Every invalid option, one sentence each that starts with the field's name."""
        return [] if 0 < self.sigma < math.inf else [f"sigma: {self.sigma} must be greater than 0 and finite"]


ACTING_OPTIONS: Mapping[str, type] = {"sample": SampleConfig, "perturbed": PerturbedConfig}
"""Name of a registered kind of acting -> the record of its options."""

DEFAULT_ACTING = "sample"
