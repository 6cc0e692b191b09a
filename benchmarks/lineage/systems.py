"""The cells of the table of the whole lineage: games, algorithms and update modes as sections of a configuration."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from league.config.loading import parse_config
from league.config.run_config import RunConfig

Sections = Mapping[str, Mapping[str, object]]
"""Section of a configuration -> the keys that it has, or has differently."""

REPLICAS = 2
MODES: Mapping[str, Mapping[str, object] | None] = {
    "one learner": None,
    "all_reduce": {"kind": "all_reduce"},
    "local_sgd": {"kind": "local_sgd", "period": 8},
    "gossip": {"kind": "gossip", "topology": "ring"},
    "gossip, asynchronous": {"kind": "gossip", "asynchronous": True},
    "hogwild": {"kind": "hogwild"},
    "parameter_server": {"kind": "parameter_server", "max_staleness": 8, "on_stale": "scale"},
}
"""Name -> the update mode of `REPLICAS` replicas; None for a single learner."""

UNIFORM = {"kind": "replay", "capacity": 8192, "min_rows": 64, "samples_per_insert": 4, "alpha": 0.0, "beta": 0.0}
BY_ERROR = {**UNIFORM, "alpha": 0.6, "beta": 0.4}
EVERY_GAME: Mapping[str, Sections] = {
    "vtrace": {},
    "a2c": {
        "learner": {"algorithm": {"kind": "vtrace", "correction": "none", "lambda_": 1.0}, "unroll_length": 5},
        "actors": {"wait_for_update": True},
    },
    "a3c": {
        "learner": {
            "algorithm": {"kind": "vtrace", "correction": "none", "lambda_": 1.0},
            "optimizer": {"kind": "rmsprop", "eps_inside": True, "eps": 1e-5},
            "unroll_length": 5,
        }
    },
    "ppo": {"learner": {"algorithm": {"kind": "ppo", "epochs": 2}}},
    "appo": {"learner": {"algorithm": {"kind": "appo"}}},
}
"""Algorithm -> what it changes in a game's sections, for games of every kind."""
STEP = {"unroll_length": 8, "learning_rate": 1e-3, "target_every": 100, "target_rate": 1.0, "max_grad_norm": 40}
VALUES: Mapping[str, Sections] = {
    name: {
        "network": {"head": {"kind": "q_values", "dueling": True, "epsilon": 0.02}},
        "learner": {"algorithm": {"kind": "dqn", "target": "double", "n_steps": 3}, "row_source": rows, **STEP},
        "actors": {"acting": {"kind": "epsilon_greedy", "epsilon": 0.4, "alpha": 7}},
    }
    for name, rows in (("dqn", UNIFORM), ("apex", BY_ERROR))
}
"""The same, by values of numbered actions; `apex` samples rows by their errors."""
SOFT = {"target_every": 1, "target_rate": 0.005, "max_grad_norm": 100, "gamma": 0.98}
BOXES: Mapping[str, Sections] = {
    name: {
        "network": {"hidden": [128, 128], "head": {"kind": "deterministic", "critics": critics}},
        "learner": {"algorithm": {"kind": name}, **STEP, **SOFT, "row_source": {**UNIFORM, "samples_per_insert": 16}},
        "actors": {"num_envs": 8, "acting": {"kind": "gaussian", "noise": 0.2}},
    }
    for name, critics in (("ddpg", 1), ("td3", 2))
}
"""The same, for boxes of actions."""
SEARCHED: Mapping[str, Sections] = {
    name: {
        "learner": {
            "algorithm": {"kind": "search_targets"},
            "per_episode": True,
            "unroll_length": 21,
            "row_source": UNIFORM,
            "entropy_cost": 0.0,
            "entropy_cost_end": 0.0,
        },
        "actors": {"acting": {"kind": "search", **options}},
        "league": {"lease_steps": 4},
    }
    for name, options in (
        ("alphazero", {"simulations": 50, "sampled_plies": 10}),
        ("gumbel", {"method": "gumbel", "simulations": 16}),
    )
}
"""The same, by search."""


def evolved(sigma: float, *, learning_rate: float) -> Mapping[str, Sections]:
    """The same, by evolution, with a small network."""
    learner = {"learning_rate": learning_rate, "learning_rate_end": learning_rate, "max_policy_lag": 0}
    acting = {"kind": "perturbed", "sigma": sigma, "greedy": True}
    common: dict[str, Mapping[str, object]] = {
        "network": {"hidden": [16]},
        "actors": {"num_envs": 128, "num_splits": 2, "acting": acting},
    }
    es, cmaes = ({"kind": "es", "evaluations": 128}, {"kind": "cmaes", "episodes": 2, "sigma": 0.5})
    return {
        "es": {**common, "learner": {"algorithm": es, **learner}},
        "cmaes": {**common, "learner": {"algorithm": cmaes, **learner}},
    }


@dataclass(frozen=True)
class Game:
    """A game of the table.

    Fields:
      sections: of its configuration. systems: algorithm -> what it changes there.
      modes: names in `MODES` under which each algorithm is measured, as far as it makes sense there.
    """

    sections: Sections
    systems: Mapping[str, Sections]
    modes: tuple[str, ...] = tuple(MODES)


PACE = {"learning_rate": 1.5e-3, "learning_rate_end": 1e-4, "advantage_floor": 0.0}
GAMES: Mapping[str, Game] = {
    "connect_four": Game(
        {
            "env": {"id": "connect_four"},
            "network": {"hidden": [128, 128], "value_output": "tanh"},
            "learner": {"unroll_length": 16, "batch_rows": 64, **PACE, "entropy_cost": 0.4, "entropy_cost_end": 0.1},
            "actors": {"num_envs": 256},
        },
        {**EVERY_GAME, **VALUES, **SEARCHED, **evolved(0.1, learning_rate=0.1)},
    ),
    "pendulum": Game(
        {
            "env": {"id": "gymnasium:Pendulum-v1"},
            "network": {"hidden": [64, 64], "value_output": "linear", "input_moments": {}, "value": "separate"},
            "learner": {"unroll_length": 16, "batch_rows": 32, **PACE, "gamma": 0.95, "entropy_cost": 0.01},
            "actors": {"num_envs": 32},
        },
        {**EVERY_GAME, **BOXES, **evolved(0.1, learning_rate=0.03)},
    ),
    "breakout": Game(
        {
            "env": {"id": "benchmarks.lineage.breakout:make"},
            "network": {"hidden": [128, 128], "value_output": "linear"},
            "learner": {"unroll_length": 16, "batch_rows": 32, **PACE, "gamma": 0.99, "entropy_cost": 0.02},
            "actors": {"num_envs": 32},
        },
        {name: {**EVERY_GAME, **VALUES}[name] for name in ("vtrace", "a2c", "a3c", "ppo", "apex")},
        modes=("one learner",),
    ),
    "kuhn_poker": Game(
        {
            "env": {"id": "kuhn_poker"},
            "network": {"hidden": [64, 64]},
            "learner": {"unroll_length": 16, "batch_rows": 64, **PACE, "entropy_cost": 0.05, "entropy_cost_end": 0.01},
            "actors": {"num_envs": 256},
        },
        {**{name: EVERY_GAME[name] for name in ("vtrace", "ppo", "appo")}, **VALUES},
        modes=("one learner",),
    ),
}
"""Kuhn poker is there for its exact exploitability; the modes are compared in it by the part `modes_kuhn`."""

ALONE: Mapping[str, str] = {"a3c": "hogwild", "gumbel": "one learner"}
"""Algorithm -> the only mode in which it is measured; gradients without a lock make A3C what it is."""


COMMON: Sections = {
    "learner": {"precision": "float32"},
    "league": {"lease_steps": 32, "players": [{"role": "main_agent"}]},
    "runtime": {"kind": "inprocess"},
    "budget": {"core_seconds": 120},
}
"""Of every cell."""


@dataclass(frozen=True)
class Cell:
    """One training of the table. Fields: game, system, mode: names; seed: of the run."""

    game: str
    system: str
    mode: str
    seed: int

    @property
    def name(self) -> str:
        """Of its file."""
        words = (self.game, self.system, self.mode.replace(", ", "-").replace(" ", "-"), str(self.seed))
        return "--".join(words)

    def config(self) -> RunConfig:
        """The checked configuration.

        Raises:
          ConfigError: the algorithm makes no sense under the mode; the sentences say why.
        """
        game, mode = GAMES[self.game], MODES[self.mode]
        sections = laid_over(COMMON, game.sections, game.systems[self.system])
        plain: dict[str, object] = {**sections, "seed": self.seed}
        if mode is not None:
            sections["learner"]["pipeline"] = {"replicas": REPLICAS, "update_mode": mode}
        return parse_config(json.dumps(plain), source=self.name)


def laid_over(*layers: Sections) -> dict[str, dict[str, object]]:
    """Sections of which a later layer's keys take the place of earlier ones."""
    found: dict[str, dict[str, object]] = {}
    for layer in layers:
        for section, keys in layer.items():
            found.setdefault(section, {}).update(keys)
    return found


def cells(games: Iterable[str], seeds: Iterable[int]) -> Iterator[Cell]:
    """Every cell of these games, those included whose configuration is refused; single learners come first."""
    names = tuple(games)
    for seed, mode, game in itertools.product(seeds, MODES, names):
        for system in GAMES[game].systems:
            modes = (ALONE[system],) if system in ALONE else GAMES[game].modes
            if mode in modes:
                yield Cell(game, system, mode, seed)
