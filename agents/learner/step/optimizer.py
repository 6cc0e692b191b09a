"""The optimizer step after every backend: divide by one global count, clip one global norm, one step.

Shape letter: P parameters held here: all of the network's, or those of one worker's stages.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from league.agents.learner.config import DEFAULT_OPTIMIZER, LearnerConfig
from league.agents.learner.replicas.replica_group import total_over
from league.agents.learner.step.optimizers import load_state, make_optimizer, new_state
from league.agents.restart_state import (
    EMA,
    OPTIMIZER_NUMBER,
    OPTIMIZER_STEPS,
    OPTIMIZER_VECTOR,
    TARGET,
    TEACHER,
    WEIGHTS,
    Arrays,
    ema_in,
    optimizer_steps_in,
    weights_of_size,
)
from league.agents.weights import FlatParameters, Layout
from league.envs.component_choice import kind_of

_KIND = "optimizer_kind"


class FlatOptimizer:
    """Parameters, optimizer, target network and moving average of the weights of one process.

    Args:
      module: trained by the backend; its parameters become views of one flat tensor.
      config: settings.
      keep_target: if True, keep a target network: a slowly moving average of the weights, for a target or a magnet.
      pipe_group: the workers that hold the other stages of this replica; None if there are none.
      values: float32 [P], memory with the weights that the module is to have, which others may use and change too; None
        for memory of its own.
    """

    def __init__(
        self,
        module: nn.Module,
        config: LearnerConfig,
        *,
        keep_target: bool,
        pipe_group: ProcessGroup | None = None,
        values: Tensor | None = None,
    ) -> None:
        self._config = config
        self._kind = kind_of(config.optimizer, DEFAULT_OPTIMIZER).rpartition("/")[2]  # a file may move with its run
        self._shares = values is not None
        self._parameters = FlatParameters(module, values=values)
        values = self._parameters.values.requires_grad_(False)
        values.grad = self._parameters.gradients
        self._optimizer = make_optimizer(values, self._parameters.layout, config)
        self._target = values.clone() if keep_target else None
        self._ema = values.clone() if config.ema_share else None
        self._teacher: Tensor | None = None
        self._pipe_group = pipe_group
        self._fresh_state: dict[str, Tensor] = {}
        self._steps = 0

    @property
    def layout(self) -> Layout:
        """Names and shapes of the P parameters."""
        return self._parameters.layout

    @property
    def values(self) -> Tensor:
        """float32 [P], the live weights."""
        return self._parameters.values

    @property
    def steps(self) -> int:
        """Steps since the weights were new, of all replicas together."""
        return self._steps

    @property
    def gradients(self) -> Tensor:
        """float32 [P], the summed gradient for the next step; zero it before a batch."""
        return self._parameters.gradients

    def replace_parameters(self) -> None:
        """Detach from threads that may still add to the old gradients; weights and optimizer stay."""
        self._parameters.replace()
        self.values.grad = self._parameters.gradients

    def squared_norm(self) -> Tensor:
        """float32 [1], of the summed gradient of all stages: not read yet, so that it comes with the statistics."""
        return total_over(torch.dot(self.gradients, self.gradients)[None], self._pipe_group)

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        """Divide the summed gradient, clip its norm and step; no step if it is not finite or `count` is 0.

        Args:
          count: learnt-from decisions that the gradient is the sum over.
          squared_norm: of the summed gradient, over all workers that hold parameters.
          learning_rate: step size.
        Returns:
          the global norm before clipping; 0 if `count` is 0, without a step: a momentum alone would move the weights.
        """
        norm = self.clip(count=count, squared_norm=squared_norm)
        if count and math.isfinite(norm):
            self._optimizer.param_groups[0]["lr"] = learning_rate
            self._optimizer.step()
        return norm

    def clip(self, *, count: float, squared_norm: float) -> float:
        """Divide the summed gradient and clip its norm, as for a step; returns the norm before clipping."""
        if count == 0.0:
            return 0.0
        norm = math.sqrt(squared_norm) / count
        if math.isfinite(norm):
            self.gradients.div_(count * max(norm / self._config.max_grad_norm, 1.0))
        return norm

    def share_state(self, memory: Callable[[str, Tensor], Tensor]) -> None:
        """Keep the optimizer's moments and their step count in memory that others change too.

        Args:
          memory: name and first value of an entry -> a tensor of that shape.
        """
        self._fresh_state = new_state(self.values, self.layout, self._config)
        self._optimizer.state[self.values] = {name: memory(name, entry) for name, entry in self._fresh_state.items()}

    def follow(self, consensus: Tensor) -> None:
        """Count a step of the group, and move target network and average towards the weights that it agreed on.

        A replica that left its own step out counts too: rates that depend on the count are then the same in all.
        """
        self._steps += 1
        if self._target is not None and self._steps % self._config.target_every == 0:
            self._target.lerp_(consensus, self._config.target_rate)
        if self._ema is not None:
            self._ema.lerp_(consensus, ema_rate(self._steps, share=self._config.ema_share))

    def target_weights(self) -> contextlib.AbstractContextManager[None]:
        """Context in which the network computes with the target network's weights; for forward passes only."""
        assert self._target is not None, "this objective did not ask for a target network"
        return self._borrowed(self._target)

    def teacher_weights(self) -> contextlib.AbstractContextManager[None]:
        """Context in which the network computes with the teacher's weights; for forward passes only."""
        assert self._teacher is not None, "no teacher was loaded"
        return self._borrowed(self._teacher)

    @contextlib.contextmanager
    def _borrowed(self, values: Tensor) -> Iterator[None]:
        if self._shares:  # others compute with these weights and change them meanwhile
            with self._parameters.seen_as(values):
                yield
            return
        # A network compiled for a GPU has recorded the addresses of its own weights: it is they that change.
        kept = self.values.clone()
        self.values.copy_(values)
        try:
            yield
        finally:
            self.values.copy_(kept)

    def save(self) -> Arrays:
        """The state as plain arrays; an entry for which `is_vector` holds is [P] or empty."""
        empty = np.zeros(0, np.float32)
        arrays: Arrays = {WEIGHTS: _array(self.values), _KIND: _text(self._kind)}
        for name, entry in self._optimizer.state.get(self.values, {}).items():
            is_number = not isinstance(entry, Tensor) or entry.ndim == 0
            arrays[f"{OPTIMIZER_NUMBER if is_number else OPTIMIZER_VECTOR}{name}"] = _array(torch.as_tensor(entry))
        arrays[TARGET] = empty if self._target is None else _array(self._target)
        arrays[EMA] = empty if self._ema is None else _array(self._ema)
        arrays[TEACHER] = empty
        arrays[OPTIMIZER_STEPS] = np.array(self._steps, np.int64)
        return arrays

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from saved arrays; the teacher stays.

        What they do not hold starts from the weights, and so does an optimizer that they are not of.

        Raises:
          ValueError: the arrays are for a network of another size.
        """
        values = weights_of_size(saved, self.values.numel())
        self.values.copy_(torch.from_numpy(values))
        self._load_optimizer(saved)
        self._steps = optimizer_steps_in(saved)
        if self._target is not None:
            target = saved[TARGET] if TARGET in saved and saved[TARGET].size else values
            self._target.copy_(torch.from_numpy(np.array(target, np.float32)))
        if self._ema is not None:
            average = ema_in(saved)
            self._ema.copy_(torch.from_numpy(values if average is None else average.copy()))
        if TEACHER in saved and saved[TEACHER].size:
            self._teacher = torch.from_numpy(np.array(saved[TEACHER], np.float32)).to(self.values.device)

    def _load_optimizer(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Take over the state of the optimizer where it was saved by one of the same name."""
        same = _KIND in saved and np.array_equal(saved[_KIND], _text(self._kind))
        entries = {
            name.removeprefix(prefix): torch.from_numpy(np.array(array))
            for prefix in (OPTIMIZER_VECTOR, OPTIMIZER_NUMBER)
            for name, array in saved.items()
            if same and name.startswith(prefix)
        }
        if not self._fresh_state:
            load_state(self._optimizer, self.values, entries)
        for name, fresh in self._fresh_state.items():
            self._optimizer.state[self.values][name].copy_(entries.get(name, fresh))


def ema_rate(steps: int, *, share: float) -> float:
    """Weight of the newest weights in their moving average after `steps` optimizer steps.

    It falls as 1 / steps, so that the average always spans the same share of the training so far. The first weights are
    replaced whole, so that there is no bias towards the initial ones.

    Source: Shamir and Zhang 2013, Stochastic gradient descent for non-smooth optimization, section 4.
    """
    return 1.0 / max(share * steps, 1.0)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    copied: NDArray[np.float32] = tensor.detach().cpu().numpy().copy()
    return copied


def _text(text: str) -> NDArray[np.generic]:
    return np.frombuffer(text.encode(), np.uint8).copy()
