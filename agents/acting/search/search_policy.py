"""A policy that searches before it moves: a network, copies of the games, and trees kept between moves.

Shape letters: K slots to act for, A actions, N games of an env.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs, Evaluation
from league.agents.acting.row_split import fill_blocks
from league.agents.acting.search.config import SearchConfig, game_problems, walks_per_wave
from league.agents.acting.search.gumbel import Gumbel, improved_policy
from league.agents.acting.search.positions import Roots
from league.agents.acting.search.puct import Puct, add_noise, visit_policy
from league.agents.acting.search.resignation import Resignation, ResignationCounts
from league.agents.acting.search.search import Returns, Search
from league.agents.acting.search.trees import Trees
from league.agents.nets.mlp import plain_layers
from league.agents.nets.network import Network
from league.agents.torch_runtime import with_own_defaults
from league.agents.weights import Weights
from league.envs.bots import Copyable
from league.envs.protocol import EnvError

MAX_ENVS = 4
"""Envs whose trees a policy keeps: the two halves of a split arena, and a few matches."""

NONE = -1


class NetworkJudge:
    """A network without memory as the judge of a search."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._plain = PlainNetwork.of(network)

    def judge(
        self, obs: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_], seat: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `Judge`; of a few rows in numpy where the network is plain."""
        if self._plain is not None and len(seat) <= MAX_ROWS:
            return self._plain.judge(obs)
        return self._forward(obs, legal, len(seat))

    @with_own_defaults
    @torch.inference_mode()
    def _forward(
        self, obs: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_], count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """One forward pass over whole blocks of rows."""
        rows = fill_blocks(np.arange(count))
        if len(rows) > count:
            obs = {name: array.take(rows, axis=0) for name, array in obs.items()}
            legal = legal.take(rows, axis=0)
        output = self._network.step(
            {name: torch.from_numpy(array) for name, array in obs.items()},
            core=torch.zeros(len(rows), 0),
            action_mask=torch.from_numpy(legal),
        )
        return output.logits[:count].float().numpy(), output.values[:count].float().numpy()


@dataclass
class _Memory:
    """Trees that are kept, the games [K] that they are of, and in each the node after the move made (or `NONE`)."""

    trees: Trees
    games: NDArray[np.int64]
    after: NDArray[np.int64]


class _Memories:
    """The trees of an env's games: in a match between policies, other games have this one to move in every turn."""

    def __init__(self) -> None:
        self._kept: list[_Memory] = []

    def take(self, games: NDArray[np.int64]) -> _Memory | None:
        """Remove and return those that hold most of these games; None where there are none."""
        shares = [int(np.isin(games, one.games).sum()) for one in self._kept]
        if not any(shares):
            return None
        return self._kept.pop(shares.index(max(shares)))

    def put(self, memory: _Memory, *, most: int) -> None:
        """Keep these, and the newest so many in all."""
        self._kept = [*self._kept, memory][-most:]


class SearchPolicy:
    """Searches from each position with the network of another policy.

    Args:
      policy: its network judges, and decides where a game is given up; has no core state.
      config: of the search.
      explores: mix noise into roots and draw moves, to learn from; False to play as well as it can.
      clock: seconds, for the time limit.

    Attributes:
      resignations: counts so far. num_simulations: walks so far.
    """

    def __init__(
        self,
        policy: NetworkPolicy,
        config: SearchConfig,
        *,
        explores: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if policy.core_size:
            raise EnvError("search needs a network without memory; set network.core: none")
        self.policy = policy
        self.resignations, self.num_simulations = ResignationCounts(), 0
        self._config, self._explores, self._clock = config, explores, clock
        self._judge = NetworkJudge(policy.network)
        self._memories: dict[int, _Memories] = {}
        self._resigned: dict[int, Resignation] = {}

    @property
    def version(self) -> int:
        """Of the weights adopted last."""
        return self.policy.version

    @property
    def core_size(self) -> int:
        """0."""
        return 0

    def adopt(self, weights: Weights) -> None:
        """See `NetworkPolicy.adopt`. Trees that are kept hold what the weights before them judged."""
        self.policy.adopt(weights)

    def evaluate(self, inputs: ActInputs) -> Evaluation:
        """See `Evaluating`: what it finds without noise, with the policy that it would learn from."""
        search, chooser = self._searched(inputs, explores=False, rng=np.random.default_rng(0), kept=None)
        return Evaluation(search.root_values(), self._policy_of(search.trees, chooser))

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Search, and move. Raises EnvError: the game cannot be searched, or see `Roots.reach`."""
        given_up = self._given_up(inputs, rng)
        if given_up is None or not given_up.any():
            return self._search(inputs, rng)
        found = np.flatnonzero(~given_up)
        outputs = self.policy.act(inputs, rng)  # of every slot: what is searched is written over
        policy = np.zeros((len(given_up), inputs.env.spec.actions.num_actions), np.float32)
        value = self.policy.evaluate(inputs).values
        actions, log_probs = outputs.actions.copy(), outputs.log_probs.copy()
        if found.size:
            searched = self._search(replace(inputs, slots=inputs.slots[found], core=inputs.core[found]), rng)
            actions[found], log_probs[found] = searched.actions, searched.log_probs
            policy[found], value[found] = searched.recorded["search_policy"], searched.recorded["search_value"]
        return ActOutputs(actions, log_probs, inputs.core, recorded={"search_policy": policy, "search_value": value})

    def _search(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """Search the games of all slots, and move."""
        turn, count = inputs.turn, len(inputs.slots)
        kept = self._memories.setdefault(id(inputs.env), _Memories())
        while len(self._memories) > MAX_ENVS:
            self._memories.pop(next(iter(self._memories)))
        before = kept.take(turn.env_index[inputs.slots])
        search, chooser = self._searched(inputs, explores=self._explores, rng=rng, kept=before)
        trees = search.trees
        policy, values = self._policy_of(trees, chooser), search.root_values()
        actions = chooser.best(trees) if isinstance(chooser, Gumbel) else self._chosen(policy, trees, inputs, rng)
        rows, games = np.arange(count), turn.env_index[inputs.slots]
        if self._config.reuse and self._config.method == "puct":
            kept.put(_Memory(trees, games, trees.child[trees.roots, actions]), most=inputs.env.spec.num_seats)
        if id(inputs.env) in self._resigned:
            scaled = search.returns.scaled(values)
            self._resigned[id(inputs.env)].note(games, turn.seat[inputs.slots], scaled)
        with np.errstate(divide="ignore"):
            log_probs = np.log(policy[rows, actions]) if self._explores else np.zeros(count, np.float32)
        recorded = {"search_policy": policy, "search_value": values}
        return ActOutputs(actions=actions, log_probs=log_probs, core=inputs.core, recorded=recorded)

    def _searched(
        self, inputs: ActInputs, *, explores: bool, rng: np.random.Generator, kept: _Memory | None
    ) -> tuple[Search, Puct | Gumbel]:
        """A search that has run. kept: trees that it may continue."""
        _require_searchable(inputs)
        config, spec, count = self._config, inputs.env.spec, len(inputs.slots)
        until = np.inf if config.time_limit_s is None else self._clock() + config.time_limit_s
        roots, leaves = Roots(inputs.env, inputs.turn, inputs.slots), walks_per_wave(config, count)
        num_nodes, num_actions = config.simulations + leaves + 1, spec.actions.num_actions
        if kept is None:
            win = Returns.of(spec).win
            trees = Trees(count, num_nodes, num_actions=num_actions, num_seats=spec.num_seats, win=win)
        else:
            nodes = _nodes_of(kept, inputs.turn.env_index[inputs.slots], roots.now.keys())
            trees = kept.trees.moved_to(nodes, num_nodes=num_nodes)
        search = Search(roots, self._judge, trees, leaves=leaves)
        search.open_roots()
        chooser: Puct | Gumbel = Puct()
        if config.method == "gumbel":
            noise = rng.gumbel(size=(count, num_actions)) if explores else np.zeros((count, num_actions))
            chooser = Gumbel(noise.astype(np.float32), num_simulations=config.simulations)
        elif explores and config.noise:
            add_noise(trees, np.arange(count), config.noise, rng)
        search.run(chooser, num_simulations=config.simulations, until=until, clock=self._clock)
        self.num_simulations += search.num_walks
        return search, chooser

    def _policy_of(self, trees: Trees, chooser: Puct | Gumbel) -> NDArray[np.float32]:
        return improved_policy(trees) if isinstance(chooser, Gumbel) else visit_policy(trees)

    def _chosen(
        self, policy: NDArray[np.float32], trees: Trees, inputs: ActInputs, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """A move [K] by visits: drawn early in a game that explores, else the most visited one."""
        best: NDArray[np.int64] = (policy + 1e-4 * trees.moves[trees.roots, 2]).argmax(axis=1)  # ties by the prior
        if not self._explores:
            return best
        summed = policy.cumsum(axis=1)
        drawn: NDArray[np.int64] = (summed < (1.0 - rng.random((len(policy), 1))) * summed[:, -1:]).sum(axis=1)
        if inputs.plies is None:
            return drawn
        early = inputs.plies[inputs.turn.env_index[inputs.slots]] < self._config.sampled_plies
        return np.where(early, drawn, best)

    def _given_up(self, inputs: ActInputs, rng: np.random.Generator) -> NDArray[np.bool_] | None:
        """bool [K], True for slots of games in which a seat has given up; None where nobody ever does."""
        config, env, turn = self._config, inputs.env, inputs.turn
        if config.resign_below is None or not self._explores:
            return None
        state = self._resigned.get(id(env))
        if state is None:
            state = Resignation(env.num_envs, below=config.resign_below, played_on=config.played_on, rng=rng)
            self._resigned[id(env)] = state
        low = env.spec.return_range[0] if env.spec.return_range else -1.0
        state.end(turn, loss=low, counts=self.resignations)
        return state.is_over(turn.env_index[inputs.slots])


def _require_searchable(inputs: ActInputs) -> None:
    """Raises EnvError: the first reason for which these games cannot be searched."""
    acting = np.bincount(inputs.turn.env_index, minlength=inputs.env.num_envs)
    alternate = bool((acting[inputs.turn.env_index[inputs.slots]] == 1).all())
    problems = game_problems(inputs.env.spec, can_copy=isinstance(inputs.env, Copyable), turns_alternate=alternate)
    if problems:
        raise EnvError(problems[0])


def _nodes_of(kept: _Memory, games: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64 [K], the node of each game's present position in the trees that were kept, `NONE` where it has none.

    It is the node after the move that was made, or one after an answer to it. A position is known by its key, so that a
    game that began again, or took a move that was never tried, finds nothing.
    """
    row_of = np.full(max(int(kept.games.max()), int(games.max())) + 1, NONE)
    row_of[kept.games] = np.arange(len(kept.games))
    row = row_of[games]
    trees = kept.trees
    after = np.where(row >= 0, kept.after[row], NONE)
    found = np.where(_is_at(trees, after, keys), after, NONE)
    answers = trees.child[np.maximum(after, 0)]
    matches = _is_at(trees, answers, keys[:, None]) & (after >= 0)[:, None]
    answer = answers[np.arange(len(games)), matches.argmax(axis=1)]
    return np.where(found >= 0, found, np.where(matches.any(axis=1), answer, NONE))


def _is_at(trees: Trees, node: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    is_at: NDArray[np.bool_] = (node >= 0) & trees.is_open[node] & (trees.key[node] == keys)
    return is_at


MAX_ROWS = 64
"""Rows up to which it is the quicker one: 12 rows of an MLP of 128 x 128 take 0.08 ms instead of 0.6."""


@dataclass(frozen=True)
class PlainNetwork:
    """Dense layers with ReLU between them, then a categorical policy and a value.

    Fields:
      fields: names of the observation's fields, in the order of the inputs.
      layers: float32 weights [I, O] and biases [O], views of the network's own: weights that it adopts count at once.
      has_tanh: whether the value's output goes through tanh.
    """

    fields: tuple[str, ...]
    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    has_tanh: bool

    @classmethod
    def of(cls, network: Network) -> PlainNetwork | None:
        """The same network; None where it has any other part, scales, or is not in float32 on the CPU."""
        found = None if network.core_size else plain_layers(network, network.blocks)
        if found is None or found.is_scaled:
            return None
        layers = tuple((one.weight.detach().numpy().T, one.bias.detach().numpy()) for one in found.layers)
        return cls(tuple(field.name for field in found.fields), layers, found.has_tanh)

    def judge(self, obs: Mapping[str, NDArray[np.generic]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [G, A], of illegal actions too, and values [G]."""
        parts = [obs[name].reshape(len(obs[name]), -1).astype(np.float32) for name in self.fields]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        for weight, bias in self.layers[:-1]:
            rows = rows @ weight
            rows += bias
            np.maximum(rows, 0.0, out=rows)
        weight, bias = self.layers[-1]
        rows = rows @ weight + bias
        values = rows[:, -1]
        return rows[:, :-1], np.tanh(values) if self.has_tanh else values
