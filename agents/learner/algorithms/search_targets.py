"""Learning from searches: the policy moves to that of the search, the value to how the game ended.

Shape letters: B rows, T unroll length, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from league.agents.learner.algorithms.actor_critic import ActorCritic, Terms
from league.agents.learner.algorithms.config import SearchTargetsConfig
from league.agents.learner.algorithms.loss_inputs import LossInputs
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.policy import zero_invalid
from league.agents.losses.returns import gae
from league.agents.losses.value import value_loss
from league.agents.nets.heads import CategoricalHead, Head


class SearchTargets(ActorCritic):
    """Cross-entropy to the policy of the search, and half the squared error to the return.

    The return is the outcome where `lambda_` is 1; below, that of TD(lambda) over the values that searches found. A
    decision whose search policy is all zeros was not searched: the value alone learns from it. Old searches are
    as right as new ones about the positions that they met, so that rows may be replayed.

    Source: Silver et al. 2017, AlphaGo Zero, methods; 2018, AlphaZero.
    """

    needs_fresh = False
    learns_from = ("search_policy", "search_value")

    _options: SearchTargetsConfig

    def __init__(self, config: LearnerConfig, head: Head, options: SearchTargetsConfig) -> None:
        super().__init__(config, head, options)
        if not isinstance(head, CategoricalHead):
            raise ValueError(
                f"search_targets: searches number their moves, a {type(head).__name__} has no logit of each"
            )

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        """As in the base; there is no advantage, and no ratio."""
        del advantage_scale
        assert batch.search_policy is not None and batch.search_value is not None, "see `learns_from`"
        # the marker after a truncation was not searched: the step before it bootstraps from the network there
        found = torch.where(inputs.valid, batch.search_value.t(), inputs.values.detach())
        lambda_ = self._options.lambda_
        gained = gae(inputs.discounts, inputs.rewards, found, inputs.bootstrap, lambda_=lambda_, valid=inputs.valid)
        targets = gained + found
        return Terms(
            policy=search_policy_loss(inputs.dist_params, batch.search_policy, learn=batch.learn),
            value=value_loss(inputs.values, targets, valid=inputs.learn),
            advantages=targets - inputs.values.detach(),
            targets=targets,
            clipped=torch.zeros_like(inputs.learn),
        )


def search_policy_loss(logits: Tensor, search_policy: Tensor, *, learn: Tensor) -> Tensor:
    """-sum of search_policy * log softmax(logits) over the decisions that are learnt from, a scalar.

    Args:
      logits, search_policy: float32 [B, T, A]; illegal actions have a probability of 0. learn: bool [B, T].
    """
    log_policy = torch.log_softmax(logits, dim=-1)
    terms = torch.where(search_policy > 0, search_policy * log_policy, 0.0).sum(-1)
    return -zero_invalid(terms, learn).sum()
