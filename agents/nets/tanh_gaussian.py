"""The tanh Gaussian head: squashes normals into the bounds of a box, so that every action is within them.

Shape letters: ... leading axes, A = the flattened size of the action, Q points of the quadrature.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import GaussianHead
from league.agents.nets.kernels.distributions import gaussian_entropy, gaussian_log_densities, sample_gaussian
from league.envs.protocol import ActionSpec

MIN_MARGIN = 1e-6
"""A sample with |tanh| closer to 1 than this is put on the bound: float32 has about 17 steps in between."""

MARGIN_STEPS = 8
"""The same distance in float32 steps at the larger bound, for boxes that are narrow and far from 0."""

QUADRATURE_REACH = 6.0
QUADRATURE_POINTS = 49


class TanhGaussianHead(GaussianHead):
    """low + (high - low) * (tanh(x) + 1) / 2, with x drawn from the normals of `GaussianHead`.

    A sample so far out that its tanh rounds to 1 is put on the bound. There the policy has a probability instead of
    a density, the mass of the normal's tail. Both add up to 1, so the mean of the score is 0.

    Source: Haarnoja et al. 2018, Soft actor-critic, appendix C; for the bounds, as a censored normal (Tobin 1958).

    Raises:
      ValueError: the game takes no box, or one without width or bounds.
    """

    name = "tanh_gaussian"

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__(actions, config, generator)
        if not (math.isfinite(actions.low) and math.isfinite(actions.high) and actions.low < actions.high):
            raise ValueError(
                f"a squashed policy needs finite bounds, low below high, got [{actions.low}, {actions.high}]"
            )
        self.low, self.high = actions.low, actions.high
        step = torch.finfo(torch.float32).eps * max(abs(self.low), abs(self.high)) / (self.high - self.low)
        self.max_squashed = 1.0 - max(MIN_MARGIN, MARGIN_STEPS * step)
        self.max_raw = math.atanh(self.max_squashed)

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions float32 [..., *shape] within the bounds and log-densities from noise [..., A]."""
        mean, log_std = dist_params.chunk(2, dim=-1)
        actions = self._squash(sample_gaussian(mean, log_std, noise)[0])
        # The density of the rounded action, as the learner sees it: near the bounds rounding changes it visibly.
        return actions, self.log_prob(dist_params, actions)

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """Log-densities float32 [...] of actions [..., *shape]; on a bound, the log of the probability."""
        mean, log_std = dist_params.chunk(2, dim=-1)
        unit = (actions.reshape(mean.shape).to(mean.dtype) - self.low) * (2.0 / (self.high - self.low)) - 1.0
        on_bound = unit.abs() >= self.max_squashed
        # Each branch gets valid inputs even where it is not selected: 0 times infinity would be NaN.
        raw = torch.atanh(torch.where(on_bound, 0.0, unit))
        inside = gaussian_log_densities(mean, log_std, raw) - self._log_slope(raw)
        beyond = (unit.sign() * mean - self.max_raw) * torch.exp(-log_std)
        tail = torch.special.log_ndtr(torch.where(on_bound, beyond, 0.0))
        return torch.where(on_bound, tail, inside).sum(-1)

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """Differential entropy float32 [...] of the squashed action: that of the normals plus the mean log slope.

        It keeps falling as the policy moves beyond a bound, so that an entropy cost leads it back.
        """
        del actions
        mean, log_std = dist_params.chunk(2, dim=-1)
        # The trapezoid rule under a normal density is exact to rounding at this spacing.
        points = torch.linspace(-QUADRATURE_REACH, QUADRATURE_REACH, QUADRATURE_POINTS, device=mean.device)
        weights = torch.softmax(-0.5 * points.square(), dim=0).to(mean.dtype)
        raw = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * points.to(mean.dtype)
        return gaussian_entropy(log_std) + (self._log_slope(raw) * weights).sum((-1, -2))

    def mode(self, dist_params: Tensor) -> Tensor:
        """The squashed means float32 [..., *shape], which are medians of the actions."""
        return self._squash(dist_params.chunk(2, dim=-1)[0])

    def _squash(self, raw: Tensor) -> Tensor:
        unit = torch.tanh(raw)
        unit = torch.where(unit.abs() >= self.max_squashed, unit.sign(), unit)
        return self._shaped((self.low + (self.high - self.low) * 0.5 * (unit + 1.0)).clamp(self.low, self.high))

    def _log_slope(self, raw: Tensor) -> Tensor:
        """Logarithm of d action / d raw, elementwise; log(1 - tanh(x)^2) without cancellation."""
        slope = 2.0 * (math.log(2.0) - raw - nn.functional.softplus(-2.0 * raw))
        return slope + math.log((self.high - self.low) / 2.0)
