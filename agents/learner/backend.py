"""The step backend: leaves the summed gradient of a batch in the flat gradient, whatever way it is computed."""

from __future__ import annotations

import contextlib
from typing import Protocol

import torch

from agents.learner.batch import Batch
from agents.learner.config import LearnerConfig
from agents.learner.objective import Coefficients, LossSums, vtrace_loss
from agents.nets.network import Network


class StepBackend(Protocol):
    """Computes gradients. The tail that divides, clips and steps is the learner's and the same for all."""

    def accumulate(self, batch: Batch, coefficients: Coefficients) -> LossSums:
        """Add the gradient of the batch's summed loss to the network's gradients."""
        ...

    def close(self) -> None:
        """Release processes and streams; may be called twice."""
        ...


BACKENDS = {"single": "agents.learner.backend:SingleBackend"}


class SingleBackend:
    """One device, microbatches one after the other."""

    def __init__(self, network: Network, config: LearnerConfig, *, dtype: torch.dtype, device: torch.device) -> None:
        self._network = network
        self._config = config
        self._dtype = dtype
        self._device = device

    def accumulate(self, batch: Batch, coefficients: Coefficients) -> LossSums:
        total = LossSums()
        for microbatch in batch.microbatches(self._config.microbatches):
            with self._autocast():
                output = self._network(
                    microbatch.obs, resets=microbatch.resets, core=microbatch.core, action_mask=microbatch.action_mask
                )
            loss, sums = vtrace_loss(
                output, microbatch, head=self._network.head, config=self._config, coefficients=coefficients
            )
            loss.backward()  # type: ignore[no-untyped-call]
            total.add(sums)
        return total

    def close(self) -> None:
        """Nothing is held."""

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, dtype=self._dtype)
