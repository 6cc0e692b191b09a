"""A small network for every encoder, core, head and form of the value, and for seat groups."""

from __future__ import annotations

from dataclasses import replace

from league.agents.nets.config import NetworkConfig
from league.envs.protocol import SEAT_GROUP, ActionSpec, ArraySpec, EnvSpec, SeatGroup, multi_categorical

FIELDS = {
    "board": ArraySpec((3, 2), "bool"),
    "picture": ArraySpec((12, 11, 2), "uint8"),
    "clock": ArraySpec((), "int64"),
    "speed": ArraySpec((2,), "float32"),
    "units": ArraySpec((5, 3), "float32"),
    "units_mask": ArraySpec((5,), "bool"),
}
NUMBERED = EnvSpec("toy", 2, FIELDS, ActionSpec("categorical", 4), (0, 1), True)
BOX = replace(NUMBERED, actions=ActionSpec("box", shape=(2, 1)), has_mask=False)
PARTS = replace(NUMBERED, actions=multi_categorical((3, 5), mask_given=(-1, 0), points_at=("", "units")))
CENTRAL = replace(NUMBERED, value_fields=("clock",))

SMALL = NetworkConfig(
    hidden=(16, 12), channels=(4, 3), core_size=8, core_context=3, attention_heads=2, entity_size=8, entity_layers=1
)


def _groups(kind: str) -> EnvSpec:
    """Two seats of one group and one of another, which sees and may do less."""
    own = {
        "categorical": [ActionSpec("categorical", size) for size in (5, 3, 5)],
        "box": [ActionSpec("box", shape=(2,)), ActionSpec("box", shape=(3,)), ActionSpec("box", shape=(3,))],
    }
    first, second, padded = own[kind]
    fields = {"x": ArraySpec((4,), "float32"), SEAT_GROUP: ArraySpec((2,), "bool")}
    many = SeatGroup("many", (0, 1), {"x": ArraySpec((4,), "float32")}, first)
    few = SeatGroup("few", (2,), {"x": ArraySpec((2,), "float32")}, second)
    return EnvSpec("groups", 3, fields, padded, (0, 0, 1), kind != "box", seat_groups=(many, few))


CASES: dict[str, tuple[EnvSpec, NetworkConfig]] = {
    "mlp": (NUMBERED, SMALL),
    "symlog": (NUMBERED, replace(SMALL, input_scaling="symlog", activation="tanh")),
    "no_hidden": (NUMBERED, replace(SMALL, hidden=())),
    "uniform_mix": (NUMBERED, replace(SMALL, uniform_mix=0.1)),
    "conv": (NUMBERED, replace(SMALL, encoder="conv")),
    "impala_resnet": (NUMBERED, replace(SMALL, encoder="impala_resnet")),
    "nature_cnn": (NUMBERED, replace(SMALL, encoder="nature_cnn")),
    "entities": (NUMBERED, replace(SMALL, encoder="entities")),
    "dict": (NUMBERED, replace(SMALL, encoder="dict")),
    "clock": (NUMBERED, replace(SMALL, core={"kind": "clock", "decisions": 4})),
    "lstm": (NUMBERED, replace(SMALL, core="lstm")),
    "stack": (NUMBERED, replace(SMALL, core={"kind": "stack", "steps": 2})),
    "stacked_lstm": (NUMBERED, replace(SMALL, core="lstm", core_layers=3, activation="elu")),
    "transformer": (NUMBERED, replace(SMALL, core="transformer")),
    "deep_transformer": (NUMBERED, replace(SMALL, core="transformer", core_layers=2, core_context=9)),
    "dict_lstm": (NUMBERED, replace(SMALL, encoder="dict", core="lstm", value="separate")),
    "box": (BOX, SMALL),
    "tanh_gaussian": (BOX, replace(SMALL, head="tanh_gaussian", core="lstm")),
    "deterministic": (BOX, replace(SMALL, head="deterministic")),
    "q_values": (NUMBERED, replace(SMALL, head="q_values", core="lstm")),
    "q_values_plain": (NUMBERED, replace(SMALL, head={"kind": "q_values", "dueling": False})),
    "multi_categorical": (replace(PARTS, actions=multi_categorical((3, 5))), SMALL),
    "autoregressive": (PARTS, replace(SMALL, encoder="dict", head="autoregressive", head_size=8, pointer_size=4)),
    "separate_value": (NUMBERED, replace(SMALL, value="separate", value_output="tanh")),
    "centralised_value": (CENTRAL, replace(SMALL, value="centralised")),
    "popart": (NUMBERED, replace(SMALL, value_output="popart")),
    "groups": (_groups("categorical"), SMALL),
    "groups_box": (_groups("box"), SMALL),
    "groups_lstm": (_groups("categorical"), replace(SMALL, core="lstm")),
}
"""Name -> game and network."""
