"""Optimizers: every entry steps, is saved and continues bit for bit; the built-in ones equal their formulas."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from league.agents.learner.algorithms.algorithms import OPTIMIZERS
from league.agents.learner.config import LearnerConfig
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.optimizer_config import AdamConfig, RMSPropConfig
from league.agents.learner.step.optimizers import try_optimizer
from league.agents.restart_state import is_vector
from league.agents.weights import Layout
from league.envs.plugin_options import OptionsError

LION = f"{Path(__file__).parents[4] / 'docs' / 'examples' / 'lion.py'}:build"
ENTRIES = [*OPTIMIZERS, LION]
THIS = __name__


def optimizer_of(choice: object, *, seed: int = 0) -> FlatOptimizer:
    """Of a network of 8 parameters."""
    torch.manual_seed(seed)
    return FlatOptimizer(nn.Linear(3, 2), LearnerConfig(optimizer=choice, max_grad_norm=1e9), keep_target=False)


def train(optimizer: FlatOptimizer, steps: range) -> list[np.ndarray]:
    """Steps with gradients that depend on the number of the step alone; the weights after each."""
    weights = []
    for number in steps:
        optimizer.gradients.copy_(torch.from_numpy(np.random.default_rng(number).normal(size=8)))
        optimizer.step(count=1.0, squared_norm=float(optimizer.squared_norm()), learning_rate=0.01)
        weights.append(optimizer.values.numpy().copy())
    return weights


@pytest.mark.parametrize("choice", ENTRIES)
def test_every_optimizer_goes_downhill_by_the_given_step_size(choice: str) -> None:
    try_optimizer(LearnerConfig(optimizer=choice))
    optimizer = optimizer_of(choice)
    before = optimizer.values.clone()
    for rate in (0.0, 0.01):
        optimizer.gradients.fill_(0.5)
        optimizer.step(count=1.0, squared_norm=float(optimizer.squared_norm()), learning_rate=rate)
        moved = optimizer.values - before
        assert bool((moved < 0.0).all()) if rate else bool((moved == 0.0).all())


@pytest.mark.parametrize("choice", ENTRIES)
def test_every_optimizer_continues_bit_for_bit_from_what_was_saved(choice: str) -> None:
    whole, part = optimizer_of(choice), optimizer_of(choice)
    expected = train(whole, range(6))
    train(part, range(3))
    saved = part.save()
    assert all(array.size in (0, 8) for name, array in saved.items() if is_vector(name))
    other = optimizer_of(choice, seed=1)
    train(other, range(10, 13))
    other.load(saved)
    assert np.array_equal(train(other, range(3, 6)), expected[3:])


def test_the_state_of_another_optimizer_counts_as_none() -> None:
    adam, fresh, taken = (optimizer_of(kind) for kind in ("adam", "rmsprop", "rmsprop"))
    train(adam, range(3))
    saved = adam.save()
    taken.load(saved)
    fresh.load({"values": saved["values"]})
    assert np.array_equal(train(taken, range(3, 5)), train(fresh, range(3, 5)))


def test_adagrad_divides_by_the_root_of_all_squares_so_far() -> None:
    optimizer = optimizer_of({"kind": "adagrad", "eps": 1e-3})
    values, squares = optimizer.values.numpy().astype(np.float64), np.zeros(8)
    for number, found in enumerate(train(optimizer, range(4))):
        gradient = np.random.default_rng(number).normal(size=8)
        squares += gradient**2
        values -= 0.01 * gradient / (np.sqrt(squares) + 1e-3)
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)


def test_adam_decays_the_weights_apart_from_the_gradient() -> None:
    options = AdamConfig(eps=1e-3, betas=(0.8, 0.9), weight_decay=0.1)
    optimizer = optimizer_of({"kind": "adam", "eps": 1e-3, "betas": [0.8, 0.9], "weight_decay": 0.1})
    values = optimizer.values.numpy().astype(np.float64)
    mean, square = np.zeros(8), np.zeros(8)
    for number, found in enumerate(train(optimizer, range(4))):
        gradient = np.random.default_rng(number).normal(size=8)
        mean = options.betas[0] * mean + (1 - options.betas[0]) * gradient
        square = options.betas[1] * square + (1 - options.betas[1]) * gradient**2
        unbiased = [mean / (1 - options.betas[0] ** (number + 1)), square / (1 - options.betas[1] ** (number + 1))]
        values[:6] *= 1 - 0.01 * options.weight_decay  # the matrix, and not the bias
        values = values - 0.01 * unbiased[0] / (np.sqrt(unbiased[1]) + options.eps)
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("inside", [False, True])
def test_rmsprop_divides_by_the_root_of_the_mean_square(momentum: float, inside: bool) -> None:
    options = RMSPropConfig(eps=0.1, eps_inside=inside, decay=0.9, momentum=momentum)
    optimizer = optimizer_of({"kind": "rmsprop", **asdict(options)})
    values = optimizer.values.numpy().astype(np.float64)
    square, kept = np.zeros(8), np.zeros(8)
    for number, found in enumerate(train(optimizer, range(4))):
        gradient = np.random.default_rng(number).normal(size=8)
        square = options.decay * square + (1 - options.decay) * gradient**2
        root = np.sqrt(square + options.eps) if inside else np.sqrt(square) + options.eps
        kept = momentum * kept + gradient / root
        values = values - 0.01 * kept
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_rmsprop_takes_the_steps_of_torch(momentum: float) -> None:
    ours = optimizer_of({"kind": "rmsprop", "eps": 1e-3, "decay": 0.9, "momentum": momentum})
    theirs = ours.values.clone()
    other = torch.optim.RMSprop([theirs], lr=0.01, alpha=0.9, eps=1e-3, momentum=momentum)
    for number, found in enumerate(train(ours, range(4))):
        theirs.grad = torch.from_numpy(np.random.default_rng(number).normal(size=8).astype(np.float32))
        other.step()
        assert np.array_equal(found, theirs.numpy())


class Rows(torch.optim.SGD):
    """Keeps a state of another shape than the vector."""

    def step(self, closure=None) -> None:  # type: ignore[no-untyped-def]
        """Keeps two numbers."""
        self.state[self.param_groups[0]["params"][0]]["rows"] = torch.zeros(2)


def rows(values: Tensor, layout: Layout) -> torch.optim.Optimizer:
    """An optimizer whose state cannot be split over workers."""
    return Rows([values], lr=0.1)


def lost(values: Tensor, layout: Layout) -> torch.optim.Optimizer:
    """An optimizer of something else."""
    return torch.optim.SGD([torch.zeros(3)], lr=0.1)


def nothing(values: Tensor, layout: Layout) -> None:
    """No optimizer."""


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("adem", "did you mean 'adam'"),
        (f"{THIS}:rows", "its state 'rows' is [2]; give a tensor of [6] or a number"),
        (f"{THIS}:lost", "one parameter group with the vector alone"),
        (f"{THIS}:nothing", "returned a NoneType, not a torch.optim.Optimizer"),
        ({"kind": f"{THIS}:rows", "rate": 1}, "learner.optimizer.rate: unknown key"),
        ({"kind": "adam", "eps": 0}, "learner.optimizer.eps: 0.0 must be greater than 0"),
        ({"kind": "adam", "betas": [0.9, 1.0]}, "learner.optimizer.betas: [0.9, 1.0] must lie in [0, 1)"),
        ({"kind": "adam", "weight_decay": -1}, "learner.optimizer.weight_decay: -1.0 must lie in [0, 1]"),
        ({"kind": "rmsprop", "decay": 1.5}, "learner.optimizer.decay: 1.5 must lie in [0, 1)"),
    ],
)
def test_optimizers_that_do_not_fit_are_named(choice: object, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        try_optimizer(LearnerConfig(optimizer=choice))
    text = "; ".join(caught.value.problems) if isinstance(caught.value, OptionsError) else str(caught.value)
    assert message in text
