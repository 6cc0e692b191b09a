"""Makes a component of the core, whose fields are its options, from plain values."""

from __future__ import annotations

from league.core.state.built_ins import ComponentOptionsError, Options
from league.envs.plugin_options import OptionsError, make_options


def build_component(component: type, options: Options) -> object:
    """The component of these options, each of its declared type.

    Args:
      component: dataclass whose fields are its options.
    Raises:
      ComponentOptionsError: with every problem at once, each under the path of its option.
    """
    try:
        return make_options(component, options, place="")
    except OptionsError as error:
        found = [problem.partition(": ") for problem in error.problems]
        raise ComponentOptionsError([(tuple(filter(None, key.split("."))), text) for key, _, text in found]) from error
