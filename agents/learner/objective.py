"""The V-trace actor-critic loss of one microbatch, as sums over its decisions.

Shape letters: B rows, T unroll length. Networks answer batch-major [B, T+1]; losses work time-major [T, B].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.learner.batch import Batch
from agents.learner.config import LearnerConfig
from agents.losses.vtrace import vtrace
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput


@dataclass(frozen=True)
class Coefficients:
    """What changes from update to update: entropy weight, and the root mean square that advantages are divided by."""

    entropy_cost: float
    advantage_scale: float


@dataclass
class LossSums:
    """Sums over the learnt-from decisions of a batch; add microbatches up and divide by `steps` once.

    policy, value, entropy: the three terms unweighted; squared_advantage: of the raw advantages; rho_clipped: decisions
    whose ratio was cut; rho, squared_rho: of the unclipped ratios, for the effective sample size; kl: of
    behaviour to target, by the estimator (rho - 1) - log rho.
    """

    steps: int = 0
    policy: float = 0.0
    value: float = 0.0
    entropy: float = 0.0
    squared_advantage: float = 0.0
    rho_clipped: float = 0.0
    rho: float = 0.0
    squared_rho: float = 0.0
    kl: float = 0.0

    def add(self, other: LossSums) -> None:
        """Add another microbatch's sums to these."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def vtrace_loss(
    output: NetworkOutput, batch: Batch, *, head: Head, config: LearnerConfig, coefficients: Coefficients
) -> tuple[Tensor, LossSums]:
    """Summed loss of a microbatch (differentiate this) and its parts.

    Args:
      output: the network on all T+1 observations of `batch`.
      head: turns parameters into log-probabilities and entropy.
    Returns:
      scalar float32 loss, a sum; the parts as plain numbers.
    """
    steps = batch.actions.shape[1]
    parameters = output.logits[:, :steps]
    log_probs = head.log_prob(parameters, batch.actions)
    log_rhos = (log_probs.detach() - batch.log_probs).t()
    values = output.values.detach().t()
    returns = vtrace(
        log_rhos.contiguous(),
        (batch.discounts * config.gamma).t().contiguous(),
        batch.rewards.t().contiguous(),
        values[:steps].contiguous(),
        values[steps],
        clip_rho=config.clip_rho,
        clip_c=config.clip_c,
        clip_pg_rho=config.clip_pg_rho,
        lambda_=config.lambda_,
        valid=batch.valid.t().contiguous(),
    )
    learn = batch.learn
    count = learn.to(torch.float32)
    advantages = returns.advantages.t() * count
    policy = -(advantages / coefficients.advantage_scale * log_probs).sum()
    value = 0.5 * ((returns.targets.t() - output.values[:, :steps]).square() * count).sum()
    entropy = (head.entropy(parameters) * count).sum()
    loss = policy + config.value_cost * value - coefficients.entropy_cost * entropy
    return loss, _sums(policy, value, entropy, advantages=advantages, log_rhos=log_rhos.t(), count=count, config=config)


@torch.no_grad()
def _sums(
    policy: Tensor,
    value: Tensor,
    entropy: Tensor,
    *,
    advantages: Tensor,
    log_rhos: Tensor,
    count: Tensor,
    config: LearnerConfig,
) -> LossSums:
    rhos = log_rhos.exp()
    clip = torch.inf if config.clip_rho is None else config.clip_rho
    kept = rhos * count
    columns = torch.stack(
        [
            count.sum(),
            policy,
            value,
            entropy,
            advantages.square().sum(),
            ((rhos > clip) * count).sum(),
            kept.sum(),
            (kept * rhos).sum(),
            ((rhos - 1.0 - log_rhos) * count).sum(),
        ]
    ).tolist()
    return LossSums(int(columns[0]), *columns[1:])
