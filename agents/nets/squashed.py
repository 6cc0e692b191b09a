"""The squashed Gaussian head: normals through tanh into the bounds of a box, so that every action is within them.

Shape letters: ... leading axes, A = the flattened size of the action, Q points of the quadrature.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from agents.nets.config import NetworkConfig
from agents.nets.distributions import gaussian_entropy, gaussian_log_prob, sample_gaussian
from agents.nets.heads import GaussianHead, require_kind
from envs.protocol import ActionSpec

MAX_SQUASHED = 1.0 - 1e-6
"""Largest |tanh|: float32 has about 17 steps between it and 1, so that an action can still be traced back."""

QUADRATURE_REACH = 6.0
QUADRATURE_POINTS = 49


class SquashedGaussianHead(GaussianHead):
    """low + (high - low) * (tanh(x) + 1) / 2 of x from the normals that the parameters state, as in `GaussianHead`.

    Source: Haarnoja et al. 2018, Soft actor-critic, appendix C.

    Raises:
      ValueError: the box has no width or no bounds.
    """

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__(actions, config, generator)
        require_kind(actions, "box", head="squashed_gaussian")
        if not (math.isfinite(actions.low) and math.isfinite(actions.high) and actions.low < actions.high):
            raise ValueError(
                f"a squashed policy needs finite bounds, low below high, got [{actions.low}, {actions.high}]"
            )
        self.low, self.high = actions.low, actions.high

    def sample(self, parameters: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions float32 [..., *shape] within the bounds and log-densities from noise [..., A]."""
        mean, log_std = parameters.chunk(2, dim=-1)
        actions = self._squash(sample_gaussian(mean, log_std, noise)[0])
        # Of the rounded action, as the learner sees it: near the bounds rounding moves the density visibly.
        return actions, self.log_prob(parameters, actions)

    def log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor:
        """Log-densities float32 [...] of actions [..., *shape]."""
        mean, log_std = parameters.chunk(2, dim=-1)
        unit = (actions.reshape(mean.shape).to(mean.dtype) - self.low) * (2.0 / (self.high - self.low)) - 1.0
        raw = torch.atanh(unit.clamp(-MAX_SQUASHED, MAX_SQUASHED))
        return gaussian_log_prob(mean, log_std, raw) - self._log_slope(raw).sum(-1)

    def entropy(self, parameters: Tensor, actions: Tensor | None = None) -> Tensor:
        """Differential entropy float32 [...] of the squashed action: that of the normals plus the mean log-slope."""
        del actions
        mean, log_std = parameters.chunk(2, dim=-1)
        # The trapezoid rule under a normal density is exact to rounding at this spacing.
        points = torch.linspace(-QUADRATURE_REACH, QUADRATURE_REACH, QUADRATURE_POINTS, device=mean.device)
        weights = torch.softmax(-0.5 * points.square(), dim=0).to(mean.dtype)
        raw = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * points.to(mean.dtype)
        return gaussian_entropy(log_std) + (self._log_slope(raw) * weights).sum((-1, -2))

    def mode(self, parameters: Tensor) -> Tensor:
        """The squashed means float32 [..., *shape], which are the medians of the actions."""
        return self._squash(parameters.chunk(2, dim=-1)[0])

    def _squash(self, raw: Tensor) -> Tensor:
        unit = torch.tanh(raw).clamp(-MAX_SQUASHED, MAX_SQUASHED)
        return self._shaped((self.low + (self.high - self.low) * 0.5 * (unit + 1.0)).clamp(self.low, self.high))

    def _log_slope(self, raw: Tensor) -> Tensor:
        """Logarithm of d action / d raw, elementwise; log(1 - tanh(x)^2) without cancellation."""
        slope = 2.0 * (math.log(2.0) - raw - nn.functional.softplus(-2.0 * raw))
        return slope + math.log((self.high - self.low) / 2.0)
