"""Heads: turn features into the parameters of a distribution over actions, and a value.

Shape letters: ... any leading axes, D features, A actions, P dist_params (parameters of the distribution).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import compute_dtype, orthogonal_dense
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.distributions import (
    categorical_entropy,
    categorical_log_prob,
    categorical_log_prob_and_entropy,
    gaussian_entropy,
    gaussian_log_prob,
    mask_logits,
    mix_uniform,
    probabilities,
    sample_categorical,
    sample_gaussian,
)
from league.agents.nets.popart import ValueScale
from league.envs.protocol import ActionSpec, ArraySpec

POLICY_GAIN = 0.01
"""Orthogonal gain of the policy's rows: the first policy is nearly uniform. Source: Andrychowicz et al. 2021, 3.2."""

VALUE_GAIN = 1.0
"""Orthogonal gain of the value's row."""


class Head(Protocol):
    """A distribution over actions, given by `num_outputs` outputs of the network's last layer.

    A head may hold its own layers, which all of its methods use: it belongs to the last block.

    Attributes:
      num_outputs: outputs needed from the last layer; output_gain: orthogonal gain of their rows.
      num_noise: uniform numbers per sample.
      pointers: observation fields whose entities the actions point at.
      num_passthrough: floats for them that bypass the core.
    """

    num_outputs: int
    output_gain: float
    num_noise: int
    pointers: tuple[str, ...]
    num_passthrough: int

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """dist_params float32 [..., P] of the last layer's outputs [..., num_outputs] and the passthrough after it."""
        ...

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities float32 [...] from uniform noise [..., num_noise] in [0, 1)."""
        ...

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """Log-probabilities float32 [...]; equal to what `sample` returned for the same parameters and actions."""
        ...

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """Entropy float32 [...] in nats.

        actions: the choices to condition on, if sub-actions depend on earlier ones; None for the likeliest.
        """
        ...

    def log_prob_and_entropy(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` for these actions, float32 [...] each, of which a loss needs both."""
        ...

    def mode(self, dist_params: Tensor) -> Tensor:
        """The most likely actions."""
        ...

    def probabilities(self, dist_params: Tensor) -> Tensor | None:
        """Probability of each numbered action under `sample`, float32 [..., A]; None where actions have no numbers."""
        ...


HeadBuilder = Callable[[ActionSpec, NetworkConfig, torch.Generator], Head]
"""Builds a head for a game's actions; new weights are drawn from the generator alone."""


class ObservingHeadBuilder(Protocol):
    """Builds a head with layers of its own that read observation fields."""

    def __call__(
        self,
        actions: ActionSpec,
        config: NetworkConfig,
        generator: torch.Generator,
        *,
        observations: Mapping[str, ArraySpec],
    ) -> Head: ...


def require_kind(actions: ActionSpec, kind: str, *, head: str) -> None:
    """Refuse a head for a kind of action that it does not support.

    Raises:
      ValueError: the game takes another kind.
    """
    if actions.kind != kind:
        raise ValueError(f"head: {head} answers {kind} actions, the game takes {actions.kind}; use head: auto")


class CategoricalHead(nn.Module):
    """One of A actions, illegal ones masked; dist_params are the masked logits [..., A], actions int64 [...].

    Raises:
      ValueError: the game takes another kind of action.
    """

    num_noise = 1
    pointers: tuple[str, ...] = ()
    num_passthrough = 0
    output_gain = POLICY_GAIN

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        del generator
        require_kind(actions, "categorical", head="categorical")
        self.num_outputs = actions.num_actions
        self.uniform_mix = config.uniform_mix

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Masked logits float32 [..., A]."""
        return mix_uniform(mask_logits(outputs, action_mask), self.uniform_mix)

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions int64 [...] and log-probabilities from noise [..., 1]."""
        return sample_categorical(dist_params, noise.squeeze(-1))

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """Log-probabilities float32 [...] of actions int64 [...]."""
        return categorical_log_prob(dist_params, actions)

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """Entropy float32 [...]."""
        del actions
        return categorical_entropy(dist_params)

    def log_prob_and_entropy(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both float32 [...], from one softmax."""
        return categorical_log_prob_and_entropy(dist_params, actions)

    def mode(self, dist_params: Tensor) -> Tensor:
        """Actions int64 [...] with the largest logit."""
        return dist_params.argmax(-1)

    def probabilities(self, dist_params: Tensor) -> Tensor | None:
        """Float32 [..., A]."""
        return probabilities(dist_params)


class GaussianHead(nn.Module):
    """Independent normals around the outputs, one learned log standard deviation per dimension.

    dist_params are means, then log standard deviations [..., 2 * A], A = the flattened size of the action.
    Actions are float32 [..., *shape] and not clipped, because a clipped action has no density: the acting side
    applies the environment's bounds.

    Raises:
      ValueError: the game takes another kind of action.
    """

    name = "box"
    pointers: tuple[str, ...] = ()
    num_passthrough = 0
    output_gain = POLICY_GAIN

    def __init__(self, actions: ActionSpec, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        del config, generator
        require_kind(actions, "box", head=self.name)
        self.shape = actions.shape
        self.num_outputs = int(torch.Size(actions.shape).numel())
        self.num_noise = self.num_outputs
        self.log_std = nn.Parameter(torch.zeros(self.num_outputs))

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """Mean and log standard deviation float32 [..., 2 * A]; the mask is ignored."""
        mean = outputs.float()
        return torch.cat([mean, self.log_std.float().expand_as(mean)], dim=-1)

    def sample(self, dist_params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions float32 [..., *shape] and log-densities from noise [..., A]."""
        mean, log_std = dist_params.chunk(2, dim=-1)
        actions, log_probs = sample_gaussian(mean, log_std, noise)
        return self._shaped(actions), log_probs

    def log_prob(self, dist_params: Tensor, actions: Tensor) -> Tensor:
        """Log-densities float32 [...] of actions [..., *shape]."""
        mean, log_std = dist_params.chunk(2, dim=-1)
        return gaussian_log_prob(mean, log_std, actions.reshape(mean.shape))

    def entropy(self, dist_params: Tensor, actions: Tensor | None = None) -> Tensor:
        """Differential entropy float32 [...]."""
        del actions
        return gaussian_entropy(dist_params.chunk(2, dim=-1)[1])

    def log_prob_and_entropy(self, dist_params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both float32 [...]."""
        return self.log_prob(dist_params, actions), self.entropy(dist_params, actions)

    def mode(self, dist_params: Tensor) -> Tensor:
        """The means float32 [..., *shape]."""
        return self._shaped(dist_params.chunk(2, dim=-1)[0])

    def probabilities(self, dist_params: Tensor) -> Tensor | None:
        """None: an action of a box has a density."""
        del dist_params
        return None

    def _shaped(self, actions: Tensor) -> Tensor:
        return actions.reshape(*actions.shape[:-1], *self.shape)


class HeadsBlock(nn.Module):
    """The last block of a network with a shared trunk: policy and value from one linear layer."""

    def __init__(self, head: Head, num_features: int, config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.head = head
        self.value_activation = value_activation(config)
        self.num_features = num_features
        self.num_outputs = head.num_outputs
        self.linear = orthogonal_dense(num_features, head.num_outputs + 1, gain=head.output_gain, generator=generator)
        with torch.no_grad():
            nn.init.orthogonal_(self.linear.weight[head.num_outputs :], gain=VALUE_GAIN, generator=generator)

    def forward(self, features: Tensor, *, action_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """dist_params float32 [..., P] and values float32 [...] of features [..., D] and the passthrough after them."""
        passed_through = features[..., self.num_features :] if self.head.num_passthrough else None
        if passed_through is not None:
            features = features[..., : self.num_features]
        outputs: Tensor = self.linear(features.to(compute_dtype(self.linear.weight)))
        return self.of_outputs(outputs, passed_through, action_mask)

    def of_outputs(
        self, outputs: Tensor, passed_through: Tensor | None, action_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """dist_params and values of the linear layer's outputs."""
        outputs = outputs.float()
        values = outputs[..., self.num_outputs]
        outputs = with_passthrough(outputs[..., : self.num_outputs], passed_through)
        return self.head.dist_params_of(outputs, action_mask), self.value_activation(values)

    def value_row(self) -> tuple[nn.Linear, int]:
        """The layer that outputs the value, and the index of that output."""
        return self.linear, self.num_outputs


def value_activation(config: NetworkConfig) -> nn.Module:
    """The module after the value's output."""
    if config.value_output == "popart":
        return ValueScale(*config.value_moments)
    return nn.Tanh() if config.value_output == "tanh" else nn.Identity()


def with_passthrough(outputs: Tensor, passed_through: Tensor | None) -> Tensor:
    """Append the passthrough [..., num_carried] in float32 to outputs [..., num_outputs]."""
    return outputs if passed_through is None else torch.cat([outputs.float(), passed_through.float()], dim=-1)
