"""One player's learner: a batch of unrolls in, the next version of its weights out.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from agents.learner.backend import StepBackend
from agents.learner.batch import batch_from
from agents.learner.config import LearnerConfig
from agents.learner.objective import Coefficients, LossSums
from agents.trajectory import Unrolls
from agents.weights import FlatParameters, Weights

SCALE_DECAY = 0.99
"""Decay per update of the running mean square of the advantages."""

KEEP_GOOD_EVERY = 50
"""Updates between copies of a finite state to roll back to."""


class NonFiniteError(Exception):
    """Updates stayed non-finite even after going back to the last finite state."""


@dataclass(frozen=True)
class UpdateReport:
    """What one update did; means are per learnt-from decision.

    Fields:
      version: after the update; trained_steps: decisions learnt from since the start.
      steps, stale_steps: decisions of this batch learnt from, and left out because they were too old.
      loss_policy, loss_value, entropy, kl, rho_clip_share: means. effective_sample_share: in (0, 1].
      gradient_norm: before clipping; skipped: the update was not finite and was left out.
      lag_mean, lag_p95, lag_max: age of the decisions in updates.
      learning_rate, entropy_cost: in force.
    """

    version: int
    trained_steps: int
    steps: int
    stale_steps: int
    loss_policy: float
    loss_value: float
    entropy: float
    kl: float
    rho_clip_share: float
    effective_sample_share: float
    gradient_norm: float
    skipped: bool
    lag_mean: float
    lag_p95: float
    lag_max: int
    learning_rate: float
    entropy_cost: float


class Learner:
    """Master weights, optimizer and counters of one player.

    Args:
      parameters: flat view of the network that `backend` trains.
      backend: leaves summed gradients in `parameters.gradients`.
      config: settings.
      device: where the network lives.
    """

    def __init__(
        self, parameters: FlatParameters, backend: StepBackend, config: LearnerConfig, *, device: torch.device
    ) -> None:
        self._parameters = parameters
        self._backend = backend
        self._config = config
        self._device = device
        self._optimizer = torch.optim.Adam(
            [parameters.values.requires_grad_(False)], lr=config.learning_rate, eps=config.adam_eps, fused=True
        )
        parameters.values.grad = parameters.gradients
        self.version = 0
        self.trained_steps = 0
        self.skipped_updates = 0
        self._mean_square = 0.0
        self._scale_weight = 0.0
        self._bad_in_a_row = 0
        self._good = self.save()

    def update(self, unrolls: Unrolls, *, share: float) -> UpdateReport:
        """Learn from `config.batch_rows` unrolls.

        Args:
          unrolls: the batch.
          share: part of the budget spent, in [0, 1]; schedules read it.
        Raises:
          NonFiniteError: `rollback_after` updates in a row were not finite, twice over without a good one in between.
        """
        config = self._config
        ages = self.version - unrolls.versions[unrolls.valid]
        batch = batch_from(unrolls, oldest_version=self.version - config.max_policy_lag, device=self._device)
        coefficients = Coefficients(
            entropy_cost=config.entropy_cost_at(share) , advantage_scale=self._advantage_scale()
        )
        self._parameters.gradients.zero_()
        sums = self._backend.accumulate(batch, coefficients)
        learning_rate = config.learning_rate_at(share)
        norm = self._step(sums, learning_rate)
        finite = math.isfinite(norm)
        self._after(sums, finite=finite)
        steps = max(sums.steps, 1)
        return UpdateReport(
            version=self.version,
            trained_steps=self.trained_steps,
            steps=sums.steps,
            stale_steps=int(np.count_nonzero(ages > config.max_policy_lag)),
            loss_policy=sums.policy / steps,
            loss_value=sums.value / steps,
            entropy=sums.entropy / steps,
            kl=sums.kl / steps,
            rho_clip_share=sums.rho_clipped / steps,
            effective_sample_share=sums.rho**2 / (steps * sums.squared_rho) if sums.squared_rho else 0.0,
            gradient_norm=norm,
            skipped=not finite,
            lag_mean=float(ages.mean()) if ages.size else 0.0,
            lag_p95=float(np.percentile(ages, 95)) if ages.size else 0.0,
            lag_max=int(ages.max()) if ages.size else 0,
            learning_rate=learning_rate,
            entropy_cost=coefficients.entropy_cost,
        )

    def publish(self) -> Weights:
        """The newest weights. Raises WeightsError where one is not finite."""
        return self._parameters.publish(self.version)

    def reset(self, weights: Weights) -> None:
        """Start again from given weights: fresh optimizer and scales; version and step counts go on."""
        self._parameters.load(weights)
        self._optimizer.state.clear()
        self._mean_square = self._scale_weight = 0.0
        self._bad_in_a_row = 0
        self._good = self.save()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Restart state as plain arrays: weights, optimizer moments, counters, running scales."""
        state = self._optimizer.state.get(self._parameters.values, {})
        empty = np.zeros(0, np.float32)
        return {
            "values": self._parameters.values.cpu().numpy().copy(),
            "exp_avg": state["exp_avg"].cpu().numpy().copy() if state else empty,
            "exp_avg_sq": state["exp_avg_sq"].cpu().numpy().copy() if state else empty,
            "adam_step": np.array(float(state["step"]) if state else 0.0, np.float32),
            "counters": np.array([self.version, self.trained_steps, self.skipped_updates, self._bad_in_a_row], np.int64),
            "scales": np.array([self._mean_square, self._scale_weight], np.float64),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on from `save`d arrays.

        Raises:
          ValueError: the arrays are for a network of another size.
        """
        values = np.array(saved["values"], np.float32)
        if values.shape != tuple(self._parameters.values.shape):
            raise ValueError(f"saved for {values.size} parameters, the network has {self._parameters.values.numel()}")
        self._parameters.values.copy_(torch.from_numpy(values))
        self._restore_moments(saved)
        self.version, self.trained_steps, self.skipped_updates, self._bad_in_a_row = (
            int(value) for value in np.asarray(saved["counters"], np.int64)
        )
        self._mean_square, self._scale_weight = (float(value) for value in np.asarray(saved["scales"], np.float64))
        self._good = self.save()

    def close(self) -> None:
        """Release the backend."""
        self._backend.close()

    def _restore_moments(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        self._optimizer.state.clear()
        if not saved["exp_avg"].size:
            return
        moments = {name: torch.from_numpy(np.array(saved[name], np.float32)).to(self._device) for name in ("exp_avg", "exp_avg_sq")}
        step = torch.tensor(float(np.asarray(saved["adam_step"], np.float32)), dtype=torch.float32, device=self._device)
        self._optimizer.state[self._parameters.values] = {"step": step, **moments}

    def _advantage_scale(self) -> float:
        if not self._config.normalise_advantages or self._scale_weight == 0.0:
            return 1.0
        return max(math.sqrt(self._mean_square / self._scale_weight), 1e-3)

    def _step(self, sums: LossSums, learning_rate: float) -> float:
        """The shared tail: divide by the global count, clip the global norm, step. Returns the norm before clipping."""
        gradients = self._parameters.gradients
        gradients.div_(max(sums.steps, 1))
        norm = float(torch.linalg.vector_norm(gradients))
        if not math.isfinite(norm):
            return norm
        if norm > self._config.max_grad_norm:
            gradients.mul_(self._config.max_grad_norm / norm)
        self._optimizer.param_groups[0]["lr"] = learning_rate
        self._optimizer.step()
        return norm

    def _after(self, sums: LossSums, *, finite: bool) -> None:
        if not finite:
            self.skipped_updates += 1
            self._bad_in_a_row += 1
            if self._bad_in_a_row % self._config.rollback_after == 0:
                self._roll_back()
            return
        self._bad_in_a_row = 0
        self.version += 1
        self.trained_steps += sums.steps
        self._mean_square = SCALE_DECAY * self._mean_square + (1 - SCALE_DECAY) * sums.squared_advantage / max(sums.steps, 1)
        self._scale_weight = SCALE_DECAY * self._scale_weight + (1 - SCALE_DECAY)
        if self.version % KEEP_GOOD_EVERY == 0:
            self._good = self.save()

    def _roll_back(self) -> None:
        if self._bad_in_a_row >= 2 * self._config.rollback_after:
            raise NonFiniteError(
                f"{self._bad_in_a_row} updates in a row had a gradient that is not finite, also from the last good state: "
                "look at the rewards and observations of the env, then lower learner.learning_rate"
            )
        self._parameters.values.copy_(torch.from_numpy(np.array(self._good["values"], np.float32)))
        self._restore_moments(self._good)
