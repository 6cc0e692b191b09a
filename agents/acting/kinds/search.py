"""Acting by search: copies of the games are played ahead, and the network judges where they lead."""

from __future__ import annotations

import torch

from league.agents.acting.kinds.acting_kinds import ActingPlace
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.search.config import SearchConfig, game_problems
from league.agents.acting.search.search_policy import SearchPolicy
from league.agents.nets.network import Network
from league.envs.protocol import EnvSpec


class Searching:
    """Each action is that of a search, with noise at the root and drawn moves early in a game.

    Sources: Silver et al. 2017, AlphaGo Zero; 2018, AlphaZero; Danihelka et al. 2022, Gumbel AlphaZero.
    """

    recorded: tuple[str, ...] = ("search_policy", "search_value")

    def __init__(self, spec: EnvSpec, place: ActingPlace, options: SearchConfig) -> None:
        del place
        for problem in game_problems(spec, can_copy=True):  # games themselves are only made where they are played
            raise ValueError(problem)
        self._options = options

    def policy(self, network: Network, *, dtype: torch.dtype) -> SearchPolicy:
        """As in the protocol. Raises ValueError: the network has a memory."""
        if network.core_size:
            raise ValueError("search needs a network without memory; set network.core: none")
        return SearchPolicy(NetworkPolicy(network, dtype=dtype), self._options, explores=True)
