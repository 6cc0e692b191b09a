"""What every objective needs of a microbatch: the decisions time-major, the optional terms, the columns of the report.

Shape letters: B rows, T unroll length, P policy parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.learner.batch import Batch
from agents.learner.config import LearnerConfig
from agents.learner.magnet import has_magnet, magnet_sum
from agents.learner.sums import columns_of
from agents.losses.policy import known, policy_gradient_loss
from agents.losses.returns import upgo
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput


@dataclass(frozen=True)
class Decisions:
    """T decisions of B rows, time-major.

    Fields:
      parameters: float32 [B, T, P], as the network answered them; actions: [B, T, ...].
      log_probs: float32 [T, B] of the actions; values: float32 [T, B]. These and the parameters carry gradients.
      bootstrap: float32 [B], the value behind the last decision, a constant.
      log_rhos: float32 [T, B], log-ratio of the trained to the behaviour policy, a constant; garbage in invalid steps.
      behaviour, rewards, discounts: float32 [T, B], gamma applied; valid, learn: bool [T, B].
    """

    parameters: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    bootstrap: Tensor
    log_rhos: Tensor
    behaviour: Tensor
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor


def decisions_of(output: NetworkOutput, batch: Batch, *, head: Head, gamma: float) -> Decisions:
    """The decisions of a microbatch and what the network says of them."""
    steps = batch.valid.shape[1]
    parameters = output.logits[:, :steps]
    log_probs = head.log_prob(parameters, batch.actions).t()
    values = output.values.t()
    behaviour, valid = batch.log_probs.t(), batch.valid.t().contiguous()
    return Decisions(
        parameters=parameters,
        actions=batch.actions,
        log_probs=log_probs,
        values=values[:steps],
        bootstrap=values[steps].detach(),
        log_rhos=(log_probs.detach() - behaviour).contiguous(),
        behaviour=behaviour,
        rewards=batch.rewards.t().contiguous(),
        discounts=(batch.discounts * gamma).t().contiguous(),
        valid=valid,
        learn=batch.learn.t(),
    )


def entropy_of(decisions: Decisions, head: Head) -> Tensor:
    """Entropy summed over the learnt-from decisions, a scalar."""
    return known(head.entropy(decisions.parameters, decisions.actions).t(), decisions.learn).sum()


def check_optional_terms(config: LearnerConfig, head: Head) -> None:
    """Refuse terms that the policy's distribution does not have.

    Raises:
      ValueError: a magnet is asked for and the head has no known KL.
    """
    if config.magnet_cost and not has_magnet(head):
        raise ValueError(
            f"magnet_cost: the KL between two policies of a {type(head).__name__} is not known; set it to 0"
        )


def optional_terms(
    decisions: Decisions, batch: Batch, *, head: Head, config: LearnerConfig, advantage_scale: float
) -> Tensor:
    """Weighted sum of the terms that the config switches on, a scalar: UPGO, and the KL to the slow copy."""
    total = decisions.values.new_zeros(())
    if config.upgo_cost:
        values = decisions.values.detach().contiguous()
        returns = upgo(
            decisions.log_rhos,
            decisions.discounts,
            decisions.rewards,
            values,
            decisions.bootstrap,
            clip_pg_rho=config.clip_pg_rho,
            valid=decisions.valid,
        )
        advantages = returns.advantages / advantage_scale
        total = total + config.upgo_cost * policy_gradient_loss(decisions.log_probs, advantages, valid=decisions.learn)
    if config.magnet_cost:
        total = total + config.magnet_cost * magnet_sum(head, decisions.parameters, batch)
    return total


@torch.no_grad()
def report_of(
    decisions: Decisions,
    *,
    policy: Tensor,
    value: Tensor,
    entropy: Tensor,
    extra: Tensor,
    advantages: Tensor,
    targets: Tensor,
    clipped: Tensor,
) -> Tensor:
    """The columns of a microbatch.

    Args:
      policy, value, entropy, extra: the terms.
      advantages: float32 [T, B], raw; targets: float32 [T, B], of the values.
      clipped: bool [T, B], where the ratio was cut.
    """
    learn = decisions.learn
    log_rhos = known(decisions.log_rhos, learn)
    rhos = known(log_rhos.exp(), learn)
    count = learn.sum()
    steps = count.to(rhos.dtype)
    total_rho = rhos.sum()
    return columns_of(
        steps=steps,
        policy=policy,
        value=value,
        entropy=entropy,
        extra=extra,
        squared_advantage=known(advantages, learn).square().sum(),
        rho_clipped=(clipped & learn).sum().to(rhos.dtype),
        rho=total_rho,
        squared_rho=rhos.square().sum(),
        kl=total_rho - steps - log_rhos.sum(),
        target=known(targets, learn).sum(),
        squared_target=known(targets, learn).square().sum(),
    )
