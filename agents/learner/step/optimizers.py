"""Optimizers: the swap point, and the built-in entries, which are torch's own.

Shape letter: P parameters held here: all of the network's, or those of one worker's stages.
"""

from __future__ import annotations

from typing import Protocol, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from agents.learner.algorithms.registry import OPTIMIZERS
from agents.learner.config import DEFAULT_OPTIMIZER, LearnerConfig
from agents.learner.step.optimizer_config import AdamConfig, RMSPropConfig
from agents.weights import Layout
from envs.plugin_options import kind_of, options_argument
from envs.plugins import resolve

PLACE = "learner.optimizer"


class OptimizerBuilder(Protocol):
    """Makes the optimizer of one flat vector, whose gradient is divided and clipped before each step.

    Built as `builder(values, layout)`; with `options=...` where it declares options, see `envs.plugin_options`. The
    learner sets `lr` of the only parameter group before each step. The state of the vector holds tensors of its shape
    and single numbers; both are saved and restored.
    """

    def __call__(self, values: Tensor, layout: Layout, /) -> Optimizer:
        """The optimizer of `values`, float32 [P]; `layout` names the parameters in it and their shapes."""
        ...


def make_optimizer(values: Tensor, layout: Layout, config: LearnerConfig) -> Optimizer:
    """Make the optimizer that the config names, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such optimizer, or its options do not fit.
    """
    build = resolve(kind_of(config.optimizer, DEFAULT_OPTIMIZER), OPTIMIZERS, what=PLACE)
    optimizer = build(values, layout, **options_argument(build, config.optimizer, place=PLACE))
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"{PLACE}: it returned a {type(optimizer).__name__}, not a torch.optim.Optimizer")
    if len(optimizer.param_groups) != 1 or optimizer.param_groups[0]["params"][0] is not values:
        raise ValueError(f"{PLACE}: its optimizer must have one parameter group with the vector alone")
    return optimizer


def try_optimizer(config: LearnerConfig) -> None:
    """Make the optimizer that the config names, and one step with it on a matrix and a vector of ones.

    Raises:
      ValueError: as of `make_optimizer`, or the step gives a weight that is not finite, or a state that cannot be
        saved and split over workers: an entry that is neither of shape [P] nor a single number.
    """
    values = torch.zeros(6)
    optimizer = make_optimizer(values, Layout(("weight", "bias"), ((2, 2), (2,))), config)
    values.grad = torch.ones(6)
    optimizer.param_groups[0]["lr"] = config.learning_rate
    optimizer.step()
    if not bool(torch.isfinite(values).all()):
        raise ValueError(f"its first step gives the weights {values.tolist()}")
    for name, entry in optimizer.state[values].items():
        if isinstance(entry, Tensor):
            fits = entry.shape in (values.shape, torch.Size([]))
        else:
            fits = isinstance(entry, int | float)
        if not fits:
            shape = list(entry.shape) if isinstance(entry, Tensor) else type(entry).__name__
            raise ValueError(f"its state {name!r} is {shape}; give a tensor of {list(values.shape)} or a number")


def adam(values: Tensor, layout: Layout, *, options: AdamConfig) -> Optimizer:
    """Adam in one fused step; with a weight decay, AdamW."""
    del layout
    return OneVectorAdam(
        [values],
        betas=options.betas,
        eps=options.eps,
        weight_decay=options.weight_decay,
        decoupled_weight_decay=True,
        fused=True,
    )


class OneVectorAdam(torch.optim.Adam):
    """torch's fused AdamW of one vector, without the sorting of parameters: that takes longer than the step itself."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step with the gradient of the vector. closure: none."""
        assert closure is None, "the gradient is there"
        (group,) = self.param_groups
        (values,) = group["params"]
        state = self.state[values]
        if not state:
            state["step"] = torch.zeros((), device=values.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(values), torch.zeros_like(values)
        state["step"] += 1
        torch._fused_adamw_(
            [values],
            [values.grad],
            [state["exp_avg"]],
            [state["exp_avg_sq"]],
            [],
            [state["step"]],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    step.hooked = True  # type: ignore[attr-defined]  # else torch wraps it for its profiler, which doubles its time


def rmsprop(values: Tensor, layout: Layout, *, options: RMSPropConfig) -> Optimizer:
    """RMSProp as IMPALA uses it."""
    del layout
    return cast(
        Optimizer, torch.optim.RMSprop([values], alpha=options.decay, eps=options.eps, momentum=options.momentum)
    )
