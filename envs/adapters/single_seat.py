"""One seat of a game as an env of Gymnasium; an opponent plays all other seats.

Shape letters: A actions, S seats.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.adapters.as_pettingzoo import field_space
from league.envs.closing import closed_on_error
from league.envs.protocol import EnvConfig, EnvError, EnvSpec, Turn
from league.envs.registry import make
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions, sub_actions_are_legal

ALTERNATE, RANDOM = "alternate", "random"
MAX_EMPTY_GAMES = 1000
"""Games in a row that may end before the learning seat has acted."""


class Opponent(Protocol):
    """Plays the other seats of a game, each with a memory of its own."""

    def reset(self, seed: int | None = None) -> None:
        """Begin a game. seed: of its draws; None lets the last stream run on."""
        ...

    def act(
        self, observation: Mapping[str, NDArray[np.generic]], mask: NDArray[np.bool_] | None, *, seat: int
    ) -> int | NDArray[np.generic]:
        """The action of a seat for its fields and mask [A]."""
        ...


class SingleSeatEnv(gymnasium.Env):  # type: ignore[misc]
    """A game of several seats as its player sees it.

    The observation is the game's field, or a dict of its fields; bool fields become int8. Legal actions are
    `info["action_mask"]` and `action_masks()`, which maskable algorithms ask for. `info["seat"]` names the seat.

    Args:
      config: the game, of at least two seats.
      opponent: plays all other seats, those of the same team included.
      seat: name or number of the learning seat; "random" draws one for each game. "alternate" takes each in turn, from
        the one that a seed stands for: loops that seed every game with the next number alternate too.
      illegal: "raise" refuses an illegal action; "random" draws a legal one instead and sets `info["illegal"]`.
    Raises:
      EnvError: the game cannot be made, has one seat, or has no such seat.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as Gymnasium reads it

    def __init__(
        self,
        config: EnvConfig,
        opponent: Opponent,
        *,
        seat: str | int = ALTERNATE,
        illegal: Literal["raise", "random"] = "raise",
    ) -> None:
        self._env = make(config, num_envs=1)
        with closed_on_error([self._env]):
            self.game: EnvSpec = self._env.spec
            if self.game.num_seats < 2:
                raise EnvError(f"{config.id} has one seat: there is nobody to play against")
            self._seats = list(self.game.seat_names) or [str(number) for number in range(self.game.num_seats)]
            self._fixed = None if seat in (ALTERNATE, RANDOM) else self._number_of(seat)
        self._opponent = opponent
        self._draws = seat == RANDOM
        self._illegal = illegal
        self._games = 0
        self._seat = 0
        self._turn: Turn | None = None
        self._fields = [name for name in self.game.observations if name not in self.game.value_fields]
        own = {name: field_space(self.game.observations[name]) for name in self._fields}
        self.observation_space: Any = own[self._fields[0]] if len(own) == 1 else spaces.Dict(own)
        self.action_space: Any = _action_space(self.game)
        self._shown: Any = None
        self.render_mode = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a game, and let others act until it is the learning seat's turn; there are no options."""
        super().reset(seed=seed)
        if seed is not None:
            self._games = seed
        if self._fixed is not None:
            self._seat = self._fixed
        else:
            seats = self.game.num_seats
            self._seat = int(self.np_random.integers(seats)) if self._draws else self._games % seats
        self._games += 1
        self._opponent.reset(int(self.np_random.integers(2**31)))
        turn = self._env.reset(int(self.np_random.integers(2**31)))
        for _ in range(MAX_EMPTY_GAMES):
            turn = self._others_act(turn)
            if not self._is_over(turn):
                return self._show(turn), self._info(turn)
            self._opponent.reset()  # the env has begun its next game by itself
        raise EnvError(f"{self.game.env_id}: {MAX_EMPTY_GAMES} games ended before seat {self._seat} had a turn")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act, and let others act until the next turn of the learning seat or the end.

        Raises:
          EnvError: there is no game in progress, or the action is illegal and `illegal` is "raise".
        """
        turn = self._turn
        if turn is None:
            raise EnvError(f"{self.game.env_id}: call reset before step")
        mask = None if turn.action_mask is None else turn.action_mask[self._own_row(turn)]
        checked, was_illegal = self._checked(action, mask)
        turn = self._others_act(self._env.step(self._actions(turn, own=checked)), stepped=True)
        reward = float(turn.rewards[0, self._seat])
        if not self._is_over(turn):
            shown, info = self._show(turn), self._info(turn)
        else:
            shown, info = self._last(turn), {"seat": self._seats[self._seat]}
            self._turn = None
        if was_illegal:
            info["illegal"] = True
        cut = bool(turn.truncated[0]) or _aborted(turn)
        return shown, reward, bool(turn.terminated[0]), cut and not turn.terminated[0], info

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions bool [A] of the present turn; maskable algorithms ask for them by this name."""
        if self._turn is None or self._turn.action_mask is None:
            return np.ones(self.game.actions.num_actions, np.bool_)
        mask: NDArray[np.bool_] = self._turn.action_mask[self._own_row(self._turn)].copy()
        return mask

    def close(self) -> None:
        """See Gymnasium."""
        self._env.close()

    def _number_of(self, seat: str | int) -> int:
        if isinstance(seat, str) and seat in self._seats:
            return self._seats.index(seat)
        if isinstance(seat, int) and 0 <= seat < self.game.num_seats:
            return seat
        raise EnvError(
            f"{self.game.env_id} has no seat {seat!r}: give {ALTERNATE}, {RANDOM}, a number or {', '.join(self._seats)}"
        )

    def _others_act(self, turn: Turn, *, stepped: bool = False) -> Turn:
        """Step until the learning seat must act or the game is over. stepped: whether `turn` follows a step."""
        while not (stepped and self._is_over(turn)) and self._seat not in turn.seat:
            turn, stepped = self._env.step(self._actions(turn, own=None)), True
        return turn

    def _actions(self, turn: Turn, *, own: Any) -> NDArray[np.generic]:
        """The actions of all slots, the learning seat's own among them if it acts."""
        actions = []
        for row, seat in enumerate(turn.seat.tolist()):
            if seat == self._seat and own is not None:
                actions.append(own)
                continue
            fields = {name: turn.obs[name][row] for name in self._fields}
            mask = None if turn.action_mask is None else turn.action_mask[row]
            actions.append(self._opponent.act(fields, mask, seat=seat))
        return np.array(actions, np.float32 if self.game.actions.kind == "box" else np.int64)

    def _checked(self, action: Any, mask: NDArray[np.bool_] | None) -> tuple[Any, bool]:
        """The action to take, and whether the given one was illegal."""
        actions = self.game.actions
        if actions.kind == "box":
            return np.clip(np.asarray(action, np.float32), actions.low, actions.high), False
        if actions.kind == "multi_categorical":
            given = np.asarray(action, np.int64).reshape(1, -1)
            legal_rows = None if mask is None else mask[None]
            if sub_actions_are_legal(actions, given, mask=legal_rows)[0]:
                return given[0], False
            instead: Any = draw_sub_actions(actions, 1, mask=legal_rows, rng=self.np_random)[0]
        else:
            allowed = np.ones(actions.num_actions, np.bool_) if mask is None else mask
            if 0 <= int(action) < actions.num_actions and allowed[int(action)]:
                return int(action), False
            instead = int(uniform_legal(allowed[None], self.np_random)[0])
        if self._illegal == "raise":
            raise EnvError(
                f"{self.game.env_id}: action {action} is illegal here; choose by info['action_mask'], or make the env "
                'with illegal="random"'
            )
        return instead, True

    def _is_over(self, turn: Turn) -> bool:
        """True if the last step ended the game of this turn's results."""
        return bool(turn.terminated[0] or turn.truncated[0]) or _aborted(turn)

    def _own_row(self, turn: Turn) -> int:
        return int(np.flatnonzero(turn.seat == self._seat)[0])

    def _show(self, turn: Turn) -> Any:
        self._turn = turn
        row = self._own_row(turn)
        self._shown = self._observation({name: turn.obs[name][row] for name in self._fields})
        return self._shown

    def _last(self, turn: Turn) -> Any:
        """The observation at the end: of the seat where the game was cut off, else the last that it saw."""
        if turn.final is not None:
            for row, seat in enumerate(turn.final.seat.tolist()):
                if seat == self._seat:
                    return self._observation({name: turn.final.obs[name][row] for name in self._fields})
        return copy.deepcopy(self._shown)  # callers keep what they are shown

    def _observation(self, fields: Mapping[str, NDArray[np.generic]]) -> Any:
        own = {
            name: np.array(field, np.int8 if field.dtype == np.bool_ else field.dtype) for name, field in fields.items()
        }
        return own if len(own) > 1 else own[self._fields[0]]

    def _info(self, turn: Turn) -> dict[str, Any]:
        info: dict[str, Any] = {"seat": self._seats[self._seat]}
        if turn.action_mask is not None:
            info["action_mask"] = turn.action_mask[self._own_row(turn)].astype(np.int8)
        return info


def _aborted(turn: Turn) -> bool:
    return turn.aborted is not None and bool(turn.aborted[0])


def _action_space(spec: EnvSpec) -> Any:
    if spec.actions.kind == "box":
        return spaces.Box(spec.actions.low, spec.actions.high, spec.actions.shape, np.float32)
    if spec.actions.kind == "multi_categorical":
        return spaces.MultiDiscrete(spec.actions.nvec)
    return spaces.Discrete(spec.actions.num_actions)
