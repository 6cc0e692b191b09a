"""OpenSpiel's AlphaZero in Python on Connect Four, an actor's self-play with its own MLP, for a comparison on one core.

It needs OpenSpiel with jax, flax, optax, orbax and chex, which League does without: run this file by itself in an
environment that has them, `python -m benchmarks.lineage.openspiel_alpha_zero`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
import time
from typing import Any

from benchmarks.report import Report

SIMULATIONS, UCT_C, NOISE = 50, 1.41, (0.25, 1.0)
WIDTH, DEPTH = 128, 2
WARM_MOVES, MOVES = 2, 20


def add_rows(report: Report) -> None:
    """Positions and simulations of an actor per core-second; not measured where a package is missing."""
    packages = ("pyspiel", "jax", "flax", "optax", "orbax", "chex")
    found = moves_per_core_s() if all(importlib.util.find_spec(name) for name in packages) else None
    name = f"OpenSpiel's AlphaZero in Python, an actor with {SIMULATIONS} simulations, MLP {WIDTH} x {DEPTH}"
    report.add(f"{name}: positions", found, "/core-s")
    report.add(f"{name}: simulations", None if found is None else found * SIMULATIONS, "/core-s")


def moves_per_core_s() -> float:
    """Of self-play from the empty board."""
    game = importlib.import_module("pyspiel").load_game("connect_four")
    bot = _bot(game)
    state, spent, begun = game.new_initial_state(), 0.0, 0.0
    for number in range(WARM_MOVES + MOVES):
        if state.is_terminal():
            state = game.new_initial_state()
        begun = time.process_time()
        action = max(bot.mcts_search(state).children, key=lambda child: child.explore_count).action
        spent += time.process_time() - begun if number >= WARM_MOVES else 0.0  # the first moves compile
        state.apply_action(action)
    return MOVES / spent


def _bot(game: Any) -> Any:
    place = "open_spiel.python.algorithms"
    mcts = importlib.import_module(f"{place}.mcts")
    utils, judges = (importlib.import_module(f"{place}.alpha_zero.{name}") for name in ("utils", "evaluator"))
    shape, actions = game.observation_tensor_shape(), game.num_distinct_actions()
    build = utils.api_selector("nnx").Model.build_model
    model = build("mlp", shape, actions, WIDTH, DEPTH, 1e-4, 1e-3, tempfile.mkdtemp(), decouple_weight_decay=True)
    return mcts.MCTSBot(
        game,
        UCT_C,
        SIMULATIONS,
        judges.AlphaZeroEvaluator(game, model),
        solve=False,
        dirichlet_noise=NOISE,
        child_selection_fn=mcts.SearchNode.puct_value,
        dont_return_chance_node=True,
    )


if __name__ == "__main__":
    made = Report()
    add_rows(made)
    made.print(sys.stdout, as_json=True)
