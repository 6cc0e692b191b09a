"""The compiled update of a plain network by V-trace, against the same update through autograd."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch

from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.step import vtrace_update
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.learner.step.vtrace_update import VTraceUpdate
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.compiled import library
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    FREE_GAME,
    LSTM,
    MLP,
    WIDE_GAME,
    batch_of,
    network_of,
    small_config,
)

pytestmark = pytest.mark.skipif(library("vtrace_update") is None, reason="no C compiler, or a processor without AVX2")

WEIGHTS = LossWeights(entropy_cost=0.1, advantage_scale=0.7, advantage_limit=1.1)
PLACEMENT = Placement(dtype=torch.float32, device=torch.device("cpu"))
DEEP = NetworkConfig(hidden=(70, 40, 33), activation="relu", value_output="tanh")
RELU = dataclasses.replace(MLP, activation="relu")
POPART = dataclasses.replace(RELU, value_output="popart", value_moments=(30.0, 7.0))
OPTIONS = [
    {},
    {"clip_rho": 0.7, "clip_c": 0.4, "clip_pg_rho": 1.5, "lambda_": 0.8, "value_cost": 0.3},
    {"clip_rho": None, "clip_c": None, "clip_pg_rho": None},
    {"correction": "none", "lambda_": 1.0},
]
SCALED = dataclasses.replace(
    POPART,
    input_scaling="symlog",
    input_moments={"board": ((0.5, 2.0), (1.0, 0.1), (0.0, 3.0), (-1.0, 1.0)), "x": ((1.0, 3.0),)},
)


def found_of(backend, network, batch):  # type: ignore[no-untyped-def]
    for parameter in network.parameters():
        parameter.grad = torch.full_like(parameter, 0.25)  # gradients are added to what is there
    loss = backend.accumulate(batch.microbatches(2), WEIGHTS)
    return [loss.columns, *(parameter.grad.clone() for parameter in network.parameters())]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("config", "game"),
    [*itertools.product([RELU, DEEP], [BOARD_GAME, FREE_GAME, WIDE_GAME]), (POPART, BOARD_GAME), (SCALED, WIDE_GAME)],
)
@pytest.mark.parametrize("shape", [(12, 5), (4, 130)])
def test_gradients_and_statistics_are_those_of_autograd(options, config, game, shape, monkeypatch) -> None:
    network = network_of(game, config)
    batch = batch_of(game, network, rows=shape[0], steps=shape[1])
    settings, found = small_config(**options), []
    for name in ("vtrace_update", ""):
        monkeypatch.setattr(vtrace_update, "library", lambda asked, name=name: library(name) if name else None)
        backend = SingleBackend(network, make_objective(settings, network.head), settings, PLACEMENT)
        assert (backend._compiled is not None) == bool(name)
        found.append(found_of(backend, network, batch))
    assert any(bool((gradient != 0.25).any()) for gradient in found[0][1:])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-5 * float(theirs.abs().max()))


def test_rows_of_garbage_that_nobody_learns_from_change_nothing() -> None:
    network = network_of(BOARD_GAME, RELU)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    settings = small_config()
    backend = SingleBackend(network, make_objective(settings, network.head), settings, PLACEMENT)
    left_out = ~batch.valid
    assert bool(left_out.any())
    spoilt = dataclasses.replace(
        batch,
        rewards=torch.where(left_out, float("nan"), batch.rewards),
        log_probs=torch.where(left_out, float("inf"), batch.log_probs),
    )
    for mine, theirs in zip(found_of(backend, network, batch), found_of(backend, network, spoilt), strict=True):
        assert torch.equal(mine, theirs)


def test_what_is_not_a_number_is_seen_in_the_gradient() -> None:
    network = network_of(BOARD_GAME, RELU)
    batch = batch_of(BOARD_GAME, network, rows=4, steps=5)
    settings = small_config()
    backend = SingleBackend(network, make_objective(settings, network.head), settings, PLACEMENT)
    rewards = torch.where(batch.learn, float("nan"), batch.rewards)
    found = found_of(backend, network, dataclasses.replace(batch, rewards=rewards))
    assert any(bool(gradient.isnan().any()) for gradient in found[1:])


def test_moments_of_the_value_count_as_they_are_now() -> None:
    network, settings = network_of(BOARD_GAME, POPART), small_config()
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    backend = SingleBackend(network, make_objective(settings, network.head), settings, PLACEMENT)
    before = found_of(backend, network, batch)
    scale = network.parts["heads"].value_activation
    scale.update(*network.parts["heads"].value_row(), mean=50.0, second_moment=2600.0, rate=0.5)
    after = found_of(backend, network, batch)
    backend._compiled = None
    assert not torch.allclose(before[-1], after[-1]) or not torch.allclose(before[1], after[1])
    for mine, theirs in zip(after, found_of(backend, network, batch), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("network", [LSTM, dataclasses.replace(RELU, activation="tanh"), DEEP])
@pytest.mark.parametrize("options", [{}, {"upgo_cost": 0.5}, {"magnet_cost": 0.5}, {"policy_loss": "neurd"}])
def test_other_networks_and_other_terms_are_left_to_autograd(network, options) -> None:
    built = network_of(BOARD_GAME, network)
    found = VTraceUpdate.of(built, make_objective(small_config(**options), built.head))
    assert (found is not None) == (network is DEEP and not options)


def test_a_teacher_is_left_to_autograd() -> None:
    network = network_of(BOARD_GAME, RELU)
    update = VTraceUpdate.of(network, make_objective(small_config(), network.head))
    batch = batch_of(BOARD_GAME, network, rows=2, steps=5)
    assert update is not None and update.takes(batch, WEIGHTS)
    assert not update.takes(batch, dataclasses.replace(WEIGHTS, teacher_cost=0.1))
    assert not update.takes(dataclasses.replace(batch, actions=batch.actions.int()), WEIGHTS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("log_probs", lambda old: old[:, :-1]),
        ("action_mask", lambda old: old[:, :-1]),
        ("action_mask", lambda old: old[..., :-1]),
        ("obs", lambda old: {name: field[:, :-1] for name, field in old.items()}),
        ("obs", lambda old: {**old, "board": old["board"][..., :-1]}),
        ("actions", lambda old: old + 99),
        ("actions", lambda old: old - 99),
    ],
)
def test_what_does_not_fit_is_refused_before_memory_is_read(field, value) -> None:
    network = network_of(BOARD_GAME, RELU)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    update = VTraceUpdate.of(network, make_objective(small_config(), network.head))
    batch = batch_of(BOARD_GAME, network, rows=2, steps=5)
    assert update is not None
    with pytest.raises(ValueError, match=r"action|shapes|decisions"):
        update.accumulate(dataclasses.replace(batch, **{field: value(getattr(batch, field))}), WEIGHTS)
    assert all(not bool(parameter.grad.any()) for parameter in network.parameters() if parameter.grad is not None)
