"""What a learner may be told: batch, loss weights, schedules, precision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LearnerConfig:
    """Settings of one learner; the defaults are those that learnt Connect Four and poker fastest when measured.

    Fields:
      unroll_length: T, decisions of one seat in one unroll.
      batch_rows: unrolls in one update.
      microbatches: M, equal blocks of rows whose gradients are summed before the update.
      backend: who computes the gradients ("single").
      learning_rate, learning_rate_end: Adam's step size, falling linearly over the budget.
      adam_eps: added to the root of the second moment.
      entropy_cost, entropy_cost_end: weight of the entropy per unit of advantage, falling linearly over the budget.
        Far above the usual 0.01: with less, self-play repeats a few lines and learns nothing more.
      value_cost: weight of half the squared value error.
      gamma: discount of one own decision.
      lambda_: how far V-trace looks beyond one step.
      clip_rho, clip_c, clip_pg_rho: V-trace's clips of the importance ratios; null for no clip.
      normalise_advantages: divide advantages by their running root mean square.
      max_grad_norm: global norm that the gradient is clipped to.
      max_policy_lag: updates; decisions of older behaviour are masked out and counted.
      precision: "float32", "bfloat16" or "auto" (bfloat16 where a probe at the start finds it faster).
      rollback_after: consecutive non-finite updates after which the last finite state is restored.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    unroll_length: int = 16
    batch_rows: int = 128
    microbatches: int = 1
    backend: str = "single"
    learning_rate: float = 2e-3
    learning_rate_end: float = 1e-4
    adam_eps: float = 1e-5
    entropy_cost: float = 0.4
    entropy_cost_end: float = 0.1
    value_cost: float = 1.0
    gamma: float = 0.99
    lambda_: float = 0.95
    clip_rho: float | None = 1.0
    clip_c: float | None = 1.0
    clip_pg_rho: float | None = 1.0
    normalise_advantages: bool = True
    max_grad_norm: float = 1.0
    max_policy_lag: int = 200
    precision: str = "auto"
    rollback_after: int = 3

    def learning_rate_at(self, share: float) -> float:
        """Step size when `share` of the budget is spent, share in [0, 1]."""
        return _linear(self.learning_rate, self.learning_rate_end, share)

    def entropy_cost_at(self, share: float) -> float:
        """Entropy weight when `share` of the budget is spent, share in [0, 1]."""
        return _linear(self.entropy_cost, self.entropy_cost_end, share)

    def problems(self) -> list[str]:
        """Every setting that cannot work, one sentence each, the field named first."""
        found = []
        if self.unroll_length < 1:
            found.append(f"unroll_length: {self.unroll_length} must be at least 1")
        if self.microbatches < 1 or self.batch_rows < 1 or self.batch_rows % max(1, self.microbatches):
            found.append(f"batch_rows: {self.batch_rows} rows do not cut into {self.microbatches} equal microbatches")
        if not 0 < self.gamma <= 1:
            found.append(f"gamma: {self.gamma} is not in (0, 1]")
        if not 0 <= self.lambda_ <= 1:
            found.append(f"lambda_: {self.lambda_} is not in [0, 1]")
        if self.precision not in PRECISIONS:
            found.append(f"precision: {self.precision!r} is none of {', '.join(PRECISIONS)}")
        for name in ("learning_rate", "adam_eps", "max_grad_norm"):
            if getattr(self, name) <= 0:
                found.append(f"{name}: {getattr(self, name)} must be greater than 0")
        return found


PRECISIONS = ("auto", "float32", "bfloat16")


def _linear(start: float, end: float, share: float) -> float:
    return start + (end - start) * min(max(share, 0.0), 1.0)
