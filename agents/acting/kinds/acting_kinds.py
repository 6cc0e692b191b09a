"""Registers the kinds of acting by name, and makes one from its setting.

An entry is the file of its kind and a line in `ACTING`, with a line in `config.ACTING_OPTIONS` for its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.policy import AdoptingPolicy
from league.agents.nets.network import Network
from league.agents.unroll.unroll import UnrollSpec
from league.envs.component_choice import Component
from league.envs.plugin_options import component_of
from league.envs.protocol import EnvSpec

ACTING: Mapping[str, str] = {
    "sample": "league.agents.acting.kinds.sampled:Sampled",
    "epsilon_greedy": "league.agents.acting.kinds.exploring:EpsilonGreedy",
    "gaussian": "league.agents.acting.kinds.exploring:Gaussian",
    "search": "league.agents.acting.kinds.search:Searching",
    "perturbed": "league.agents.acting.kinds.perturbed:Perturbed",
}
"""Name of `actors.acting` -> "module:attribute" of an `ActingKind`."""

PLACE, FROZEN_PLACE = "actors.acting", "actors.acting_frozen"


@dataclass(frozen=True)
class ActingPlace:
    """Where policies act.

    Fields:
      host: number of the actor host, from 0. num_hosts: of the run, at least 1.
      num_games: of each host; `ActInputs.games` counts them.
      seed: of the run.
    """

    host: int = 0
    num_hosts: int = 1
    num_games: int = 1
    seed: int = 0

    def ladder(self, games: NDArray[np.int64], *, first: float, alpha: float) -> NDArray[np.float64]:
        """first ** (1 + alpha i / (N - 1)) float64 [K] for games of this host, i of N among those of all hosts.

        Source: Horgan et al. 2018, Distributed prioritized experience replay, section 4.1.
        """
        last = max(self.num_hosts * self.num_games - 1, 1)
        steps: NDArray[np.float64] = first ** (1.0 + alpha * (self.host * self.num_games + games) / last)
        return steps


class ActingKind(Protocol):
    """A way in which networks act. Built as `kind(spec, place)`; with `options=...` where it declares options.

    Args of the constructor: spec: EnvSpec of the game. place: an `ActingPlace`. It raises ValueError where the game
    does not fit.

    Attributes:
      recorded: fields of `unroll.ASKED` that its policies give in `ActOutputs.recorded`, in every decision.
    """

    recorded: tuple[str, ...]

    def policy(self, network: Network, *, dtype: torch.dtype) -> AdoptingPolicy:
        """A policy with a copy of the network, whose forward pass computes in `dtype`.

        One that decides in one call with others is a `GroupingPolicy`. One that tries moves out on copies of the games
        finds them in `ActInputs.env`.

        Raises:
          ValueError: the network does not fit.
        """
        ...


def make_acting(choice: Component, spec: EnvSpec, place: ActingPlace, *, setting: str = PLACE) -> ActingKind:
    """Make a kind of acting, a registered one or "module:attribute", with its options.

    Args:
      setting: dotted path of the choice in the configuration.
    Raises:
      PluginError: there is no such kind, or its options do not fit.
      ValueError: it does not fit the game.
    """
    kind: ActingKind = component_of(choice, ACTING, what="kind of acting", place=setting)(spec, place)
    return kind


def try_acting(choice: Component, spec: EnvSpec, network: Network, *, setting: str) -> None:
    """Make a kind of acting and a policy of it once; arguments and errors as of `make_acting`."""
    kind = make_acting(choice, spec, ActingPlace(), setting=setting)
    kind.policy(network, dtype=torch.float32)
    UnrollSpec(spec, 1, recorded=tuple(kind.recorded))
