"""The side of a peer: its order, the game as a PettingZoo or Gymnasium env, and the file of its trained network.

Peers run in venvs of their own, where of League only the games are imported. A network is a chain of dense layers:
the peer's own library trains it, and a numpy file holds it.

Shape letters: K rows, D numbers of an observation, A actions.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.as_pettingzoo import as_pettingzoo
from league.envs.protocol import EnvConfig

GYMNASIUM = "gymnasium:"
SQUASHES: Mapping[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0.0),
}

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Order:
    """A training that is asked of a peer.

    Fields:
      env_id, kwargs, original: as of `benchmarks.peers.games.Game`.
      hidden: widths of the network. core_seconds: of this whole process. seed: of everything that is drawn.
      out: the file of the trained network; figures of the training lie beside it, as JSON.
    """

    env_id: str
    kwargs: dict[str, object]
    original: str
    hidden: tuple[int, ...]
    core_seconds: float
    seed: int
    out: str

    @property
    def is_lone(self) -> bool:
        """True for a game of one seat from Gymnasium."""
        return self.original.startswith(GYMNASIUM)

    @property
    def share(self) -> float:
        """The part of the budget that this process has used, its start included."""
        return time.process_time() / self.core_seconds

    def make(self) -> Any:
        """A new PettingZoo env, AEC or parallel; a Gymnasium env for a game of one seat."""
        if self.is_lone:
            return gymnasium.make(self.original.removeprefix(GYMNASIUM))
        if not self.original:
            return as_pettingzoo(EnvConfig(self.env_id, self.kwargs))
        module, _, function = self.original.partition(":")
        return getattr(importlib.import_module(module), function)()

    def finish(self, layers: Sequence[Layer], *, squash: str, figures: Mapping[str, float]) -> None:
        """Leave the network and the figures."""
        save_layers(Path(self.out), layers, squash=squash)
        spent = {"core_seconds_in_process": time.process_time(), **figures}
        Path(self.out).with_suffix(".json").write_text(json.dumps(spent))


def order_given() -> Order:
    """The order in the file that the command line names."""
    fields = json.loads(Path(sys.argv[1]).read_text())
    return Order(**{**fields, "hidden": tuple(fields["hidden"])})


def save_layers(path: Path, layers: Sequence[Layer], *, squash: str) -> None:
    """Write dense layers, (weight [out, in], bias [out]) each, with the name of what lies between them."""
    arrays: dict[str, Any] = {"squash": np.array(squash)}
    for place, (weight, bias) in enumerate(layers):
        arrays |= {f"w{place}": weight, f"b{place}": bias}
    np.savez(path, **arrays)


def dense_layers(modules: Sequence[Any]) -> list[Layer]:
    """Weights and biases of the torch layers among these that have some."""
    return [
        (module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy())
        for module in modules
        if hasattr(module, "weight")
    ]


class DenseNetwork:
    """A chain of dense layers in numpy."""

    def __init__(self, layers: Sequence[Layer], squash: str) -> None:
        self._layers = [(weight.astype(np.float32).T.copy(), bias.astype(np.float32)) for weight, bias in layers]
        self._squash = SQUASHES[squash]

    @classmethod
    def load(cls, path: Path) -> DenseNetwork:
        """That of a file of `save_layers`."""
        with np.load(path) as arrays:
            count = sum(name.startswith("w") for name in arrays.files)
            return cls([(arrays[f"w{place}"], arrays[f"b{place}"]) for place in range(count)], str(arrays["squash"]))

    def probs(self, obs: NDArray[np.float32], legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Probabilities [K, A] over the legal actions, bool [K, A], of observations [K, D]."""
        hidden = obs
        for weight, bias in self._layers[:-1]:
            hidden = self._squash(hidden @ weight + bias)
        weight, bias = self._layers[-1]
        logits = np.where(legal, (hidden @ weight + bias).astype(np.float64), -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return probs


def drawn(probs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One action [K] of each row of probabilities [K, A]; never one of probability 0."""
    cumulated = probs.cumsum(axis=1)
    points = rng.random((len(probs), 1)) * cumulated[:, -1:]
    chosen: NDArray[np.int64] = (cumulated <= points).sum(axis=1).clip(max=probs.shape[1] - 1)
    return chosen


def seen_by(env: Any, seat: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Observation [D] and mask [A] of a seat of an AEC env."""
    return parted(env.observe(seat), env.action_space(seat).n)


def parted(seen: Any, num_actions: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Observation [D] and mask [A] of what an env shows."""
    if not isinstance(seen, dict):
        return flat(seen), np.ones(num_actions, np.bool_)
    return flat(seen["observation"]), np.asarray(seen["action_mask"], np.bool_)


def flat(obs: Any) -> NDArray[np.float32]:
    """The numbers [D] of an array, or of several by name."""
    parts = list(obs.values()) if isinstance(obs, dict) else [obs]
    return np.concatenate([np.asarray(part, np.float32).ravel() for part in parts])


Opponent = Callable[[NDArray[np.float32], NDArray[np.bool_]], int]


class OneSeat(gymnasium.Env):  # type: ignore[misc]
    """A game of two seats as one seat sees it: the other one is played by `opponent`, a seat is drawn for each game.

    This is the usual way to self-play with a library of single seats: the opponent is a copy of the newest network.
    """

    def __init__(self, order: Order, *, seed: int) -> None:
        self._env = order.make()
        self._is_aec = hasattr(self._env, "agent_selection") or hasattr(self._env, "agent_iter")
        self._rng = np.random.default_rng([order.seed, seed])
        seats = self._env.possible_agents
        self.num_actions = int(self._env.action_space(seats[0]).n)
        shown = parted(self._env.observation_space(seats[0]).sample(), self.num_actions)[0]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shown.shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(self.num_actions)
        self.opponent: Opponent = lambda obs, legal: int(self._rng.choice(np.flatnonzero(legal)))
        self._mask = np.ones(self.num_actions, np.bool_)
        self._seen: Any = None

    def action_masks(self) -> NDArray[np.bool_]:
        """bool [A], the legal actions of the seat; the name that sb3-contrib asks for."""
        return self._mask

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin games until one is not over before this seat's first turn."""
        super().reset(seed=seed)
        while True:
            self._seen = self._env.reset(seed=int(self._rng.integers(2**31)))
            seats = self._env.possible_agents
            self._seat = seats[int(self._rng.integers(len(seats)))]
            _, over = self._until_turn() if self._is_aec else (0.0, False)
            if not over:
                return self._look(), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move, let the others move, and return what the seat earned until its next turn or the end."""
        earned, over = self._move(int(action)) if self._is_aec else self._move_together(int(action))
        return self._look(), earned, over, False, {}

    def _move(self, action: int) -> tuple[float, bool]:
        self._env.step(action)
        earned = float(self._env.rewards[self._seat])
        more, over = self._until_turn()
        return earned + more, over

    def _until_turn(self) -> tuple[float, bool]:
        """Reward of this seat while the others move, and whether the game is over."""
        env, earned = self._env, 0.0
        while not self._is_over() and env.agent_selection != self._seat:
            env.step(self.opponent(*seen_by(env, env.agent_selection)))
            earned += float(env.rewards[self._seat])
        return earned, self._is_over()

    def _is_over(self) -> bool:
        return any(self._env.terminations.values()) or any(self._env.truncations.values())

    def _move_together(self, action: int) -> tuple[float, bool]:
        actions = {}
        for seat in self._env.agents:
            obs, legal = parted(self._seen[0][seat], self.num_actions)
            if seat == self._seat:
                actions[seat] = action
            elif legal.any():
                actions[seat] = self.opponent(obs, legal)
        seen, rewards, terminations, truncations, _ = self._env.step(actions)
        self._seen = (seen,)
        return float(rewards[self._seat]), any(terminations.values()) or any(truncations.values())

    def _look(self) -> NDArray[np.float32]:
        seen = self._env.observe(self._seat) if self._is_aec else self._seen[0][self._seat]
        obs, mask = parted(seen, self.num_actions)
        self._mask = mask if mask.any() else np.ones(self.num_actions, np.bool_)
        return obs
