"""An OpenSpiel game stepped one state at a time with OpenSpiel's own lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel


class SlowGame:
    """One state; `rng` is shared with the other games of the batch, in their order."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.game: Any = pyspiel.load_game(name)
        self.rng = rng
        self.begin()

    def begin(self) -> None:
        self.state: Any = self.game.new_initial_state()
        self.num_moves = 0
        self.pass_chance()

    def pass_chance(self) -> None:
        while self.state.is_chance_node():
            self.num_moves += self.game.get_type().dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
            outcomes = self.state.chance_outcomes()
            below = np.cumsum([probability for _, probability in outcomes])
            self.state.apply_action(outcomes[int(np.searchsorted(below, self.rng.random(), side="right"))][0])

    def seats(self) -> list[int]:
        if self.state.is_simultaneous_node():
            return [seat for seat in range(self.game.num_players()) if self.state.legal_actions(seat)]
        return [self.state.current_player()]

    def seen(self, seat: int) -> list[float]:
        recall = self.game.get_type().provides_information_state_tensor
        tensor: list[float] = (self.state.information_state_tensor if recall else self.state.observation_tensor)(seat)
        return tensor

    def time(self, parts: int) -> int:
        """Which of equal parts of the longest game the next move falls into."""
        together = self.game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        longest = self.game.max_game_length() + (0 if together else self.game.max_chance_nodes_in_history())
        ends = np.arange(1, parts + 1) * longest / parts
        return min(int(np.searchsorted(ends, self.num_moves, side="right")), parts - 1)

    def act(self, answers: dict[int, int]) -> list[float] | None:
        """The returns if the game ended; it is then restarted."""
        self.num_moves += 1
        if self.state.is_simultaneous_node():
            self.state.apply_actions([answers.get(seat, 0) for seat in range(self.game.num_players())])
        else:
            (action,) = answers.values()
            self.state.apply_action(action)
        self.pass_chance()
        if not self.state.is_terminal():
            return None
        returns: list[float] = self.state.returns()
        self.begin()
        return returns
