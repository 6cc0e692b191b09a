"""Registers encoders, cores and heads by name, and resolves a name to its builder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from league.envs import plugins
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import options_argument

ENCODERS: dict[str, str] = {
    "conv": "league.agents.nets.image_encoders:build_conv",
    "dict": "league.agents.nets.dict_encoder:build_fields",
    "entities": "league.agents.nets.entities:build_entities",
    "impala_resnet": "league.agents.nets.image_encoders:build_impala_resnet",
    "mlp": "league.agents.nets.mlp:build_mlp",
    "nature_cnn": "league.agents.nets.image_encoders:build_nature_cnn",
}

CORES: dict[str, str] = {
    "clock": "league.agents.nets.cores.clock:build_clock",
    "lstm": "league.agents.nets.cores.lstm:build_lstm",
    "stack": "league.agents.nets.cores.stack:build_stack",
    "transformer": "league.agents.nets.cores.transformer:build_transformer",
}

HEADS: dict[str, str] = {
    "autoregressive": "league.agents.nets.autoregressive:AutoregressiveHead",
    "box": "league.agents.nets.heads:GaussianHead",
    "categorical": "league.agents.nets.heads:CategoricalHead",
    "deterministic": "league.agents.nets.action_values.deterministic:DeterministicHead",
    "multi_categorical": "league.agents.nets.sub_actions:MultiCategoricalHead",
    "q_values": "league.agents.nets.action_values.q_values:QValuesHead",
    "tanh_gaussian": "league.agents.nets.tanh_gaussian:TanhGaussianHead",
}


class UnknownPartError(ValueError):
    """A network names an encoder, core or head that does not exist; the message lists those that do."""


def resolve(choice: Component, registry: Mapping[str, str], *, kind: str) -> Callable[..., object]:
    """The builder behind a registered name or a "module:attribute" string, its options filled in.

    Args:
      choice: a key of `registry`, "module:attribute" of a builder outside this package, or a mapping of such a kind
        and the builder's own options, see `league.envs.plugin_options`.
      registry: name -> "module:attribute".
      kind: "encoder", "core" or "head", for the message.
    Raises:
      UnknownPartError: neither registered nor importable.
      OptionsError: the options do not fit.
    """
    name = kind_of(choice)
    try:
        build: Callable[..., object] = plugins.resolve(name, registry, what=kind)
    except plugins.PluginError as error:
        raise UnknownPartError(str(error)) from error
    options = options_argument(build, choice, place=f"network.{kind}")
    return functools.partial(build, **options) if options else build
