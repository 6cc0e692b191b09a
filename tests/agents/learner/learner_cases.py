"""Small networks and unrolls on which every clip, mask, reset and end of an episode bites."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch, batch_from
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.backend import Placement
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import Weights, from_named, layout_of
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical

ACTOR_CRITICS = ("vtrace", "ppo", "appo")
"""Algorithms that learn from what every kind of acting records."""

CPU = torch.device("cpu")
FLOAT32 = Placement(dtype=torch.float32, device=CPU)
COEFFICIENTS = LossWeights(entropy_cost=0.1, advantage_scale=0.7)

BOARD_GAME = EnvSpec(
    env_id="board",
    num_seats=2,
    observations={"board": ArraySpec((6,), "bool"), "clock": ArraySpec((), "float32")},
    actions=ActionSpec("categorical", num_actions=5),
    teams=(0, 1),
    has_mask=True,
)
FREE_GAME = dataclasses.replace(BOARD_GAME, has_mask=False)
WIDE_GAME = dataclasses.replace(
    BOARD_GAME,
    observations={
        "board": ArraySpec((5, 4), "int8"),
        "picture": ArraySpec((3,), "uint8"),
        "x": ArraySpec((), "float32"),
    },
    actions=ActionSpec("categorical", num_actions=37),
)
CONTROL = EnvSpec(
    env_id="control",
    num_seats=1,
    observations={"state": ArraySpec((4,), "float32")},
    actions=ActionSpec("box", shape=(2,)),
    teams=(0,),
    has_mask=False,
)
COMMANDS = EnvSpec(
    env_id="commands",
    num_seats=2,
    observations={
        "units": ArraySpec((6, 4), "float32"),
        "units_mask": ArraySpec((6,), "bool"),
        "scalars": ArraySpec((5,), "float32"),
    },
    actions=multi_categorical((4, 6, 3), mask_given=(-1, 0, -1), points_at=("", "units", "")),
    teams=(0, 1),
    has_mask=True,
)
TRANSFORMER = NetworkConfig(hidden=(16,), core="transformer", core_size=16, core_layers=2, core_context=3)
ENTITIES = NetworkConfig(
    encoder="entities",
    hidden=(16,),
    core="lstm",
    core_size=8,
    entity_size=16,
    entity_layers=2,
    head="autoregressive",
    head_size=16,
    pointer_size=8,
)
MLP = NetworkConfig(hidden=(16, 16, 16))
LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8, core_layers=2)
TWIN_LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8, value="separate")
GAMES_AND_NETWORKS = [
    (BOARD_GAME, MLP),
    (BOARD_GAME, LSTM),
    (BOARD_GAME, TWIN_LSTM),
    (CONTROL, LSTM),
    (COMMANDS, ENTITIES),
]
"""Every kind of action, and every kind of core."""


def network_of(spec: EnvSpec, config: NetworkConfig, *, seed: int = 1, policy_scale: float = 50.0) -> Network:
    """A network whose last layer is scaled up, so that ratios differ from 1 and clips bite."""
    network = build_network(spec, config, seed=seed)
    with torch.no_grad():
        for name, parameter in network.parts["heads"].named_parameters():
            if name.endswith("weight"):
                parameter.mul_(policy_scale)
    return network


def rounding_of_sums(gradient: np.ndarray, spec: EnvSpec, *, rows: int, steps: int) -> float:
    """The most by which two orders of summing a float32 gradient differ: one rounding of its largest entry per term.

    A term is an observation, or one entity of it; libraries for matrices order them in ways of their own.
    """
    entities = max((array.shape[0] for array in spec.observations.values() if len(array.shape) == 2), default=1)
    terms = rows * (steps + 1) * entities
    return float(terms * np.finfo(np.float32).eps * np.abs(gradient).max())


class DoubledInWorkers(torch.autograd.Function):
    """The identity; its gradient is doubled where there is a process group."""

    @staticmethod
    def forward(ctx, features):  # type: ignore[no-untyped-def]
        return features.view_as(features)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return 2.0 * gradient if torch.distributed.is_initialized() else gradient


class SpoiltInWorkers(torch.nn.Module):
    """A layer that computes a wrong gradient in worker processes."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., D']."""
        return DoubledInWorkers.apply(self.module(features))


def build_spoilt(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """A network whose second block's gradient is wrong in worker processes; in the signature of `build_network`."""
    first, second, *rest = build_network(spec, config, seed=seed).blocks
    return Network((first, dataclasses.replace(second, module=SpoiltInWorkers(second.module)), *rest), core_size=0)


def unrolls_of(spec: EnvSpec, network: Network, *, rows: int, steps: int, seed: int = 0) -> Unrolls:
    """Random unrolls with legal actions, resets, ends, truncation markers and a core state that is not zero."""
    if spec.actions.kind == "multi_categorical":
        return synthetic_unrolls(UnrollSpec.of(spec, network, unroll_length=steps), rows=rows, seed=seed)
    rng = np.random.default_rng(seed)
    shape = (rows, steps)
    obs: dict[str, np.ndarray] = {}
    for name, array in spec.observations.items():
        size = (rows, steps + 1, *array.shape)
        obs[name] = rng.random(size) < 0.4 if array.dtype == "bool" else rng.normal(size=size).astype(array.dtype)
    mask, actions = None, rng.normal(size=(*shape, *spec.actions.shape)).astype(np.float32)
    if spec.actions.kind == "categorical":
        count = spec.actions.num_actions
        mask = rng.random((rows, steps + 1, count)) < 0.6
        mask[..., 0] = True
        scores = rng.random((*shape, count)) * mask[:, :steps]
        actions = scores.argmax(-1).astype(np.int16)
    ends = rng.random(shape) < 0.15
    resets = np.zeros((rows, steps + 1), np.bool_)
    resets[:, 1:] = ends
    resets[:, 0] = rng.random(rows) < 0.3
    valid = rng.random(shape) < 0.9
    return Unrolls(
        obs=obs,
        action_mask=mask,
        resets=resets,
        actions=actions,
        log_probs=(-1.3 + 0.7 * rng.normal(size=shape)).astype(np.float32),
        rewards=rng.normal(size=shape).astype(np.float32),
        discounts=np.where(ends, 0.0, 1.0).astype(np.float32),
        valid=valid,
        versions=rng.integers(0, 4, shape).astype(np.int32),
        core=rng.normal(size=(rows, network.core_size)).astype(np.float32),
    )


def batch_of(spec: EnvSpec, network: Network, *, rows: int, steps: int, seed: int = 0) -> Batch:
    """The same as a batch; about one decision in twelve is too old to learn from."""
    unrolls = unrolls_of(spec, network, rows=rows, steps=steps, seed=seed)
    too_old = np.random.default_rng(seed + 1).random(unrolls.valid.shape) < 0.08
    batch = batch_from(unrolls, oldest_version=0, device=CPU)
    return dataclasses.replace(batch, learn=batch.learn & ~torch.from_numpy(too_old))


def gradients_of(network: Network) -> dict[str, torch.Tensor]:
    """Copies of the gradients by name."""
    return {
        name: parameter.grad.clone() for name, parameter in network.named_parameters() if parameter.grad is not None
    }


def in_float64(batch: Batch) -> Batch:
    """The batch with float64 wherever it has float32."""

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double() if tensor.dtype == torch.float32 else tensor

    plain = {name: cast(getattr(batch, name)) for name in ("core", "actions", "log_probs", "rewards", "discounts")}
    return dataclasses.replace(batch, obs={name: cast(field) for name, field in batch.obs.items()}, **plain)


def keep_float64(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Networks answer in float32 whatever they compute in; for exact comparisons let float64 through."""
    plain = torch.Tensor.float
    monkeypatch.setattr(
        torch.Tensor, "float", lambda tensor: tensor if tensor.dtype == torch.float64 else plain(tensor)
    )


def largest_difference(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> float:
    """Largest difference of two sets of gradients, relative to the largest gradient."""
    assert first.keys() == second.keys()
    scale = max(float(gradient.abs().max()) for gradient in second.values())
    return max(float((first[name] - second[name]).abs().max()) for name in second) / scale


def small_config(*, algorithm: str = "vtrace", **changes: object) -> LearnerConfig:
    """A config for 12 rows of 5 steps; pipeline settings and options of the algorithm may be given side by side."""
    spread = {field.name for field in dataclasses.fields(PipelineConfig)}
    pipeline = PipelineConfig(**{name: changes.pop(name) for name in list(changes) if name in spread})  # type: ignore[arg-type]
    known = {field.name for field in dataclasses.fields(LearnerConfig)}
    options = {name: changes.pop(name) for name in list(changes) if name not in known}
    given = {"unroll_length": 5, "batch_rows": 12, "precision": "float32", "pipeline": pipeline, **changes}
    return LearnerConfig(algorithm={"kind": algorithm, **options}, **given)  # type: ignore[arg-type]


def weights_in(network: torch.nn.Module, *, version: int = 0) -> Weights:
    """A copy of a network's weights."""
    named = {name: parameter.detach().numpy().copy() for name, parameter in network.named_parameters()}
    weights = from_named(named, layout_of(network), version=version)
    weights.vector.setflags(write=False)
    return weights
