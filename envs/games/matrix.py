"""Matrix games: two seats choose at once and a table gives their payoffs, for one or several rounds.

Observation "state", float32. With one round it is the constant [1]. With more it is [1 + 2 A]: the fraction of rounds
played, then the last actions of the seat and of the other seat, one-hot (zeros in the first round). Where the table
is not the same for both seats, the seat's number follows, one-hot: one network may then play the seats differently.

Shape letters: N games, K = 2 N slots, R and C actions of the two seats, A = max(R, C).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import MAX_REWARD, ActionSpec, ArraySpec, EnvError, EnvSpec, Turn
from league.envs.text.number_text import number_text

Table = Sequence[Sequence[float]]
BEATS = ((0, -1, 1), (1, 0, -1), (-1, 1, 0))  # rock, paper, scissors, from the first seat's side


class MatrixGame:
    """N games over one payoff table."""

    def __init__(
        self,
        *,
        num_envs: int,
        payoffs: Table = ((1.0, -1.0), (-1.0, 1.0)),
        second_payoffs: Table | None = None,
        rounds: int = 1,
        env_id: str = "matrix_game",
    ) -> None:
        """Validate the tables.

        Args:
          payoffs: [R][C], payoff of the first seat when it plays the row and the second seat the column;
            matching pennies by default.
          second_payoffs: [R][C], payoff of the second seat; None makes the game zero-sum.
          rounds: turns of one episode.
        Raises:
          EnvError: a table is not rectangular, or its numbers are no rewards; the two differ in shape; or a count is no
            whole number of at least 1.
        """
        first = _table(env_id, "payoffs", payoffs)
        second = -first if second_payoffs is None else _table(env_id, "second_payoffs", second_payoffs)
        if first.shape != second.shape:
            raise EnvError(
                f"{env_id}: payoffs are {list(first.shape)}, second_payoffs {list(second.shape)}; make them equal"
            )
        if num_envs < 1 or not is_whole(rounds) or rounds < 1:
            raise EnvError(
                f"{env_id}: num_envs is {num_envs} and rounds {rounds!r}; both must be whole numbers of at least 1"
            )
        self._payoffs = np.stack([first, second], axis=-1)
        self._counts = np.array(first.shape, np.int64)
        num_actions = int(self._counts.max())
        uneven = first.shape[0] != first.shape[1]
        self._shows_seat = uneven or not np.array_equal(second, first.T)
        width = 1 + (2 * num_actions if rounds > 1 else 0) + (2 if self._shows_seat else 0)
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id=env_id,
            num_seats=2,
            observations={"state": ArraySpec(shape=(width,), dtype="float32")},
            actions=ActionSpec(kind="categorical", num_actions=num_actions),
            teams=(0, 1),
            has_mask=uneven,
            max_turns=rounds,
            seat_names=("row", "column"),
            return_range=(rounds * float(self._payoffs.min()), rounds * float(self._payoffs.max())),
            win_draw_loss=rounds == 1 and is_win_draw_loss(self._payoffs, (0, 1)),
        )
        self._rounds = rounds
        self._env_index = np.repeat(np.arange(num_envs, dtype=np.int64), 2)
        self._seat = np.tile(np.arange(2, dtype=np.int64), num_envs)
        self._mask = np.arange(num_actions) < self._counts[self._seat][:, None] if uneven else None
        self._one_hot = np.eye(num_actions, dtype=np.float32)
        self._round = 0  # all games are in the same round: every episode has the same length
        self._last = np.zeros((num_envs, 2), np.int64)
        self._earned = np.zeros((num_envs, 2), np.float32)
        self._waiting = np.zeros((num_envs, 2), np.float32)  # earned in the last step, shown in the present turn

    @property
    def payoffs(self) -> NDArray[np.float32]:
        """float32 [R, C, 2], payoff of each seat in one round."""
        return self._payoffs

    @property
    def rounds(self) -> int:
        """Turns of one episode."""
        return self._rounds

    def reset(self, seed: int) -> Turn:
        """Restart every game. Nothing in these games is random, so the seed changes nothing."""
        self._round = 0
        self._earned[:] = 0
        self._waiting[:] = 0
        return self._turn(rewards=np.zeros((self.num_envs, 2), np.float32), ended=False)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Play one round: both seats of every game choose.

        Args:
          actions: int [2 N], in the order (game, seat).
        Raises:
          EnvError: an action is not in [0, R) or [0, C) of its seat.
        """
        chosen = self._legal(actions).reshape(self.num_envs, 2)
        rewards = self._payoffs[chosen[:, 0], chosen[:, 1]]
        self._last = chosen.copy()
        self._earned += rewards
        self._round = (self._round + 1) % self._rounds
        self._waiting = rewards.copy() if self._round else np.zeros_like(rewards)
        return self._turn(rewards=rewards, ended=self._round == 0)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[MatrixGame, Turn]:
        """Copy the games at `env_indices`."""
        copies = MatrixGame(
            num_envs=len(env_indices),
            payoffs=self._payoffs[:, :, 0].tolist(),
            second_payoffs=self._payoffs[:, :, 1].tolist(),
            rounds=self._rounds,
            env_id=self.spec.env_id,
        )
        copies._round = self._round
        copies._last, copies._earned = self._last[env_indices], self._earned[env_indices]
        copies._waiting = self._waiting[env_indices]
        return copies, copies._turn(rewards=copies._waiting.copy(), ended=False)

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The round, the last actions and the rewards not yet shown."""
        return {
            "round": np.array(self._round),
            "last": self._last.copy(),
            "earned": self._earned.copy(),
            "waiting": self._waiting.copy(),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        if saved["last"].shape != self._last.shape:
            raise EnvError(f"{self.spec.env_id}: saved for {len(saved['last'])} games, this env has {self.num_envs}")
        self._round = int(saved["round"])
        self._last, self._earned = saved["last"].astype(np.int64), saved["earned"].astype(np.float32)
        self._waiting = saved["waiting"].astype(np.float32)
        return self._turn(rewards=self._waiting.copy(), ended=False)

    def _legal(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != self._seat.shape or chosen.dtype.kind not in "iu":
            raise EnvError(
                f"{self.spec.env_id}: actions are {chosen.dtype} {chosen.shape}, expected int64 {self._seat.shape}"
            )
        bad = np.flatnonzero((chosen < 0) | (chosen >= self._counts[self._seat]))
        if bad.size:
            seat = int(self._seat[bad[0]])
            raise EnvError(
                f"{self.spec.env_id}: action {int(chosen[bad[0]])} of seat {seat} is illegal in game"
                f" {int(self._env_index[bad[0]])}; legal are 0 to {int(self._counts[seat]) - 1}"
            )
        return chosen.astype(np.int64, copy=False)

    def _turn(self, *, rewards: NDArray[np.float32], ended: bool) -> Turn:
        returns = self._earned.copy() if ended else np.zeros_like(self._earned)
        if ended:
            self._earned[:] = 0
        return Turn(
            env_index=self._env_index,
            seat=self._seat,
            obs={"state": self._observe()},
            action_mask=None if self._mask is None else self._mask.copy(),
            rewards=rewards,
            terminated=np.full(self.num_envs, ended),
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=returns,
        )

    def _observe(self) -> NDArray[np.float32]:
        state = np.zeros((2 * self.num_envs, *self.spec.observations["state"].shape), np.float32)
        if self._rounds == 1:
            state[:, 0] = 1.0
        elif self._round:
            num_actions = self.spec.actions.num_actions
            state[:, 0] = self._round / self._rounds
            state[:, 1 : 1 + num_actions] = self._one_hot[self._last.ravel()]
            state[:, 1 + num_actions : 1 + 2 * num_actions] = self._one_hot[self._last[:, ::-1].ravel()]
        if self._shows_seat:
            state[np.arange(len(state)), self._seat - 2] = 1.0
        return state


class RockPaperScissors(MatrixGame):
    """Rock (0), paper (1), scissors (2)."""

    def __init__(
        self,
        *,
        num_envs: int,
        stakes: Sequence[float] = (1.0, 1.0, 1.0),
        rounds: int = 1,
        env_id: str = "rock_paper_scissors",
    ) -> None:
        """stakes: amount that a win with rock, paper or scissors takes from the other seat; all above 0.

        Raises:
          EnvError: stakes are not three positive numbers.
        """
        worth = stakes_of(env_id, stakes, what="three numbers above 0, for rock, paper and scissors", count=3)
        # The winner's stake counts: the row's if the row wins, the column's if the column wins.
        payoffs = [
            [sign * float(worth[row] if sign > 0 else worth[column]) for column, sign in enumerate(signs)]
            for row, signs in enumerate(BEATS)
        ]
        super().__init__(num_envs=num_envs, payoffs=payoffs, rounds=rounds, env_id=env_id)


class RepeatedRockPaperScissors(RockPaperScissors):
    """Rock, paper, scissors for several rounds; seats observe the last round."""

    def __init__(self, *, num_envs: int, stakes: Sequence[float] = (1.0, 1.0, 1.0), rounds: int = 10) -> None:
        """stakes as in `RockPaperScissors`; rounds: turns of one episode."""
        super().__init__(num_envs=num_envs, stakes=stakes, rounds=rounds, env_id="repeated_rock_paper_scissors")


def is_win_draw_loss(payoffs: NDArray[np.float32], teams: Sequence[int]) -> bool:
    """True if two teams play for one stake: each team wins all of it, nothing, or loses all of it.

    Args:
      payoffs: float32 [..., S], payoff of each seat. teams: [S].
    """
    if len(set(teams)) != 2:
        return False
    stake = float(np.abs(payoffs).max())
    sign = np.where(np.equal(teams, teams[0]), 1.0, -1.0)
    alike = stake > 0.0 and bool((payoffs == payoffs[..., :1] * sign).all())
    return alike and bool(np.isin(payoffs, (-stake, 0.0, stake)).all())


def is_whole(number: object) -> bool:
    """True for a whole number; an option of a game may be anything."""
    return isinstance(number, int) and not isinstance(number, bool)


def stakes_of(env_id: str, stakes: object, *, what: str, count: int) -> NDArray[np.float64]:
    """Stakes as numbers.

    Args:
      what: should be given, for the message. count: how many.
    Raises:
      EnvError: they are no such numbers.
    """
    try:
        worth = np.asarray(stakes, np.float64)
    except (TypeError, ValueError):
        worth = np.zeros(0)
    if worth.shape != (count,) or not ((worth > 0) & (worth <= MAX_REWARD)).all():
        raise EnvError(f"{env_id}: stakes are {stakes!r}; give {what}")
    return worth


def _table(env_id: str, name: str, values: Table) -> NDArray[np.float32]:
    try:
        table = np.array(values, np.float32)
    except (TypeError, ValueError) as error:
        raise EnvError(f"{env_id}: {name} must be a rectangular table of numbers ({error})") from error
    if table.ndim != 2 or table.size == 0 or not (np.abs(table) <= MAX_REWARD).all():  # false of NaN as well
        raise EnvError(
            f"{env_id}: {name} has shape {list(table.shape)}; give finite numbers [rows][columns] of at most "
            f"{number_text(MAX_REWARD, 9)}"
        )
    return table
