"""One-shot games of any number of seats: all choose at once and a table gives their payoffs.

Built in are a three-seat and a two-against-two rock, paper, scissors; another table is one call (`NormalFormGame`).
Observation "seat", float32 [S]: the seat's number, one-hot, so that one network may play seats differently.

Shape letters: N games, S seats, K = N S slots, A actions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.games.matrix import BEATS, is_win_draw_loss
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn


class NormalFormGame:
    """N games over one payoff table."""

    def __init__(
        self, *, env_id: str, num_envs: int, payoffs: NDArray[np.float32], teams: Sequence[int] | None = None
    ) -> None:
        """Validate the table.

        Args:
          payoffs: float32 [A, ..., A, S]: payoff of each seat after the actions of seat 0, ..., seat S - 1.
          teams: [S] team of each seat; None makes each seat its own team.
        Raises:
          EnvError: the table is not of that form or not finite, or num_envs is below 1.
        """
        num_seats, num_actions = payoffs.ndim - 1, payoffs.shape[0]
        if num_seats < 1 or payoffs.shape != (num_actions,) * num_seats + (num_seats,):
            raise EnvError(f"{env_id}: payoffs are {list(payoffs.shape)}, expected [A] * S + [S] for S seats")
        if not np.isfinite(payoffs).all():
            raise EnvError(f"{env_id}: payoffs must be finite numbers")
        if num_envs < 1:
            raise EnvError(f"{env_id}: num_envs is {num_envs}; it must be at least 1")
        self.num_envs = num_envs
        self._payoffs = payoffs
        sides = tuple(range(num_seats)) if teams is None else tuple(teams)
        self.spec = EnvSpec(
            env_id=env_id,
            num_seats=num_seats,
            observations={"seat": ArraySpec(shape=(num_seats,), dtype="float32")},
            actions=ActionSpec(kind="categorical", num_actions=num_actions),
            teams=sides,
            has_mask=False,
            max_turns=1,
            seat_names=tuple(f"seat_{seat}" for seat in range(num_seats)),
            return_range=(float(payoffs.min()), float(payoffs.max())),
            win_draw_loss=is_win_draw_loss(payoffs, sides),
        )
        self._env_index = np.repeat(np.arange(num_envs, dtype=np.int64), num_seats)
        self._seat = np.tile(np.arange(num_seats, dtype=np.int64), num_envs)
        self._seen = np.tile(np.eye(num_seats, dtype=np.float32), (num_envs, 1))

    @property
    def payoffs(self) -> NDArray[np.float32]:
        """float32 [A, ..., A, S], payoff of each seat."""
        return self._payoffs

    @property
    def rounds(self) -> int:
        """Turns of one episode."""
        return 1

    def reset(self, seed: int) -> Turn:
        """Restart every game. Nothing in these games is random, so the seed changes nothing."""
        return self._turn(np.zeros((self.num_envs, self.spec.num_seats), np.float32), ended=False)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Play every game to its end: all seats choose once.

        Args:
          actions: int [N S], in the order (game, seat).
        Raises:
          EnvError: an action is not in [0, A).
        """
        chosen, num_actions = np.asarray(actions), self.spec.actions.num_actions
        if chosen.shape != self._seat.shape or chosen.dtype.kind not in "iu":
            raise EnvError(
                f"{self.spec.env_id}: actions are {chosen.dtype} {list(chosen.shape)}, expected int64 {self._seat.size}"
            )
        bad = np.flatnonzero((chosen < 0) | (chosen >= num_actions))
        if bad.size:
            raise EnvError(
                f"{self.spec.env_id}: action {int(chosen[bad[0]])} of seat {int(self._seat[bad[0]])} is illegal in game"
                f" {int(self._env_index[bad[0]])}; legal are 0 to {num_actions - 1}"
            )
        by_game = chosen.reshape(self.num_envs, self.spec.num_seats)
        return self._turn(self._payoffs[tuple(by_game.T)], ended=True)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[NormalFormGame, Turn]:
        """As many new games: a game in progress has no state."""
        copies = NormalFormGame(
            env_id=self.spec.env_id, num_envs=len(env_indices), payoffs=self._payoffs, teams=self.spec.teams
        )
        return copies, copies.reset(0)

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The number of games: there is no other state."""
        return {"num_envs": np.array(self.num_envs)}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: it was saved for another number of games.
        """
        if int(saved["num_envs"]) != self.num_envs:
            raise EnvError(
                f"{self.spec.env_id}: saved for {int(saved['num_envs'])} games, this env has {self.num_envs}"
            )
        return self.reset(0)

    def _turn(self, rewards: NDArray[np.float32], *, ended: bool) -> Turn:
        return Turn(
            env_index=self._env_index,
            seat=self._seat,
            obs={"seat": self._seen.copy()},
            action_mask=None,
            rewards=rewards,
            terminated=np.full(self.num_envs, ended),
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=rewards.copy(),
        )


class ThreeSeatRockPaperScissors(NormalFormGame):
    """Free-for-all of three: each seat plays one choice against both others and earns the mean of the two results.

    Two seats with the same choice split their result against the third, so that it matters which opponents to expect.
    """

    def __init__(self, *, num_envs: int) -> None:
        beats = np.array(BEATS, np.float32)
        payoffs = np.zeros((3, 3, 3, 3), np.float32)
        for choices in itertools.product(range(3), repeat=3):
            for seat, own in enumerate(choices):
                payoffs[(*choices, seat)] = sum(beats[own, other] for other in choices) / 2
        super().__init__(env_id="three_seat_rock_paper_scissors", num_envs=num_envs, payoffs=payoffs)


class TeamRockPaperScissors(NormalFormGame):
    """Two against two: a team plays the sum of its seats' choices modulo three, and both of its seats earn the result.

    The worth of a choice depends on the partner's, and a team is hard to predict as long as one of its seats is.
    Teams are the seats {0, 2} and {1, 3}.
    """

    def __init__(self, *, num_envs: int) -> None:
        beats = np.array(BEATS, np.float32)
        payoffs = np.zeros((3, 3, 3, 3, 4), np.float32)
        for choices in itertools.product(range(3), repeat=4):
            won = beats[(choices[0] + choices[2]) % 3, (choices[1] + choices[3]) % 3]
            payoffs[choices] = (won, -won, won, -won)
        super().__init__(env_id="team_rock_paper_scissors", num_envs=num_envs, payoffs=payoffs, teams=(0, 1, 0, 1))
