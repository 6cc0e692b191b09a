"""A policy that was trained here as OpenSpiel's own `Bot` and `Policy`, for its evaluations, searches and exact values.

policy = league.load_policy("runs/kuhn")          # trained on openspiel:kuhn_poker
exploitability.nash_conv(pyspiel.load_game("kuhn_poker"), OpenSpielPolicy(policy))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray
from open_spiel.python import policy as openspiel_policy

from league.envs.adapters.openspiel_parts.openspiel_game import TIME, Clock, TensorReader, fields_of, load_game
from league.errors import LeagueError
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy

PREFIX = "openspiel:"


class _Seen:
    """States of OpenSpiel as the policy learnt to see them. Raises LeagueError: it learnt another package's game."""

    def __init__(self, policy: LoadedPolicy | LoadedMixture) -> None:
        spec = policy.spec
        if not spec.env_id.startswith(PREFIX):
            raise LeagueError(
                f"{policy.name} was trained on {spec.env_id}, and OpenSpiel's states are not what that shows: "
                f"train on {PREFIX}GAME."
            )
        self._spec = spec
        self.game = load_game(spec.env_id.removeprefix(PREFIX), {})
        self._observer = TensorReader(self.game)
        self._clock = Clock(self.game) if TIME in spec.observations else None

    def of(self, state: Any, seat: int) -> tuple[Mapping[str, NDArray[np.generic]], NDArray[np.bool_]]:
        """The fields that a seat sees in a state, name -> [...], and the legal actions, bool [A]."""
        if str(state.get_game()) != str(self.game):
            raise LeagueError(f"the policy plays {self.game}, and this is a state of {state.get_game()}.")
        self._observer.read(state, seat)
        times = [] if self._clock is None else [self._clock.time_of(state)]
        fields = fields_of(self._spec, self._observer.tensor[None], seat=np.array([seat]), times=times)
        legal = np.array(state.legal_actions_mask(seat), np.bool_)
        return {name: field[0] for name, field in fields.items()}, legal


class OpenSpielBot(pyspiel.Bot):  # type: ignore[misc]
    """Plays one seat; begins a game with `restart`.

    Args:
      policy: of `league.load_policy`; each bot needs one of its own where it has memory.
      seat: that it plays.
    """

    def __init__(self, policy: LoadedPolicy | LoadedMixture, seat: int) -> None:
        super().__init__()
        self._policy, self._seat = policy, seat
        self._seen = _Seen(policy)

    def restart(self) -> None:
        """Begin a game."""
        self._policy.reset()

    def restart_at(self, state: Any) -> None:
        """Begin a game in a state.

        Raises:
          LeagueError: somebody has moved already, and the policy carries something from one decision to the next.
        """
        carries = isinstance(self._policy, LoadedMixture) or self._policy.network.core_size
        if carries and any(move.player >= 0 for move in state.full_history()):
            raise LeagueError(f"{self._policy.name} has not seen how this game began: restart it at the first state.")
        self._policy.reset()

    def step(self, state: Any) -> int:
        """The action in a state in which its seat is to move."""
        fields, legal = self._seen.of(state, self._seat)
        return int(self._policy.act(fields, legal, seat=self._seat))

    def provides_policy(self) -> bool:
        """It tells the probabilities too."""
        return True

    def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
        """The probabilities of the legal actions, and the action."""
        fields, legal = self._seen.of(state, self._seat)
        probs = self._policy.probs(fields, legal, seat=self._seat)
        pairs = [(action, float(probs[action])) for action in np.flatnonzero(legal).tolist()]
        return pairs, self.step(state)


class OpenSpielPolicy(openspiel_policy.Policy):  # type: ignore[misc]
    """The probabilities of a policy without memory, in any state.

    Raises:
      LeagueError: it has memory, or is a mixture: what it does depends on more than the state.
    """

    def __init__(self, policy: LoadedPolicy) -> None:
        if not isinstance(policy, LoadedPolicy) or policy.network.core_size:
            raise LeagueError(f"{policy.name} carries something from one decision to the next: use OpenSpielBot.")
        self._policy, self._seen = policy, _Seen(policy)
        super().__init__(self._seen.game, list(range(self._seen.game.num_players())))

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Action -> probability of every legal action. player_id: by default who moves."""
        seat = state.current_player() if player_id is None else player_id
        fields, legal = self._seen.of(state, seat)
        probs = self._policy.probs(fields, legal, seat=seat)
        return {action: float(probs[action]) for action in np.flatnonzero(legal).tolist()}
