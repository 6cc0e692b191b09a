"""AlphaZero of OpenSpiel (Python, jax) on Connect Four: its own games, bots, model and buffer, in one process."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.strength.positions import Position, stored_positions

GAME, WIDTH, DEPTH, SIMULATIONS = "connect_four", 128, 2, 50
LEARNING_RATE, WEIGHT_DECAY, BATCH, BUFFER, REUSE = 1e-3, 1e-4, 128, 2**13, 4
UCT_C, NOISE, ALPHA, TEMPERATURE, SAMPLED_PLIES = 1.41, 0.25, 1.0, 1.0, 10
"""Source: OpenSpiel 2.0.2, python/examples/alpha_zero.py, but for the network and the simulations, which are ours."""


@dataclass(frozen=True)
class Found:
    """Fields: plies_per_core_s: with learning. updates: of the model. kept: critical positions, in [0, 1]."""

    plies_per_core_s: float
    updates: int
    kept: float


class _Quiet:
    """A logger that drops everything, as its game loop wants one."""

    def print(self, *text: object) -> None:
        del text

    opt_print = print


def is_installed() -> bool:
    """True where it and jax can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("pyspiel", "jax"))


def alpha_zero(*, core_s: float) -> Found:
    """Train for so many core-seconds of this process after the first game, which compiles, and judge the network."""
    package = "open_spiel.python.algorithms"
    loop = importlib.import_module(f"{package}.alpha_zero.alpha_zero")
    game = importlib.import_module("pyspiel").load_game(GAME)
    with tempfile.TemporaryDirectory() as folder:
        model = _model(game, Path(folder))
        evaluator = importlib.import_module(f"{package}.alpha_zero.evaluator").AlphaZeroEvaluator(game, model)
        bots = [_bot(game, evaluator) for _ in range(2)]
        buffer = importlib.import_module(f"{package}.alpha_zero.replay_buffer").Buffer(BUFFER)
        loop._play_game(_Quiet(), 0, game, bots, TEMPERATURE, SAMPLED_PLIES)
        begun, plies, updates, fresh = time.process_time(), 0, 0, 0
        while time.process_time() - begun < core_s:
            played = loop._play_game(_Quiet(), 0, game, bots, TEMPERATURE, SAMPLED_PLIES)
            plies, fresh = plies + len(played.states), fresh + len(played.states)
            _store(buffer, played)
            if fresh >= BUFFER // REUSE:
                updates, fresh = updates + _learn(model, buffer), 0
                evaluator.clear_cache()
        spent = time.process_time() - begun
        return Found(plies / spent, updates, _kept(game, evaluator.prior, stored_positions()))


def _model(game: Any, folder: Path) -> Any:
    models = importlib.import_module("open_spiel.python.algorithms.alpha_zero.utils").api_selector("nnx")
    return models.Model.build_model(
        "mlp",
        game.observation_tensor_shape(),
        game.num_distinct_actions(),
        WIDTH,
        DEPTH,
        WEIGHT_DECAY,
        LEARNING_RATE,
        str(folder),
        decouple_weight_decay=False,
    )


def _bot(game: Any, evaluator: Any) -> Any:
    mcts = importlib.import_module("open_spiel.python.algorithms.mcts")
    return mcts.MCTSBot(
        game,
        UCT_C,
        SIMULATIONS,
        evaluator,
        solve=False,
        dirichlet_noise=(NOISE, ALPHA),
        child_selection_fn=mcts.SearchNode.puct_value,
        dont_return_chance_node=True,
    )


def _store(buffer: Any, played: Any) -> None:
    """As its learner does: the value is the outcome for the first player."""
    jnp = importlib.import_module("jax.numpy")
    rows = importlib.import_module("open_spiel.python.algorithms.alpha_zero.utils").TrainInput
    for state in played.states:
        buffer.append(
            rows(
                observation=jnp.asarray(state.observation, dtype=jnp.float32),
                legals_mask=jnp.asarray(state.legals_mask, dtype=bool),
                policy=jnp.asarray(state.policy, dtype=jnp.float32),
                value=jnp.asarray(played.returns[0], dtype=jnp.float32),
            )
        )


def _learn(model: Any, buffer: Any) -> int:
    """As its learner does; returns the updates."""
    updates = len(buffer) // BATCH
    for _ in range(updates):
        model.update(buffer.sample(BATCH))
    return updates


def _kept(game: Any, prior: Callable[[Any], Sequence[tuple[int, float]]], positions: Sequence[Position]) -> float:
    """Share of the positions in which the likeliest move keeps the result."""
    kept = []
    for position in positions:
        state = game.new_initial_state()
        for column in position.moves:
            state.apply_action(column)
        column = max(prior(state), key=lambda pair: pair[1])[0]
        kept.append(bool(position.keeping()[column]))
    return float(np.mean(kept))
