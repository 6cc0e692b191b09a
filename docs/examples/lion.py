"""An optimizer: Lion, whose step is the sign of a running mean of the gradients."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from league.agents.weights import Layout


@dataclass(frozen=True)
class LionConfig:
    """Its options: weights of the old mean in the step and in the mean that is kept, and the decay of the weights."""

    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0


class Lion(Optimizer):
    """Steps one flat vector. Source: Chen et al. 2023, Symbolic discovery of optimization algorithms."""

    def __init__(self, values: Tensor, options: LionConfig) -> None:
        super().__init__([values], {"lr": 0.0})  # the learner sets the step size before each step
        self._options = options

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Change the vector in place. What is kept in `state` is saved with the learner."""
        (group,) = self.param_groups
        (values,) = group["params"]
        state, (in_step, in_mean) = self.state[values], self._options.betas
        if not state:
            state["mean"] = torch.zeros_like(values)
        direction = (in_step * state["mean"] + (1.0 - in_step) * values.grad).sign()
        values.sub_(group["lr"] * (direction + self._options.weight_decay * values))
        state["mean"].lerp_(values.grad, 1.0 - in_mean)


def build(values: Tensor, layout: Layout, *, options: LionConfig) -> Optimizer:
    """The optimizer of the vector; `layout` tells the names and shapes of the parameters in it."""
    del layout
    return Lion(values, options)
