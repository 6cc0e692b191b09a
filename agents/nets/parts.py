"""Actions of several parts: one masked categorical each, alone (`MultiCategoricalHead`) or in sequence (elsewhere).

Shape letters: ... leading axes, H parts, n choices of one part, A entries of the action mask, P policy parameters.
A part of which no choice is legal takes no part: it is answered with 0, its log-probability and entropy are 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.nets.config import NetworkConfig
from agents.nets.distributions import (
    ILLEGAL_LOGIT,
    categorical_entropy,
    categorical_log_prob,
    mask_logits,
    sample_categorical,
)
from agents.nets.heads import POLICY_GAIN
from envs.protocol import ActionSpec


@dataclass(frozen=True)
class Part:
    """One part of an action at its turn.

    Fields:
      logits: masked float32 [..., n].
      used: bool [...], whether any choice is legal.
      action: int64 [...], 0 where not used.
    """

    logits: Tensor
    used: Tensor
    action: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Float32 [...] of the action, 0 where the part is not used."""
        return torch.where(self.used, categorical_log_prob(self.logits, self.action), 0.0)

    @property
    def entropy(self) -> Tensor:
        """Float32 [...] in nats, 0 where the part is not used."""
        return torch.where(self.used, categorical_entropy(self.logits), 0.0)


class Chooser:
    """Says what a part does, given its masked logits."""

    def choose(self, part: int, logits: Tensor) -> Tensor:
        """Actions int64 [...] of part number `part` with masked logits [..., n]."""
        raise NotImplementedError


class Sampling(Chooser):
    """Draws by uniform noise [..., H]."""

    def __init__(self, noise: Tensor) -> None:
        self.noise = noise

    def choose(self, part: int, logits: Tensor) -> Tensor:
        """By inverting the distribution function."""
        return sample_categorical(logits, self.noise[..., part])[0]


class Given(Chooser):
    """Repeats actions [..., H], whole numbers of any dtype."""

    def __init__(self, actions: Tensor) -> None:
        self.actions = actions.long()

    def choose(self, part: int, logits: Tensor) -> Tensor:
        """The action that was given."""
        return self.actions[..., part]


class Likeliest(Chooser):
    """Takes the largest logit."""

    def choose(self, part: int, logits: Tensor) -> Tensor:
        """The first of the largest."""
        return logits.argmax(-1)


def part_of(index: int, logits: Tensor, chooser: Chooser) -> Part:
    """Part number `index` with masked logits [..., n], chosen."""
    used = logits.detach().amax(-1) > ILLEGAL_LOGIT / 2
    return Part(logits, used, torch.where(used, chooser.choose(index, logits), 0))


def total(terms: Iterable[Tensor]) -> Tensor:
    """Sum [...] of one or more tensors [...], in order."""
    return torch.stack(list(terms)).sum(0)


class MultiCategoricalHead(nn.Module):
    """Independent parts. Parameters are their masked logits side by side [..., A], actions are int64 [..., H].

    Raises:
      ValueError: the legal choices of a part depend on another part.
    """

    pointers: tuple[str, ...] = ()
    num_carried = 0
    output_gain = POLICY_GAIN

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        del config, generator
        if any(given >= 0 for given in actions.mask_given):
            raise ValueError(
                f"mask_given {actions.mask_given}: independent parts cannot obey masks that depend on other parts; "
                "set head: autoregressive"
            )
        self.nvec = actions.nvec
        self.num_outputs = sum(actions.nvec)
        self.num_noise = len(actions.nvec)

    def parameters_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Masked logits float32 [..., A]."""
        return mask_logits(outputs, action_mask)

    def sample(self, parameters: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions int64 [..., H] and log-probabilities from noise [..., H]."""
        parts = self._parts(parameters, Sampling(noise))
        return _actions(parts), total(part.log_prob for part in parts)

    def log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor:
        """Log-probabilities float32 [...] of actions [..., H]."""
        return total(part.log_prob for part in self._parts(parameters, Given(actions)))

    def part_log_probs(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities float32 [H, ...] of each part, and bool [H, ...] which parts are used."""
        parts = self._parts(parameters, Given(actions))
        return torch.stack([part.log_prob for part in parts]), torch.stack([part.used for part in parts])

    def entropy(self, parameters: Tensor, actions: Tensor | None = None) -> Tensor:
        """Entropy float32 [...]: the sum over the parts."""
        del actions
        return total(part.entropy for part in self._parts(parameters, Likeliest()))

    def mode(self, parameters: Tensor) -> Tensor:
        """Actions int64 [..., H] of the largest logits."""
        return _actions(self._parts(parameters, Likeliest()))

    def _parts(self, parameters: Tensor, chooser: Chooser) -> list[Part]:
        return [
            part_of(index, logits, chooser) for index, logits in enumerate(parameters.split(list(self.nvec), dim=-1))
        ]


def _actions(parts: list[Part]) -> Tensor:
    return torch.stack([part.action for part in parts], dim=-1)
