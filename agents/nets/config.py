"""The configuration of a network: its encoder, core, heads and value, their widths and their initialisation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from league.envs.component_choice import Component

MAX_WIDTH = 65_536
"""Largest width of a layer: two such layers in a row take 17 GB."""

MAX_LAYERS = 64
"""Most layers of a core, and over entities."""

MAX_CONTEXT = 4096
"""Most earlier steps that a core attends to: an actor host keeps all of them for every game and seat."""

_COUNTS = {
    "core_size": MAX_WIDTH,
    "core_layers": MAX_LAYERS,
    "core_context": MAX_CONTEXT,
    "attention_heads": MAX_WIDTH,
    "entity_size": MAX_WIDTH,
    "entity_layers": MAX_LAYERS,
    "head_size": MAX_WIDTH,
    "pointer_size": MAX_WIDTH,
}
"""Width or count, at least 1 -> the most that it may be."""

MIN_GAIN, MAX_GAIN = 1e-3, 1e3
"""Of `init_gain`: with less a first layer passes nothing on, and with more its outputs swamp all that is learnt."""

MIN_DEVIATION, MAX_MOMENT = 1.2e-38, 3.4e38
"""Of `input_moments`: numbers that float32 holds, the first with its inverse."""

MAX_VALUE_MOMENT = 1e18
"""Of `value_moments`: its square is a float32."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network; observations and actions come from the game's spec.

    An encoder, core or head of your own may have options: give a mapping of its `kind` and of them.

    Fields:
      encoder: entry of `registry.ENCODERS` or "module:attribute"; turns an observation into features.
      input_scaling: "symlog" puts sign(x) log(1 + |x|) in place of every number x of an observation, for games whose
        numbers are large or of unknown range; "none" takes them as they are. Flags, int8 and images always stay.
      input_moments: field -> [mean, standard deviation] of each number of its last axis, which are subtracted and
        divided by before `input_scaling`: for numbers that are small, or vary little beside their mean. A number of
        [0, 1] stays. Pictures have none. A field of a seat group is named GROUP/FIELD.
      hidden: widths of the encoder's fully connected layers, one block each.
      channels: widths of the convolutional layers or stages, for encoders that have them.
      activation: between layers. ReLU costs half of tanh in the forward pass on a CPU.
      core: entry of `registry.CORES` or "module:attribute"; "none" for a network without memory; {kind: clock,
        decisions: 15} for one that knows how many of its decisions were made, of so many in the longest episode; {kind:
        stack, steps: 1} for one that has the features of so many earlier decisions beside those of this one.
      core_size: width of one layer of the core.
      core_layers: number of stacked layers of the core.
      core_context: number of earlier steps that each layer of a transformer core attends to.
      attention_heads: of every attention layer; they divide core_size and entity_size.
      entity_size: width of the transformer layers over entities.
      entity_layers: number of these layers.
      head: entry of `registry.HEADS` or "module:attribute"; "auto" takes the entry named as the game's kind of action.
      uniform_mix: share of the uniform distribution over the legal choices in categorical policies; 0 for none. With it
        no legal action dies out and every ratio of two policies is bounded.
      head_size: width of the context of an autoregressive head.
      pointer_size: width of the keys by which a head points at entities.
      value: "shared" puts the value on the policy's trunk, "separate" gives it its own trunk, "centralised" its own
        trunk that also sees the game's `value_fields`.
      value_output: "linear", "tanh" for returns in [-1, 1], or "popart", which keeps running moments of the value
        targets for `learner.value_normalisation: popart`.
      value_moments: mean and standard deviation of the value targets that "popart" begins with, for returns that all
        lie far from 0 beside what they differ by.
      init_gain: gain of the MLP's first layer's orthogonal initialisation; later layers take the activation's own gain
        (sqrt 2 for ReLU). With the framework's default initialisation a handful of 0/1 inputs (a poker player's
        information) maps all states to nearly one feature vector: updates of frequent states also move rare ones. A
        tanh network then stays at five times the reachable exploitability of Kuhn poker, even on exact gradients.
        Orthogonal layers reach it with sqrt 2, 2 and 4 alike. Sampled runs on such inputs did best with 4, so raise it
        there. If many inputs are non-zero at a time, sqrt 2 is enough.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  read by pydantic where this record is part of a config

    encoder: Component = "mlp"
    input_scaling: Literal["none", "symlog"] = "none"
    input_moments: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    hidden: tuple[int, ...] = (128, 128)
    channels: tuple[int, ...] = (16, 32, 32)
    activation: Literal["relu", "tanh", "elu"] = "relu"
    core: Component = "none"
    core_size: int = 128
    core_layers: int = 1
    core_context: int = 16
    attention_heads: int = 4
    entity_size: int = 64
    entity_layers: int = 2
    head: Component = "auto"
    uniform_mix: float = 0.0
    head_size: int = 128
    pointer_size: int = 32
    value: Literal["shared", "separate", "centralised"] = "shared"
    value_output: Literal["linear", "tanh", "popart"] = "linear"
    value_moments: tuple[float, float] = (0.0, 1e-4)
    init_gain: float = math.sqrt(2.0)

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
          ValueError: a width, count, share, gain or moment is out of its range; the message names the key.
        """
        for name in ("hidden", "channels"):
            widths: tuple[int, ...] = getattr(self, name)
            if not all(1 <= width <= MAX_WIDTH for width in widths):
                raise ValueError(f"{name} must hold widths of at least 1 and at most {MAX_WIDTH}, got {list(widths)}")
        for name, most in _COUNTS.items():
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be at least 1 and at most {most}, got {getattr(self, name)}")
        for name, pairs in self.input_moments.items():
            if not all(abs(mean) <= MAX_MOMENT and MIN_DEVIATION <= spread <= MAX_MOMENT for mean, spread in pairs):
                raise ValueError(
                    f"input_moments of {name!r} must be finite in float32, with deviations of at least "
                    f"{MIN_DEVIATION:g}, got {pairs}"
                )
        mean, spread = self.value_moments
        if not (abs(mean) <= MAX_VALUE_MOMENT and 0.0 < spread <= MAX_VALUE_MOMENT):
            raise ValueError(
                f"value_moments must be at most {MAX_VALUE_MOMENT:g}, with a deviation above 0, got {(mean, spread)}"
            )
        if not 0 <= self.uniform_mix < 1:
            raise ValueError(f"uniform_mix must be in [0, 1), got {self.uniform_mix}")
        if not MIN_GAIN <= self.init_gain <= MAX_GAIN:
            raise ValueError(f"init_gain must be in [{MIN_GAIN:g}, {MAX_GAIN:g}], got {self.init_gain}")
