"""Acting of value learners: the best action with random ones in between, or with normal noise, by a ladder of games.

Shape letters: K slots, A actions, D = the flattened size of a box action.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from league.agents.acting.kinds.acting_kinds import ActingPlace
from league.agents.acting.kinds.config import EpsilonGreedyConfig, GaussianConfig
from league.agents.acting.network_policy import Estimates, NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs
from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.heads import Head
from league.agents.nets.kernels.distributions import ILLEGAL_LOGIT
from league.agents.nets.network import Network
from league.envs.protocol import EnvSpec


@dataclass(frozen=True)
class EpsilonGreedyChoice:
    """The legal action of the largest value or, with the probability of the game, a random legal one."""

    place: ActingPlace
    options: EpsilonGreedyConfig

    def choose(self, head: Head, outputs: Estimates, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """As in the protocol; records the largest value of each slot."""
        assert isinstance(head, QValuesHead)
        scores = outputs.dist_params.float().numpy()
        legal, rows = scores > ILLEGAL_LOGIT / 2, np.arange(len(scores))
        counts = np.maximum(legal.sum(1), 1)
        epsilons = self.place.ladder(inputs.games, first=self.options.epsilon, alpha=self.options.alpha)
        best = scores.argmax(1)
        draws = rng.random((len(scores), 2))
        nth = np.minimum((draws[:, 1] * counts).astype(np.int64), counts - 1)
        random = (legal.cumsum(1) > nth[:, None]).argmax(1)
        actions = np.where(draws[:, 0] < epsilons, random, best)
        values = head.action_values(outputs.dist_params.float(), outputs.values.float()).numpy()[rows, best]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_probs = np.log(epsilons / counts + np.where(actions == best, 1.0 - epsilons, 0.0))
            log_probs = np.where(np.isfinite(scores).all(1) & np.isfinite(values), log_probs, np.nan)
        return ActOutputs(
            actions=actions, log_probs=log_probs.astype(np.float32), core=outputs.core, recorded={"values": values}
        )


@dataclass(frozen=True)
class GaussianChoice:
    """The policy's action with normal noise of the width of the game, clipped to the box as the env will."""

    place: ActingPlace
    options: GaussianConfig

    def choose(self, head: Head, outputs: Estimates, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """As in the protocol; a log-probability is the density of the noise before clipping."""
        assert isinstance(head, DeterministicHead)
        means = outputs.dist_params.float().chunk(2, dim=-1)[0].numpy()
        widths = self.place.ladder(inputs.games, first=self.options.noise, alpha=self.options.alpha) * head.half_width
        noise = rng.standard_normal(means.shape)
        actions = np.clip(means + noise * widths[:, None], head.low, head.high).astype(np.float32)
        constant = np.log(widths) + 0.5 * np.log(2.0 * np.pi)
        log_probs = (-0.5 * np.square(noise)).sum(1) - means.shape[1] * constant + 0.0 * means.sum(1)
        return ActOutputs(
            actions=actions.reshape(len(actions), *head.shape),
            log_probs=log_probs.astype(np.float32),
            core=outputs.core,
        )


class EpsilonGreedy:
    """A kind of acting, see `EpsilonGreedyChoice`. Source: Horgan et al. 2018, section 4.1."""

    recorded: tuple[str, ...] = ("values",)

    def __init__(self, spec: EnvSpec, place: ActingPlace, options: EpsilonGreedyConfig) -> None:
        if spec.actions.kind != "categorical":
            raise ValueError(f"epsilon_greedy draws numbered actions, the game takes {spec.actions.kind}; use gaussian")
        self._choice = EpsilonGreedyChoice(place, options)

    def policy(self, network: Network, *, dtype: torch.dtype) -> NetworkPolicy:
        if not isinstance(network.head, QValuesHead):
            raise ValueError(_unfit("epsilon_greedy", "largest value", network.head, "q_values"))
        return NetworkPolicy(network, dtype=dtype, choice=self._choice)


class Gaussian:
    """A kind of acting, see `GaussianChoice`. Source: Fujimoto et al. 2018, algorithm 1."""

    recorded: tuple[str, ...] = ()

    def __init__(self, spec: EnvSpec, place: ActingPlace, options: GaussianConfig) -> None:
        if spec.actions.kind != "box":
            raise ValueError(f"gaussian adds noise to a box, the game takes {spec.actions.kind}; use epsilon_greedy")
        self._choice = GaussianChoice(place, options)

    def policy(self, network: Network, *, dtype: torch.dtype) -> NetworkPolicy:
        if not isinstance(network.head, DeterministicHead):
            raise ValueError(_unfit("gaussian", "one action", network.head, "deterministic"))
        return NetworkPolicy(network, dtype=dtype, choice=self._choice)


def _unfit(kind: str, what: str, head: Head, wanted: str) -> str:
    return (
        f"{kind} starts from the {what} of a network, and network.head is a {type(head).__name__}; use head: {wanted}"
    )
