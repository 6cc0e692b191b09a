"""A loss: V-trace with a Huber value loss, which an outlying return moves less than a squared one."""

from dataclasses import dataclass

import torch
from torch.nn.functional import huber_loss

from league.agents.learner.algorithms.actor_critic import ActorCritic, Terms
from league.agents.learner.algorithms.config import ActorCriticConfig
from league.agents.learner.algorithms.loss_inputs import LossInputs, vtrace_of
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.action_groups import grouped_policy_gradient_loss
from league.agents.nets.heads import Head


@dataclass(frozen=True)
class HuberConfig(ActorCriticConfig):
    """Its options, beside those of every actor-critic: the error above which the loss grows linearly."""

    delta: float = 1.0

    def problems(self) -> list[str]:
        """Sentences on values that cannot work; each begins with the field's name."""
        return super().problems() + ([] if self.delta > 0 else [f"delta: {self.delta} must be greater than 0"])


class HuberObjective(ActorCritic):
    """Names its policy and value terms; the frame adds the entropy, the optional terms and the metrics."""

    def __init__(self, config: LearnerConfig, head: Head, options: HuberConfig) -> None:
        super().__init__(config, head, options)
        self._delta = options.delta

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        """Sums over the T decisions of B rows that are learnt from; the update divides by their number."""
        returns = vtrace_of(inputs, inputs.groups.log_rhos, options=self._options)
        targets = returns.targets.mean(0)
        errors = huber_loss(inputs.values, targets, reduction="none", delta=self._delta)
        return Terms(
            policy=grouped_policy_gradient_loss(
                inputs.groups.log_probs, returns.advantages / advantage_scale, valid=inputs.learn
            ),
            value=torch.where(inputs.learn, errors, 0.0).sum(),
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(inputs.groups.log_rhos > 0).any(0),
        )
