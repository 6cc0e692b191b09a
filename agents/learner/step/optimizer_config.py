"""Options of the built-in optimizers, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class AdamConfig:
    """Options of `adam`.

    Fields:
      eps: added to the root of the second moment.
      betas: weights of the old mean in the running means of the gradient and of its square.
      weight_decay: part of each weight that a step of size 1 takes away, independent of the gradient (AdamW).
    Source: Kingma and Ba 2015, Adam; Loshchilov and Hutter 2019, AdamW.
    """

    eps: float = 1e-5
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0

    def problems(self) -> list[str]:
        """Every invalid option, one sentence each that starts with the field's name."""
        found = [*_positive(eps=self.eps)]
        if self.weight_decay < 0.0 or self.weight_decay > 1.0:
            found.append(f"weight_decay: {self.weight_decay} must lie in [0, 1]")
        if not all(0.0 <= beta < 1.0 for beta in self.betas):
            found.append(f"betas: {list(self.betas)} must lie in [0, 1)")
        return found


@dataclass(frozen=True)
class RMSPropConfig:
    """Options of `rmsprop`.

    Fields:
      eps: added to the root of the mean square.
      eps_inside: whether it is added to the mean square itself, under the root, as in A3C and in IMPALA.
      decay: weight of the old mean in the running mean of the squared gradient.
      momentum: part of the last step that is added to the next; 0 for none.
    Source: Mnih et al. 2016, A3C, section 4; Espeholt et al. 2018, IMPALA, appendix D (decay 0.99, no momentum, eps 0.1
    of summed gradients).
    """

    eps: float = 1e-5
    eps_inside: bool = False
    decay: float = 0.99
    momentum: float = 0.0

    def problems(self) -> list[str]:
        """Every invalid option, one sentence each that starts with the field's name."""
        found = [*_positive(eps=self.eps)]
        for name in ("decay", "momentum"):
            if not 0.0 <= getattr(self, name) < 1.0:
                found.append(f"{name}: {getattr(self, name)} must lie in [0, 1)")
        return found


@dataclass(frozen=True)
class AdagradConfig:
    """Options of `adagrad`.

    Fields:
      eps: added to the root of the sum of squares.
    Source: Duchi et al. 2011, Adaptive subgradient methods; Dean et al. 2012, DistBelief, section 4.1.
    """

    eps: float = 1e-10

    def problems(self) -> list[str]:
        """Every invalid option, one sentence each that starts with the field's name."""
        return [*_positive(eps=self.eps)]


OPTIMIZER_OPTIONS: Mapping[str, type] = {"adagrad": AdagradConfig, "adam": AdamConfig, "rmsprop": RMSPropConfig}
"""Name of a registered optimizer -> the record of its options."""


def _positive(**values: float) -> Iterator[str]:
    for name, value in values.items():
        if value <= 0.0:
            yield f"{name}: {value} must be greater than 0"
