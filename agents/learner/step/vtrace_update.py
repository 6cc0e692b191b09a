"""The gradient of a plain V-trace batch in one compiled call: forward pass, loss and backward pass, block by block.

Only a network of dense layers with ReLU takes it, with a categorical policy, learnt by V-trace alone in float32 on a
CPU: what most board games have. Nothing goes through Python or memory between the passes.

Shape letters: B rows, T unroll length, A actions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import stack_stats
from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective
from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.learner.data.batch import Batch
from league.agents.losses.one_pass import CSums, CWeights, check_shapes, raise_for
from league.agents.nets.kernels.compiled import library
from league.agents.nets.kernels.dense_chain import fits
from league.agents.nets.kernels.distributions import ILLEGAL_LOGIT
from league.agents.nets.kernels.plain import FIELD_KINDS, CField, CNetwork
from league.agents.nets.mlp import PlainLayers, plain_layers
from league.agents.nets.network import Network

DECIDED = ("actions", "log_probs", "rewards", "discounts", "valid", "learn")
"""Fields of the decisions [B, T], in the order of `struct decisions`."""


class _Decisions(ctypes.Structure):
    """`struct decisions` of vtrace_update.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("mask", *DECIDED)),
        *((name, ctypes.c_long) for name in ("rows", "steps", "num_actions")),
    ]


class VTraceUpdate:
    """Adds the gradients of batches to those of a network's parameters.

    Args:
      kernel: the compiled functions. network: its layers. objective: a plain one.
    """

    def __init__(self, kernel: ctypes.CDLL, network: PlainLayers, objective: VTraceObjective) -> None:
        self._kernel = kernel
        self._network = network
        self._objective = objective

    @classmethod
    def of(cls, network: Network, objective: Objective) -> VTraceUpdate | None:
        """The update of this network and objective; None where any part of them is another one."""
        if not isinstance(objective, VTraceObjective) or not objective.is_plain or network.core_size:
            return None
        plain = plain_layers(network, network.blocks)
        if plain is None or not fits(plain.layers):
            return None
        kernel = library("vtrace_update")
        return None if kernel is None else cls(kernel, plain, objective)

    def takes(self, batch: Batch, loss_weights: LossWeights) -> bool:
        """True for a batch of the usual types, without a teacher."""
        return (
            not loss_weights.teacher_cost
            and all(batch.obs[field.name].dtype in FIELD_KINDS for field in self._network.fields)
            and batch.actions.dtype == torch.int64
            and all(part.dtype == torch.float32 for part in (batch.rewards, batch.log_probs, batch.discounts))
        )

    def accumulate(self, batch: Batch, loss_weights: LossWeights) -> BatchLoss:
        """Add the gradient of a batch that `takes` holds for; returns its sums.

        Raises:
          ValueError: shapes disagree, or an action is none of the game's.
        """
        steps = self._objective.steps(batch)
        check_shapes(steps)
        shown = [batch.obs[field.name].contiguous() for field in self._network.fields]
        masks = [] if batch.action_mask is None else [batch.action_mask.contiguous()]
        num_actions = self._network.layers[-1].out_features - 1
        self._check(steps.valid.shape, shown, masks, num_actions=num_actions)
        fields = [
            CField.of(part.data_ptr(), part.shape[2:].numel(), part.dtype, scaling)
            for part, scaling in zip(shown, self._network.fields, strict=True)
        ]
        decided = [getattr(steps, name).contiguous() for name in DECIDED]
        decisions = _Decisions(
            masks[0].data_ptr() if masks else None,
            *(tensor.data_ptr() for tensor in decided),
            *(*steps.valid.shape, num_actions),
        )
        layers, sums = self._network.layers, CSums()
        # Asked for in each update: weights may have been put elsewhere, and threads have gradients of their own.
        gradients = [[_gradient(layer.weight) for layer in layers], [_gradient(layer.bias) for layer in layers]]
        network = CNetwork.of(
            layers,
            has_tanh=self._network.has_tanh,
            illegal=ILLEGAL_LOGIT,
            value=self._network.value_moments,
            gradients=gradients,
        )
        failed = self._kernel.league_vtrace_update(
            (CField * len(fields))(*fields),
            ctypes.c_long(len(fields)),
            *(ctypes.byref(argument) for argument in (decisions, network)),
            ctypes.byref(CWeights.of(self._objective.weights(loss_weights))),
            ctypes.byref(sums),
        )
        raise_for(failed, num_actions=num_actions)
        return BatchLoss(stack_stats(**sums.sums.statistics(), auxiliary=0.0, teacher_kl=0.0))

    def _check(
        self, decisions: Sequence[int], shown: Sequence[Tensor], masks: Sequence[Tensor], *, num_actions: int
    ) -> None:
        """Refuse what the kernel would read beyond. decisions: B and T."""
        rows, length = decisions
        first = self._network.layers[0].in_features
        numbers = sum(part.shape[2:].numel() for part in shown)
        leading = {tuple(part.shape[:2]) for part in [*shown, *masks]}
        if leading != {(rows, length + 1)} or numbers != first or any(part.shape[2] != num_actions for part in masks):
            raise ValueError(
                f"{rows} rows of {length} decisions among {num_actions} actions, with {numbers} numbers shown "
                f"[{leading}] for {first}"
            )


def _gradient(parameter: Tensor) -> Tensor:
    """The gradient of a parameter, zeros where there is none yet."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    assert parameter.grad.is_contiguous(), "the kernel adds to a gradient in one piece"
    return parameter.grad
