"""OpenSpiel's search in C++ as a policy: the rungs of the ladder. It follows each game by the moves played.

The rule is that of the bot `mcts:N`: upper confidence bounds with random rollouts, c = 2, and proven results.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import numpy as np

from league.agents.acting.policy import ActInputs, ActOutputs

EXPLORATION = 2.0
MEMORY_MIB = 500


class SearchPolicy:
    """Searches before each move, one game after the other."""

    version = -1
    last_failure = ""

    def __init__(self, spiel: str, simulations: int, *, seed: int) -> None:
        """spiel: the game as OpenSpiel calls it."""
        pyspiel = importlib.import_module("pyspiel")
        self._game = pyspiel.load_game(spiel)
        evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
        self._bot = pyspiel.MCTSBot(self._game, evaluator, EXPLORATION, simulations, MEMORY_MIB, True, seed, False)

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """See `Policy.act`."""
        assert inputs.history is not None, "a match keeps the moves for those that may fail"
        moves = [self._move(inputs.history[game]) for game in inputs.turn.env_index[inputs.slots].tolist()]
        return ActOutputs(np.array(moves, np.int64), np.zeros(len(moves), np.float32), inputs.core)

    def failed_games(self) -> list[int]:
        """None; see `Fallible`, whose policies are shown the moves."""
        return []

    def _move(self, history: Sequence[int]) -> int:
        state = self._game.new_initial_state()
        for action in history:
            state.apply_action(action)
        return int(self._bot.step(state))
