"""Optimizers: the swap point, and the built-in entries, whose arithmetic is torch's own.

Shape letter: P parameters held here: all of the network's, or those of one worker's stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from league.agents.learner.algorithms.algorithms import OPTIMIZERS
from league.agents.learner.config import DEFAULT_OPTIMIZER, LearnerConfig
from league.agents.learner.step.optimizer_config import AdagradConfig, AdamConfig, RMSPropConfig
from league.agents.weights import Layout
from league.envs.component_choice import kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.optimizer"


class OneVectorAdam:
    """torch's fused AdamW of one vector, with the attributes of a `torch.optim.Optimizer` that the learner uses.

    The constructor of torch's own optimizers imports its compiler: 75 MiB and a second in every process with a
    learner. Their `step` sorts parameters and is wrapped for a profiler, which takes longer than the kernel.

    Args:
      values: float32 [P]; its gradient is that of each step.
      layout: of the values. Those of matrices decay: a bias, a scale or a moment of targets is no slope to keep small.
      options: settings.
    """

    def __init__(self, values: Tensor, layout: Layout, options: AdamConfig) -> None:
        self._options = options
        self._decaying = None
        if options.weight_decay:
            flags = [
                torch.full((size,), float(len(shape) > 1))
                for size, shape in zip(layout.sizes, layout.shapes, strict=True)
            ]
            self._decaying = torch.cat(flags).to(values.device)
        self.param_groups: list[dict[str, Any]] = [{"params": [values], "lr": 0.0}]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One step with the gradient of the vector."""
        (group,) = self.param_groups
        (values,) = group["params"]
        state = self.state.setdefault(values, {})
        if not state:
            state["step"] = torch.zeros((), device=values.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(values), torch.zeros_like(values)
        state["step"] += 1
        if self._decaying is not None:
            values.addcmul_(values, self._decaying, value=-group["lr"] * self._options.weight_decay)
        torch._fused_adamw_(
            [values],
            [values.grad],
            [state["exp_avg"]],
            [state["exp_avg_sq"]],
            [],
            [state["step"]],
            lr=group["lr"],
            beta1=self._options.betas[0],
            beta2=self._options.betas[1],
            weight_decay=0.0,
            eps=self._options.eps,
            amsgrad=False,
            maximize=False,
        )


class OneVectorRMSProp:
    """RMSProp of one vector, with the attributes of a `torch.optim.Optimizer` that the learner uses.

    With the arithmetic and the names of state of torch's own, which adds `eps` outside of the root only.

    Args:
      values: float32 [P]; its gradient is that of each step.
      options: settings.
    Source: Mnih et al. 2016, A3C, section 4, equations 8 and 9.
    """

    def __init__(self, values: Tensor, options: RMSPropConfig) -> None:
        self._options = options
        self.param_groups: list[dict[str, Any]] = [{"params": [values], "lr": 0.0}]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One step with the gradient of the vector."""
        (group,) = self.param_groups
        (values,) = group["params"]
        options, state = self._options, self.state.setdefault(values, {})
        if not state:
            state["step"], state["square_avg"] = torch.zeros(()), torch.zeros_like(values)
            if options.momentum:
                state["momentum_buffer"] = torch.zeros_like(values)
        state["step"] += 1
        square = state["square_avg"].mul_(options.decay).addcmul_(values.grad, values.grad, value=1.0 - options.decay)
        root = (square + options.eps).sqrt_() if options.eps_inside else square.sqrt().add_(options.eps)
        if options.momentum:
            moved = state["momentum_buffer"].mul_(options.momentum).addcdiv_(values.grad, root)
            values.add_(moved, alpha=-group["lr"])
        else:
            values.addcdiv_(values.grad, root, value=-group["lr"])


VectorOptimizer = Optimizer | OneVectorAdam | OneVectorRMSProp


class OptimizerBuilder(Protocol):
    """Makes the optimizer of one flat vector, whose gradient is divided and clipped before each step.

    Built as `builder(values, layout)`; with `options=...` where it declares options, see `league.envs.plugin_options`.
    The learner sets `lr` of the only parameter group before each step. The state of the vector holds tensors of its
    shape and single numbers; both are saved and restored.
    """

    def __call__(self, values: Tensor, layout: Layout, /) -> VectorOptimizer:
        """The optimizer of `values`, float32 [P]; `layout` names the parameters in it and their shapes."""
        ...


def make_optimizer(values: Tensor, layout: Layout, config: LearnerConfig) -> VectorOptimizer:
    """Make the optimizer that the config names, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such optimizer, or its options do not fit.
    """
    build = resolve(kind_of(config.optimizer, DEFAULT_OPTIMIZER), OPTIMIZERS, what=PLACE)
    optimizer = build(values, layout, **options_argument(build, config.optimizer, place=PLACE))
    if not isinstance(optimizer, VectorOptimizer):
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


def load_state(optimizer: VectorOptimizer, values: Tensor, entries: Mapping[str, Tensor]) -> None:
    """Continue from saved entries of the state of `values`; a new state if there are none."""
    optimizer.state.clear()
    if not entries:
        return
    if isinstance(optimizer, Optimizer):
        optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: entries}})
    else:
        optimizer.state[values] = {name: entry.to(values.device) for name, entry in entries.items()}


def new_state(values: Tensor, layout: Layout, config: LearnerConfig) -> dict[str, Tensor]:
    """The state that the optimizer of these values starts with: what it holds before its first step, else zeros."""
    like = torch.zeros_like(values)
    like.grad = torch.zeros_like(values)
    optimizer = make_optimizer(like, layout, config)
    held = optimizer.state.get(like, {})
    if not held:
        optimizer.param_groups[0]["lr"] = 0.0
        optimizer.step()
        return {name: torch.zeros_like(torch.as_tensor(entry)) for name, entry in optimizer.state[like].items()}
    return {name: torch.as_tensor(entry).clone() for name, entry in held.items()}


class Adagrad(Optimizer):
    """Divides each step by the root of the sum of all squared gradients; it has no state before its first step."""

    def __init__(self, values: Tensor, options: AdagradConfig) -> None:
        super().__init__([values], {"lr": 0.0})
        self._eps = options.eps

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step with the gradient of the vector."""
        (group,) = self.param_groups
        (values,) = group["params"]
        total = self.state[values].setdefault("sum", torch.zeros_like(values))
        total.addcmul_(values.grad, values.grad)
        values.addcdiv_(values.grad, total.sqrt().add_(self._eps), value=-group["lr"])


def adam(values: Tensor, layout: Layout, *, options: AdamConfig) -> OneVectorAdam:
    """Adam in one fused step; with a weight decay, AdamW."""
    return OneVectorAdam(values, layout, options)


def adagrad(values: Tensor, layout: Layout, *, options: AdagradConfig) -> Optimizer:
    """Adagrad as DistBelief's parameter server uses it."""
    del layout
    return Adagrad(values, options)


def rmsprop(values: Tensor, layout: Layout, *, options: RMSPropConfig) -> OneVectorRMSProp:
    """RMSProp as A3C and IMPALA use it."""
    del layout
    return OneVectorRMSProp(values, options)
