"""Acting by perturbed weights: each game of a round is played by a network of its own, all of them in one call.

Shape letters: N games of the host, K slots to act for, P weights of the network, L candidates.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.kinds.acting_kinds import ActingPlace
from league.agents.acting.kinds.config import PerturbedConfig
from league.agents.acting.network_group import can_group
from league.agents.acting.network_policy import GREEDY, SAMPLED, NetworkPolicies, NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs, Round
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import CandidateWeights, EvolvedWeights
from league.agents.nets.network import Network
from league.agents.torch_runtime import with_own_defaults
from league.agents.weights import Weights, WeightsError, layout_of
from league.envs.protocol import EnvSpec


class Perturbed:
    """The seats whose episodes count play with perturbed weights, all others with the player's own."""

    recorded: tuple[str, ...] = ()

    def __init__(self, spec: EnvSpec, place: ActingPlace, options: PerturbedConfig) -> None:
        del spec
        self._place, self._options = place, options

    def policy(self, network: Network, *, dtype: torch.dtype) -> PerturbedPolicy:
        if not can_group(network):
            raise ValueError(
                "perturbed: many networks act in one call, which is known of built-in modules alone, and this network "
                "has others; use built-in ones"
            )
        return PerturbedPolicy(network, self._place, self._options, dtype=dtype)


class PerturbedPolicy:
    """N networks that differ from the player's own, and that one.

    Games g and g + N/2 play a perturbation and its opposite: their arenas begin rounds from equal seeds, so that they
    meet the same opponents in the same seats. Candidates, where they are published, are given out in turn instead.

    Args:
      network: its architecture. place: of the host. options: of the kind. dtype: compute type of the forward pass.

    Attributes:
      version: of the weights adopted last.
    """

    def __init__(self, network: Network, place: ActingPlace, options: PerturbedConfig, *, dtype: torch.dtype) -> None:
        choice = GREEDY if options.greedy else SAMPLED
        self._place, self._sigma = place, options.sigma
        self._layout = layout_of(network)
        self._num_games = place.num_games
        members = [NetworkPolicy(network, dtype=dtype, choice=choice) for _ in range(place.num_games + 1)]
        self._own = NetworkPolicy(network, dtype=dtype)
        self._values = torch.zeros(len(members), self._layout.size, dtype=dtype)
        for member, values in zip(members, self._values, strict=True):
            _point(member.network, values)
        self._group = NetworkPolicies(members)
        self._noise = noise_table(place.seed)
        self._center = np.zeros(self._layout.size, np.float32)
        self._candidates: NDArray[np.float32] | None = None
        self._cap = 0
        self._numbers = np.zeros(self._num_games, np.int32)  # of each game's perturbation, from 1; negative: opposite
        self._round_of: dict[int, int] = {}  # first game of an arena -> seed of its round
        self._rounds: Counter[int] = Counter()  # of each arena, with these candidates
        self.version = -1

    @property
    def core_size(self) -> int:
        """C."""
        return self._own.core_size

    def adopt(self, weights: Weights) -> None:
        """As in the protocol. The networks of rounds at hand stay: what they play is late."""
        if weights.version == self.version:
            return
        if weights.layout != self._layout:
            raise WeightsError("the weights are for another network: their parameters differ")
        self._own.adopt(weights)
        self._center, self.version = weights.vector, weights.version
        self._candidates = weights.candidates if isinstance(weights, CandidateWeights) else None
        self._cap = weights.cap if isinstance(weights, EvolvedWeights) else 0
        self._rounds.clear()

    @with_own_defaults
    @torch.inference_mode()
    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Acts by a network of its own in every seat that counts, and says which. Raises NotFiniteError."""
        slots, turn = inputs.slots, inputs.turn
        if inputs.round is None:
            return self._own.act(inputs, rng)
        self._enter(inputs.round, first_game=inputs.first_game)
        seats = inputs.round.seats[turn.env_index[slots]]
        counts, idles = seats == turn.seat[slots], (seats < 0) & (inputs.env.spec.actions.kind == "categorical")
        own, perturbed, idle = (np.flatnonzero(some) for some in (~counts & ~idles, counts, idles))
        parts = [(perturbed, self._act_perturbed(_some(inputs, perturbed), rng))] if len(perturbed) else []
        if len(idle):
            parts.append((idle, _idle(_some(inputs, idle))))
        if len(own):
            parts.append((own, self._own.act(_some(inputs, own), rng)))
        outputs = _together(parts, inputs.core)
        numbers = np.where(counts, self._numbers[inputs.games], 0).astype(np.int32)
        return replace(outputs, recorded={"perturbations": numbers, "caps": np.full_like(numbers, self._cap)})

    def _act_perturbed(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Slots in the order of their games, as turns have them: one network after the other."""
        sizes = np.bincount(inputs.games, minlength=self._num_games + 1).tolist()
        whole = np.zeros((len(inputs.turn.env_index), inputs.core.shape[1]), np.float32)
        whole[inputs.slots] = inputs.core
        return self._group.act(replace(inputs, core=whole), inputs.slots, sizes, rng)

    def _enter(self, begun: Round, *, first_game: int) -> None:
        """Perturb the networks of an arena's games where a round has begun there."""
        if self._round_of.get(first_game) == begun.seed:
            return
        self._round_of[first_game] = begun.seed
        for game in range(first_game, first_game + len(begun.seats)):
            values = self._candidate(game, first_game) if self._candidates is not None else None
            if values is None:
                values = self._perturbed(game, begun.seed)
            self._values[game].copy_(torch.from_numpy(values))
        self._rounds[first_game] += 1

    def _perturbed(self, game: int, seed: int) -> NDArray[np.float32]:
        """float32 [P], and notes down the number of the perturbation."""
        half = max(self._num_games // 2, 1)
        index = int(self._noise.draw(np.random.default_rng([seed, game % half]), 1, size=self._layout.size)[0])
        sign = 1 if game < half else -1
        self._numbers[game] = sign * (index + 1)
        noise = np.float32(sign * self._sigma) * self._noise.get(index, self._layout.size)
        return np.asarray(self._center + noise, np.float32)

    def _candidate(self, game: int, first_game: int) -> NDArray[np.float32]:
        """float32 [P], the next candidate for a game: over all hosts, every one is played in turn."""
        assert self._candidates is not None
        before = self._place.host + self._rounds[first_game] * self._place.num_hosts
        number = (before * self._num_games + game) % len(self._candidates)
        self._numbers[game] = number + 1
        return np.asarray(self._candidates[number], np.float32)


def _point(network: Network, values: torch.Tensor) -> None:
    """Make the parameters of a network views of values [P]."""
    parameters = list(network.parameters())
    parts = torch.split(values, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part.view(parameter.shape)


def _some(inputs: ActInputs, places: NDArray[np.int64]) -> ActInputs:
    """Inputs of some of the slots. places: positions in `inputs.slots`."""
    return replace(inputs, slots=inputs.slots[places], core=inputs.core[places], core_rows=None)


def _idle(inputs: ActInputs) -> ActOutputs:
    """The first legal action, for games whose episode has ended: nobody looks at what they play."""
    count, mask = len(inputs.slots), inputs.turn.action_mask
    actions = np.zeros(count, np.int64) if mask is None else mask[inputs.slots].argmax(axis=1)
    return ActOutputs(actions, np.zeros(count, np.float32), inputs.core)


def _together(parts: list[tuple[NDArray[np.int64], ActOutputs]], core: NDArray[np.float32]) -> ActOutputs:
    """Outputs of all slots, from those of some each, by their positions."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([places for places, _ in parts]))

    def ordered(name: str) -> NDArray[np.generic]:
        whole: NDArray[np.generic] = np.concatenate([getattr(outputs, name) for _, outputs in parts])[order]
        return whole

    width = min(outputs.core.shape[1] for _, outputs in parts)
    states = np.concatenate([outputs.core[:, :width] for _, outputs in parts])[order] if width else core
    has_terms = parts[0][1].sub_action_log_probs is not None
    return ActOutputs(
        actions=ordered("actions"),
        log_probs=ordered("log_probs").astype(np.float32),
        core=states,
        sub_action_log_probs=ordered("sub_action_log_probs").astype(np.float32) if has_terms else None,
    )
