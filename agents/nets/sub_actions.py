"""Sub-actions as masked categoricals, and the head whose sub-actions are independent of each other.

Shape letters: ... leading axes, H sub-actions, n choices of one sub-action, A entries of the action mask,
P dist_params. A sub-action without a legal choice is unused: its answer, log-probability and entropy are 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import POLICY_GAIN, Head, require_kind
from league.agents.nets.kernels.distributions import (
    ILLEGAL_LOGIT,
    categorical_entropy,
    categorical_log_prob,
    categorical_log_prob_and_entropy,
    mask_logits,
    mix_uniform,
    sample_categorical,
)
from league.envs.protocol import ActionSpec

Choose = Callable[[int, Tensor], Tensor]
"""(number of the sub-action, its masked logits [..., n]) -> its choice int64 [...]."""


@dataclass(frozen=True)
class SubAction:
    """One sub-action and its chosen value.

    Fields:
      logits: masked float32 [..., n].
      used: bool [...], True if any choice is legal.
      action: int64 [...], 0 where not used.
    """

    logits: Tensor
    used: Tensor
    action: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Log-probability float32 [...] of the choice, 0 where unused."""
        return torch.where(self.used, categorical_log_prob(self.logits, self.action), 0.0)

    @property
    def entropy(self) -> Tensor:
        """Entropy float32 [...] in nats, 0 where unused."""
        return torch.where(self.used, categorical_entropy(self.logits), 0.0)

    @property
    def log_prob_and_entropy(self) -> Tensor:
        """Both float32 [2, ...], from one softmax."""
        both = categorical_log_prob_and_entropy(self.logits, self.action)
        return torch.where(self.used, torch.stack(both), 0.0)


def num_sub_actions(head: Head) -> int:
    """H for a head with sub-actions, else 0: the log-probabilities recorded beside that of the whole action."""
    return head.num_noise if isinstance(head, SubActionsHead) else 0


def sub_action_of(number: int, logits: Tensor, choose: Choose) -> SubAction:
    """Choose the sub-action of this number from masked logits [..., n]."""
    used = ~(logits.detach().amax(-1) <= ILLEGAL_LOGIT / 2)  # true of NaN as well, which must not pass for unused
    return SubAction(logits, used, torch.where(used, choose(number, logits), 0))


def drawn_by(noise: Tensor) -> Choose:
    """A `Choose` that samples with uniform noise [..., H]."""
    return lambda number, logits: sample_categorical(logits, noise[..., number])[0]


def given_by(actions: Tensor) -> Choose:
    """A `Choose` that repeats given actions [..., H], integers of any dtype."""
    chosen = actions.long()
    return lambda number, logits: chosen[..., number]


def likeliest(number: int, logits: Tensor) -> Tensor:
    """A `Choose` that takes the largest logit."""
    del number
    return logits.argmax(-1)


class SubActionsHead(nn.Module, ABC):
    """Base of heads with sub-actions int64 [..., H]; a subclass defines the dependence between sub-actions."""

    num_noise: int

    @abstractmethod
    def sub_actions(self, dist_params: Tensor, choose: Choose) -> list[SubAction]:
        """[H] sub-actions under dist_params [..., P], chosen in order."""

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions int64 [..., H] and log-probabilities float32 [...] from noise [..., H]."""
        actions, by_sub_action = self.sample_sub_actions(dist_params, noise)
        return actions, by_sub_action.sum(0)

    def sample_sub_actions(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """As `sample`, with the log-probabilities float32 [H, ...] of the sub-actions."""
        sub_actions = self.sub_actions(dist_params, drawn_by(noise))
        return _actions(sub_actions), torch.stack([sub_action.log_prob for sub_action in sub_actions])

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """Log-probabilities float32 [...] of actions [..., H]."""
        return _sum(sub_action.log_prob for sub_action in self.sub_actions(dist_params, given_by(actions)))

    def sub_action_log_probs(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For action groups, of the sub-actions [H, ...]: log-probabilities, True if used, and entropies."""
        sub_actions = self.sub_actions(dist_params, given_by(actions))
        log_probs, entropies = torch.stack([sub_action.log_prob_and_entropy for sub_action in sub_actions], 1).unbind()
        return log_probs, torch.stack([sub_action.used for sub_action in sub_actions]), entropies

    def log_prob_and_entropy(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both float32 [...], from one pass over the sub-actions."""
        sub_actions = self.sub_actions(dist_params, given_by(actions))
        log_probs, entropies = _sum(sub_action.log_prob_and_entropy for sub_action in sub_actions).unbind()
        return log_probs, entropies

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """Sum float32 [...] of the entropies of the sub-actions, each given the choices before it.

        Args:
          actions: [..., H] choices to condition on; None for the likeliest. If sub-actions depend on each other and the
            actions come from the policy itself, the mean over them is the entropy of the whole action.
        """
        choose = likeliest if actions is None else given_by(actions)
        return _sum(sub_action.entropy for sub_action in self.sub_actions(dist_params, choose))

    def mode(self, dist_params: Tensor) -> Tensor:
        """Actions int64 [..., H]: the likeliest choice of each sub-action, given those before it."""
        return _actions(self.sub_actions(dist_params, likeliest))

    def probabilities(self, dist_params: Tensor) -> Tensor | None:
        """None: the choices have numbers, the whole action has none."""
        del dist_params
        return None


class MultiCategoricalHead(SubActionsHead):
    """Independent sub-actions; dist_params are their concatenated masked logits [..., A].

    Raises:
      ValueError: the legal choices of a sub-action depend on another one.
    """

    pointers: tuple[str, ...] = ()
    num_passthrough = 0
    output_gain = POLICY_GAIN

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        del generator
        require_kind(actions, "multi_categorical", head="multi_categorical")
        if any(given >= 0 for given in actions.mask_given):
            raise ValueError(
                f"mask_given {actions.mask_given}: independent sub-actions cannot obey masks that depend on others; "
                "set head: autoregressive"
            )
        self.nvec = actions.nvec
        self.num_outputs = sum(actions.nvec)
        self.num_noise = len(actions.nvec)
        self.uniform_mix = config.uniform_mix

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Masked logits float32 [..., A]."""
        masked = mask_logits(outputs, action_mask)
        if self.uniform_mix == 0.0:
            return masked
        split = torch.split(masked, list(self.nvec), dim=-1)
        return torch.cat([mix_uniform(logits, self.uniform_mix) for logits in split], dim=-1)

    def sub_actions(self, dist_params: Tensor, choose: Choose) -> list[SubAction]:
        """[H] as in `SubActionsHead`."""
        split = torch.split(dist_params, list(self.nvec), dim=-1)
        return [sub_action_of(number, logits, choose) for number, logits in enumerate(split)]


def _actions(sub_actions: list[SubAction]) -> Tensor:
    return torch.stack([sub_action.action for sub_action in sub_actions], dim=-1)


def _sum(terms: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(terms)).sum(0)
