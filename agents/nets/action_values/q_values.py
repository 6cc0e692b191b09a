"""The head of a value learner: values of numbered actions, dueling or plain, and a nearly greedy policy over them.

Shape letters: ... any leading axes, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import CategoricalHead
from league.agents.nets.kernels.distributions import (
    ILLEGAL_LOGIT,
    categorical_entropy,
    categorical_log_prob,
    categorical_log_prob_and_entropy,
    mask_logits,
    probabilities,
    sample_categorical,
)
from league.envs.protocol import ActionSpec


@dataclass(frozen=True)
class QValuesConfig:
    """Options of `q_values`.

    Fields:
      dueling: an action's value is the state's value plus the action's advantage over the mean of the legal ones; False
        for one output for each action, beside which the state's value is not learnt.
      epsilon: probability of a random legal action where the head samples, as frozen opponents and evaluations do. A
        little of it keeps them from replaying one game.
    """

    dueling: bool = True
    epsilon: float = 0.01

    def problems(self) -> list[str]:
        return [] if 0 <= self.epsilon <= 1 else [f"epsilon: {self.epsilon} is not in [0, 1]"]


class QValuesHead(CategoricalHead):
    """Values of A actions; dist_params are advantages, or values where not dueling, [..., A], illegal ones -1e9.

    Its distribution takes the legal action of the largest value, or with probability epsilon a random legal one.

    Source: Wang et al. 2016, Dueling network architectures, equation 9, with the mean over legal actions alone.

    Raises:
      ValueError: the game takes another kind of action.
    """

    def __init__(
        self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator, options: QValuesConfig
    ) -> None:
        if actions.kind != "categorical":
            raise ValueError(f"head: q_values has a value for each numbered action, the game takes {actions.kind}")
        super().__init__(actions, config, generator)
        self.dueling, self.epsilon = options.dueling, options.epsilon

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Float32 [..., A], dueling advantages with a mean of 0 over the legal actions."""
        masked = mask_logits(outputs, action_mask)
        if not self.dueling:
            return masked
        if action_mask is None:
            return masked - masked.mean(-1, keepdim=True)
        counts = action_mask.sum(-1, keepdim=True).clamp(min=1)
        mean = torch.where(action_mask, masked, 0.0).sum(-1, keepdim=True) / counts
        return torch.where(action_mask, masked - mean, ILLEGAL_LOGIT)

    def action_values(self, dist_params: Tensor, values: Tensor) -> Tensor:
        """Q float32 [..., A] of dist_params [..., A] and state values [...]; about -1e9 of illegal actions."""
        return dist_params + values.unsqueeze(-1) if self.dueling else dist_params

    def expected_values(self, dist_params: Tensor, values: Tensor) -> Tensor:
        """Value float32 [...] of the nearly greedy policy, where `values` alone is a mean over the legal actions."""
        known = self.action_values(dist_params, values)
        return (probabilities(self._log_policy(dist_params)) * known).sum(-1)

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """As in the base, of the nearly greedy policy."""
        return sample_categorical(self._log_policy(dist_params), noise.squeeze(-1))

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """As in the base, of the nearly greedy policy."""
        return categorical_log_prob(self._log_policy(dist_params), actions)

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """As in the base, of the nearly greedy policy."""
        del actions
        return categorical_entropy(self._log_policy(dist_params))

    def log_prob_and_entropy(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """As in the base, of the nearly greedy policy."""
        return categorical_log_prob_and_entropy(self._log_policy(dist_params), actions)

    def probabilities(self, dist_params: Tensor) -> Tensor | None:
        """As in the base, of the nearly greedy policy."""
        return probabilities(self._log_policy(dist_params))

    def _log_policy(self, dist_params: Tensor) -> Tensor:
        """Log-probabilities float32 [..., A], -1e9 where an action has none; NaN in a row with a value that is none."""
        legal = dist_params > ILLEGAL_LOGIT / 2
        counts = legal.sum(-1, keepdim=True).clamp(min=1)
        best, greedy = dist_params.max(-1, keepdim=True)
        chances = torch.where(legal, self.epsilon / counts, 0.0)
        chances.scatter_add_(-1, greedy, torch.full_like(best, 1.0 - self.epsilon))
        logs = torch.where(chances > 0, chances.log(), ILLEGAL_LOGIT)
        return logs + 0.0 * best
