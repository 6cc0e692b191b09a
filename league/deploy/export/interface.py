"""The interface of a network as a package states it: preprocessing of fields, core state, and outputs."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.autoregressive import AutoregressiveHead
from league.agents.nets.heads import CategoricalHead, GaussianHead
from league.agents.nets.image_encoders import PictureInput
from league.agents.nets.input_scaling import FieldScaling
from league.agents.nets.network import Network
from league.agents.nets.seat_groups import SeatGroupNetworks, own_spec
from league.agents.nets.sub_actions import MultiCategoricalHead
from league.agents.nets.tanh_gaussian import TanhGaussianHead
from league.envs.protocol import EnvSpec, field_label
from league.policies.package import CoreState, FieldInput, Outputs

MEANINGS: dict[type, str] = {
    AutoregressiveHead: "inputs of the head's own layers, which choose the sub-actions one by one: context, keys and "
    "flags of each set of entities, then the mask; the layers are in the weights as parts.heads.head.*",
    DeterministicHead: "means within the bounds, then log standard deviations of normals; the policy takes the means; "
    "the critics are in the weights as parts.heads.head.critics.*",
    TanhGaussianHead: "means, then log standard deviations of normals; an action is low + (high - low) * "
    "(tanh(sample) + 1) / 2",
    GaussianHead: "means, then log standard deviations of independent normals; an action is a sample, clipped to the "
    "bounds of the box",
    MultiCategoricalHead: "logits of the sub-actions in the order of the action mask; illegal ones -1e9; each "
    "sub-action is drawn from the softmax of its row, given the earlier choice that its mask depends on",
    QValuesHead: "advantages of the actions, to which the value is added where the head is dueling; illegal ones -1e9; "
    "the policy takes the largest, or with a small probability a random legal one",
    CategoricalHead: "logits of the actions; illegal ones -1e9; the softmax is the policy",
}
"""Class of a head -> the meaning of its dist_params; subclasses first."""


def preprocessing_of(network: Network, spec: EnvSpec) -> tuple[FieldInput, ...]:
    """A line for each field that a policy reads, as the network's own modules treat it; for each seat group its own."""
    if not spec.seat_groups:
        return tuple(_field_inputs(network, spec, group=""))
    inside = network.blocks[0].module
    assert isinstance(inside, SeatGroupNetworks)
    pairs = zip(spec.seat_groups, inside.networks.values(), strict=True)
    return tuple(line for group, own in pairs for line in _field_inputs(own, own_spec(spec, group), group=group.name))


def _field_inputs(network: nn.Module, spec: EnvSpec, *, group: str) -> Iterator[FieldInput]:
    scales: dict[str, float] = {}
    scalings: dict[str, FieldScaling] = {}
    for module in network.modules():
        if isinstance(module, PictureInput):
            scales.update(module.pictures)
        elif isinstance(module, FieldScaling):
            scalings[module.name] = module
    for name, field in spec.observations.items():
        if name in spec.value_fields:
            continue
        scaling = scalings.get(name)
        yield FieldInput(
            field_label(name, group=group),
            field.shape,
            field.dtype,
            scale=scales.get(name, 1.0),
            moments=() if scaling is None else scaling.moments,
            transform="symlog" if scaling is not None and scaling.is_squashed else "none",
        )


def core_state_of(network: Network) -> CoreState:
    """The memory of the network."""
    return CoreState(network.core_size)


def outputs_of(network: Network, dist_params: int) -> Outputs:
    """The outputs of the network, `dist_params` numbers among them."""
    head = type(network.head)
    meaning = next((text for known, text in MEANINGS.items() if issubclass(head, known)), "of a head of one's own")
    return Outputs(head.__name__, dist_params, meaning)
