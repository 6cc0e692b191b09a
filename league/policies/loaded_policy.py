"""A trained policy in the hands of a user: one observation in, one action out; alone or as a mixture of several.

Shape letters: A actions, C core state size, K slots.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.network_policy import NetworkPolicy, Sampling
from league.agents.acting.policy import ActInputs, ActOutputs, Evaluating, Evaluation, Policy
from league.agents.acting.search.config import SearchConfig, game_problems
from league.agents.acting.search.search_policy import SearchPolicy
from league.agents.nets.network import Network
from league.agents.torch_runtime import with_own_defaults
from league.agents.weights import Weights, adopt
from league.envs.protocol import BatchedEnv, EnvError, EnvSpec
from league.policies.observation import (
    Observation,
    ObservationMismatch,
    batch_of_one,
    mask_of_one,
    seat_number,
    within_bounds,
)


class LoadedPolicy:
    """One snapshot, playing one game at a time: a seat, or several of which each is named and has its own memory.

    Args:
      name: what it is called in tables.
      network: shared with nobody; takes the weights over.
      weights: of the snapshot.
      spec: of the game that it was trained on.
      greedy: take the likeliest action instead of sampling.
      seed: of the sampled actions, until `reset` is given another.
    Raises:
      WeightsError: the weights are for another network.
    """

    def __init__(
        self, name: str, network: Network, weights: Weights, spec: EnvSpec, *, greedy: bool = False, seed: int = 0
    ) -> None:
        self.name = name
        self.spec = spec
        self.greedy = greedy
        self._network = network.eval().requires_grad_(False)
        self._weights = weights
        self._rng = np.random.default_rng(seed)
        self._cores: dict[int | None, torch.Tensor] = {}  # by named seat, None for a seat that is not named
        adopt(network, weights)

    @property
    def members(self) -> list[tuple[float, LoadedPolicy]]:
        """(weight, policy) of what it is mixed from: itself alone."""
        return [(1.0, self)]

    @property
    def network(self) -> Network:
        """The network with the weights of the snapshot, in evaluation mode."""
        return self._network

    @property
    def digest(self) -> str:
        """sha256 (hex) over names, shapes and values of the weights."""
        return self._weights.digest()

    @property
    def version(self) -> int:
        """Learner updates made when the snapshot was taken."""
        return self._weights.version

    def for_game(self, spec: EnvSpec) -> LoadedPolicy:
        """The same policy for another description of its game, without the memory of a game. spec: of that."""
        return LoadedPolicy(self.name, self._network, self._weights, spec, greedy=self.greedy)

    def reset(self, seed: int | None = None) -> None:
        """Begin a game: forget the last one. seed: restarts the stream of sampled actions; None lets it run on."""
        self._cores.clear()
        if seed is not None:
            self._rng = np.random.default_rng(seed)

    @with_own_defaults
    def act(self, obs: Observation, mask: Observation | None = None, *, seat: str | int | None = None) -> Any:
        """The action for what a seat sees now; where the network has memory, that of the seat moves one step on.

        Args:
          obs: as the environment shows it to one seat (see `batch_of_one`).
          mask: [A], true where legal (see `mask_of_one`).
          seat: name or number of the seat. Needed where seats differ and the observation does not tell them apart, and
            where this policy plays several seats and its network has memory.
        Returns:
          The action as the environment takes it: the number of the action, an int array of its parts, a float array
          within the bounds of a box, or a dict or tuple of these.
        Raises:
          ObservationMismatch: the observation or mask does not fit the game, or what the network answers is no number.
        """
        number = seat_number(obs, self.spec, seat)
        named = None if seat is None else number
        dist_params, self._cores[named] = self._step(obs, mask, number, self._core_of(named))
        head = self._network.head
        with torch.inference_mode():
            if self.greedy:
                action = head.mode(dist_params)
            else:
                noise = torch.from_numpy(self._rng.random((1, head.num_noise), dtype=np.float32))
                action = head.sample(dist_params, noise)[0]
        numbered = self.spec.actions.kind == "categorical"
        answer = int(action[0]) if numbered else within_bounds(self.spec, action[0].numpy())
        return answer if self.spec.user_format is None else self.spec.user_format.write(answer, seat=number)

    def probs(
        self, obs: Observation, mask: Observation | None = None, *, seat: str | int | None = None
    ) -> NDArray[np.float32]:
        """Probability of every action, float32 [A]; neither draws nor moves the memory. Arguments as of `act`.

        Raises:
          ObservationMismatch: as `act`, or the game takes a box, whose actions have no probabilities.
        """
        if self.spec.actions.kind != "categorical":
            raise ObservationMismatch(f"{self.spec.env_id} has no numbered actions: none has a probability.")
        number = seat_number(obs, self.spec, seat)
        dist_params, _ = self._step(obs, mask, number, self._core_of(None if seat is None else number))
        probs: NDArray[np.float32] = self._probabilities(dist_params)[0]
        return probs

    def all_probs(self, fields: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Probability of every action for many observations in one pass, each taken as the first of its game.

        Args:
          fields: name -> [K, ...] in the dtypes of the game. legal: bool [K, A].
        Returns:
          float32 [K, A]; of a greedy policy too these are what it would sample from.
        Raises:
          ObservationMismatch: the game takes a box.
        """
        none = np.zeros((len(legal), self._network.core_size), np.float32)
        return self.probs_after(fields, legal, none)[0]

    @with_own_defaults
    @torch.inference_mode()
    def probs_after(
        self, fields: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_], core: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """As `all_probs`, after the memories `core` [K, C]; also returns the memories for the next decisions."""
        if self.spec.actions.kind != "categorical":
            raise ObservationMismatch(f"{self.spec.env_id} has no numbered actions: none has a probability.")
        output = self._network.step(
            {name: torch.from_numpy(np.ascontiguousarray(field)) for name, field in fields.items()},
            core=torch.from_numpy(core),
            action_mask=torch.from_numpy(legal) if self.spec.has_mask else None,
        )
        return self._probabilities(output.logits), output.core.numpy()

    def as_seat_policy(self, *, greedy: bool | None = None, search: int = 0) -> NetworkPolicy | SearchPolicy:
        """A batched copy for matches.

        Args:
          greedy: None takes over this policy's own.
          search: simulations before each move, which is then the most visited one; 0 for none.
        Raises:
          EnvError: the game or the network cannot be searched; one sentence.
        """
        policy = NetworkPolicy(self._network, choice=Sampling(self.greedy if greedy is None else greedy))
        policy.adopt(self._weights)
        if not search:
            return policy
        for problem in game_problems(self.spec, can_copy=True):
            raise EnvError(f"--search {search}: {problem}")
        return SearchPolicy(policy, SearchConfig(simulations=search), explores=False)

    def _probabilities(self, dist_params: torch.Tensor) -> NDArray[np.float32]:
        """Of every numbered action, float32 [..., A]."""
        probs = self._network.head.probabilities(dist_params)
        assert probs is not None, "a head for numbered actions tells their probabilities"
        chances: NDArray[np.float32] = probs.numpy()
        return chances

    def _core_of(self, named: int | None) -> torch.Tensor:
        """Core state [1, C] before the next decision of a seat."""
        core = self._cores.get(named)
        return self._network.initial_core(1) if core is None else core

    @with_own_defaults
    @torch.inference_mode()
    def _step(
        self, obs: Observation, mask: Observation | None, seat: int | None, core: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Policy parameters [1, P] and core state [1, C] after an observation."""
        fields = {name: torch.from_numpy(field) for name, field in batch_of_one(obs, self.spec, seat=seat).items()}
        legal = mask_of_one(mask, obs, self.spec, seat=seat)
        output = self._network.step(fields, core=core, action_mask=None if legal is None else torch.from_numpy(legal))
        if not torch.isfinite(output.logits).all():
            raise ObservationMismatch(
                f"{self.name} answers what is no number: the observation is too large for it, or its weights have grown"
                " beyond bounds."
            )
        return output.logits, output.core


class LoadedMixture:
    """Several snapshots, of which one is drawn for each game.

    Args:
      name: what it is called in tables.
      members: (weight, policy), weights positive; they are scaled to sum to 1.
      seed: of the draws, until `reset` is given another.
    Raises:
      ValueError: no members, or a weight that is not positive.
    """

    def __init__(self, name: str, members: Sequence[tuple[float, LoadedPolicy]], *, seed: int = 0) -> None:
        if not members or min(weight for weight, _ in members) <= 0:
            raise ValueError(f"a mixture needs members of positive weight, got {[weight for weight, _ in members]}")
        total = sum(weight for weight, _ in members)
        self.name = name
        self.members = [(weight / total, policy) for weight, policy in members]
        self.spec = members[0][1].spec
        self._rng = np.random.default_rng(seed)
        self._drawn = self._draw()

    def reset(self, seed: int | None = None) -> None:
        """Begin a game: draw who plays it. seed: restarts the stream of draws; None lets it run on."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._drawn = self._draw()
        self._drawn.reset(int(self._rng.integers(2**31)))

    @property
    def drawn(self) -> LoadedPolicy:
        """The member that plays the present game."""
        return self._drawn

    def act(self, obs: Observation, mask: Observation | None = None, *, seat: str | int | None = None) -> Any:
        return self._drawn.act(obs, mask, seat=seat)

    def probs(
        self, obs: Observation, mask: Observation | None = None, *, seat: str | int | None = None
    ) -> NDArray[np.float32]:
        """Those of the drawn member; see `LoadedPolicy.probs`."""
        return self._drawn.probs(obs, mask, seat=seat)

    def as_seat_policy(self, *, greedy: bool | None = None, search: int = 0) -> MixtureSeatPolicy:
        """A batched copy for matches, which draws a member for each game and team; arguments as of a single policy."""
        return MixtureSeatPolicy(
            [(weight, policy.as_seat_policy(greedy=greedy, search=search)) for weight, policy in self.members]
        )

    def _draw(self) -> LoadedPolicy:
        index = int(self._rng.choice(len(self.members), p=[weight for weight, _ in self.members]))
        return self.members[index][1]


class MixtureSeatPolicy:
    """A mixture behind the door of `Policy`. The seats of a team are played by one member, as what they agreed on.

    The first number of a slot's core state is the number of its member plus one: the zeros at the start of an episode
    mean "not drawn yet". The rest is the member's own core state.
    """

    version = 0

    def __init__(self, members: Sequence[tuple[float, Policy]]) -> None:
        """members: (weight, policy), the weights sum to 1."""
        self._policies = [policy for _, policy in members]
        self._sizes = [int(getattr(policy, "core_size", 0)) for policy in self._policies]
        self._shares = np.cumsum([weight for weight, _ in members])
        self._env: weakref.ref[BatchedEnv] | None = None  # in which the teams below play
        self._teams: dict[tuple[int, int], tuple[int, set[int]]] = {}  # (game, team) -> member, and seats that have it

    @property
    def core_size(self) -> int:
        """C."""
        return 1 + max(self._sizes)

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Draw members for the slots whose episode begins, then ask every member that is present once."""
        core = inputs.core.copy()
        fresh = np.flatnonzero(core[:, 0] == 0)
        core[fresh, 0] = 1 + self._draw(inputs, fresh, rng)
        holders = core[:, 0].astype(np.int64) - 1
        actions: NDArray[np.generic] | None = None
        log_probs = np.zeros(len(inputs.slots), np.float32)
        for index in np.unique(holders).tolist():
            mine, size = np.flatnonzero(holders == index), self._sizes[index]
            part = self._policies[index].act(
                ActInputs(inputs.env, inputs.turn, inputs.slots[mine], core[mine, 1 : 1 + size]), rng
            )
            if actions is None:
                actions = np.zeros((len(inputs.slots), *part.actions.shape[1:]), part.actions.dtype)
            actions[mine], log_probs[mine] = part.actions, part.log_probs
            core[mine, 1 : 1 + size] = part.core
        assert actions is not None, "inputs without slots"
        return ActOutputs(actions=actions, log_probs=log_probs, core=core)

    def _draw(self, inputs: ActInputs, fresh: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        """Members for the slots whose episode begins, int64 [fresh].

        In turns partners begin one after another: who begins takes the member of its team, or a new one where it has
        had that one before, in the last episode.
        """
        found = np.searchsorted(self._shares, rng.random(len(fresh)) * self._shares[-1], side="right")
        drawn: NDArray[np.int64] = np.minimum(found, len(self._policies) - 1).astype(np.int64)
        teams, turn = inputs.env.spec.teams, inputs.turn
        if len(set(teams)) == len(teams):
            return drawn
        if self._env is None or self._env() is not inputs.env:
            self._env, self._teams = weakref.ref(inputs.env), {}
        for place, slot in enumerate(inputs.slots[fresh].tolist()):
            seat = int(turn.seat[slot])
            key, new = (int(turn.env_index[slot]), teams[seat]), (int(drawn[place]), set[int]())
            member, seats = self._teams.get(key, new)
            if seat in seats:
                member, seats = new
            self._teams[key] = (member, seats | {seat})
            drawn[place] = member
        return drawn

    def evaluate(self, inputs: ActInputs) -> Evaluation:
        """Of each slot its member's; before a member is drawn, the mean of all members, by weight."""
        shares = np.diff(self._shares, prepend=0.0) / self._shares[-1]
        drawn = inputs.core[:, 0].astype(np.int64) - 1
        values = np.zeros(len(inputs.slots), np.float32)
        probs: NDArray[np.float32] | None = None
        for index, (policy, size) in enumerate(zip(self._policies, self._sizes, strict=True)):
            weights = np.where(drawn < 0, shares[index], drawn == index).astype(np.float32)
            mine = np.flatnonzero(weights)
            if not mine.size:
                continue
            if not isinstance(policy, Evaluating):
                values[mine] = np.nan
                continue
            part = policy.evaluate(
                ActInputs(inputs.env, inputs.turn, inputs.slots[mine], inputs.core[mine, 1 : 1 + size])
            )
            values[mine] += weights[mine] * part.values
            if part.probs is not None:
                probs = np.zeros((len(inputs.slots), part.probs.shape[1]), np.float32) if probs is None else probs
                probs[mine] += weights[mine, None] * part.probs
        return Evaluation(values, probs)
