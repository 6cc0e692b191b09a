"""OpenSpiel's games as one `BatchedEnv`, stepped natively: N states, chance drawn from our own seeded stream.

Fields: "information_state" (float32) where the game has that tensor, else "observation"; a tensor of rank 3 keeps its
shape, any other is flat. With several seats "seat" (bool [S], one-hot) stands beside it: not every tensor tells whose
it is. A tensor that looks the same at different times has "time" (float32 [T], one-hot) beside it, for such a game ends
after so many moves.

Shape letters: N games, S seats, K slots, A actions, T parts of the longest game.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from league.envs.adapters.openspiel_parts.openspiel_game import (
    TIME,
    Clock,
    TensorReader,
    draw,
    fields_of,
    load_game,
    spec_of_game,
)
from league.envs.adapters.openspiel_parts.openspiel_tree import tree_of
from league.envs.adapters.seat_rewards import SeatRewards
from league.envs.adapters.turn_builder import legal_answers
from league.envs.decision_tree import DecisionTree
from league.envs.protocol import EnvError, EnvSpec, Turn
from league.envs.sampling import pack_stream, split_stream, unpack_stream

CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)


def make_registered(name: str, *, kwargs: Mapping[str, object], num_envs: int) -> OpenSpielEnv:
    """Make the game that OpenSpiel registers as `name`.

    Args:
      name: such as "goofspiel(num_cards=4,imp_info=true)".
      kwargs: further parameters of the game.
    Raises:
      EnvError: no such game (the message names the nearest); a parameter that it does not take; a game without a tensor
        to observe, or with chance that no seed of ours reaches.
    """
    game = load_game(name, kwargs)
    return OpenSpielEnv(game, spec_of_game(game, f"openspiel:{name}"), num_envs=num_envs)


@dataclass
class _Slots:
    """The slots that must act. env, seat: int64 [K]. mask: bool [K, A]."""

    env: NDArray[np.int64]
    seat: NDArray[np.int64]
    mask: NDArray[np.bool_]


class OpenSpielEnv:
    """N states of one OpenSpiel game."""

    def __init__(self, game: Any, spec: EnvSpec, *, num_envs: int) -> None:
        """Allocate the buffers; `reset` starts the games."""
        seats, num_actions = spec.num_seats, spec.actions.num_actions
        self.spec = spec
        self.num_envs = num_envs
        self._game = game
        self._observer = TensorReader(game)
        self._clock = Clock(game) if TIME in spec.observations else None
        self._per_step = game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
        self._rng = np.random.default_rng(0)
        self._states: list[Any] = []
        self._last: list[Any] = [None] * num_envs  # the states in which the last episodes ended
        self._acting: list[list[int]] = []  # the seats to move in each game
        self._simultaneous = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        rows = num_envs * (seats if self._simultaneous else 1)
        self._tensors = np.zeros((rows, self._observer.tensor.size), np.float32)
        self._games = np.arange(num_envs)
        self._single = [[seat] for seat in range(seats)]
        none = np.zeros(0, np.int64)
        self._slots = _Slots(none, none, np.zeros((0, num_actions), np.bool_))
        self._rewards = SeatRewards.nothing(num_envs, seats)
        self._ended = np.zeros(num_envs, np.bool_)  # in the last step

    def reset(self, seed: int) -> Turn:
        """Restart every game; all chance events come from one stream of this seed."""
        self._rng = np.random.default_rng(seed)
        nothing = SeatRewards.nothing(self.num_envs, self.spec.num_seats)
        self._resume([self._root.clone() for _ in range(self.num_envs)], nothing)
        return self._turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        slots = self._slots
        chosen = legal_answers(actions, self.spec, env_index=slots.env, seat=slots.seat, mask=slots.mask)
        self._rewards.begin_turn(slots.env, slots.seat, ended=self._ended)
        self._ended = np.zeros(self.num_envs, np.bool_)
        try:
            self._advance(chosen.tolist())
        except pyspiel.SpielError as error:
            raise EnvError(f"{self.spec.env_id}: OpenSpiel raised {error}") from error
        return self._turn()

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[OpenSpielEnv, Turn]:
        """Copy the games at `env_indices`; their chance events come from a stream of their own."""
        copies = OpenSpielEnv(self._game, self.spec, num_envs=len(env_indices))
        copies._rng = split_stream(self._rng)
        rewards = self._rewards.of(env_indices, ended=self._ended)
        copies._resume([self._states[game].clone() for game in env_indices], rewards)
        return copies, copies._turn()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The states as OpenSpiel writes them, the rewards of waiting seats and the stream of chance events."""
        texts = [state.serialize().encode() for state in self._states]
        rewards = self._rewards.of(self._games, ended=self._ended)
        return {
            "states": np.frombuffer(b"".join(texts), np.uint8).copy(),
            "lengths": np.array([len(text) for text in texts], np.int64),
            "waiting": rewards.waiting,
            "earned": rewards.total,
            "rng": pack_stream(self._rng),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games, or OpenSpiel cannot read a state.
        """
        ends = np.cumsum(saved["lengths"]).tolist()
        if len(ends) != self.num_envs:
            raise EnvError(f"{self.spec.env_id}: saved for {len(ends)} games, this env has {self.num_envs}")
        texts = saved["states"].tobytes()
        try:
            states = [
                self._game.deserialize_state(texts[start:end].decode()) for start, end in itertools.pairwise([0, *ends])
            ]
        except (pyspiel.SpielError, UnicodeDecodeError) as error:
            raise EnvError(f"{self.spec.env_id}: a saved state cannot be read ({error})") from error
        self._rng = unpack_stream(saved["rng"])
        self._resume(states, SeatRewards(saved["waiting"].astype(np.float64), saved["earned"].astype(np.float64)))
        return self._turn()

    def describe(self, game: int, *, seat: int | None, ended: bool) -> str:
        state = self._last[game] if ended else self._states[game]
        if seat is None or not self.spec.hidden_information:
            return str(state)
        form = self._game.get_type()
        if form.provides_information_state_string:
            return str(state.information_state_string(seat))
        return str(state.observation_string(seat)) if form.provides_observation_string else ""

    def action_text(self, game: int, seat: int, action: int) -> str:
        return str(self._states[game].action_to_string(seat, action))

    def decision_tree(self, *, limit_s: float = math.inf) -> DecisionTree:
        return tree_of(str(self._game), self.spec.env_id, limit_s=limit_s)

    @functools.cached_property
    def _root(self) -> Any:
        """The state in which every game starts: to make one takes milliseconds in some games, to copy it never."""
        return self._game.new_initial_state()

    def _resume(self, states: list[Any], rewards: SeatRewards) -> None:
        self._states = states
        self._acting = [self._seats_after_chance(state) for state in states]
        self._rewards = rewards
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _advance(self, chosen: Sequence[int]) -> None:
        """Step every state, and restart those that end."""
        slot, in_turns, ended = 0, not self._simultaneous, []
        counted, totals = [], []  # games that earned something, and what they have earned so far
        for game, state in enumerate(self._states):
            acting = self._acting[game]
            if in_turns or not state.is_simultaneous_node():
                state.apply_action(chosen[slot])
                slot += 1
            else:
                joint = [0] * self.spec.num_seats  # what a seat without legal actions answers
                for seat in acting:
                    joint[seat] = chosen[slot]
                    slot += 1
                state.apply_actions(joint)
            acting = self._seats_after_chance(state)
            if self._per_step or not acting:
                counted.append(game)
                totals.append(state.returns())
            if not acting:
                ended.append(game)
                self._last[game] = state
                self._states[game] = self._root.clone()
                acting = self._seats_after_chance(self._states[game])
            self._acting[game] = acting
        if counted:
            total = np.array(totals)
            self._rewards.waiting[counted] += total - self._rewards.total[counted]
            self._rewards.total[counted] = total
            self._ended[ended] = True

    def _seats_after_chance(self, state: Any) -> list[int]:
        """Draw chance events until a seat must act; returns the seats that must, none if the game is over."""
        player = state.current_player()
        while player == CHANCE:
            state.apply_action(draw(state, self._rng))
            player = state.current_player()
        if player >= 0:
            return self._single[player]
        if player == TERMINAL:
            return []
        return [seat for seat in range(self.spec.num_seats) if state.legal_actions(seat)]

    def _turn(self) -> Turn:
        """Show what the seats that must act see and may do."""
        read, tensor, rows = self._observer.read, self._observer.tensor, self._tensors
        legal, seats, times, row = [], [], [], 0
        for state, acting in zip(self._states, self._acting, strict=True):
            for seat in acting:
                read(state, seat)
                rows[row] = tensor
                legal.append(state.legal_actions(seat))
                row += 1
            seats += acting
            if self._clock is not None:
                times += [self._clock.time_of(state)] * len(acting)
        mask = np.zeros((row, self.spec.actions.num_actions), np.bool_)
        places = np.arange(row).repeat([len(actions) for actions in legal])
        mask[places, np.fromiter(itertools.chain.from_iterable(legal), np.int64, places.size)] = True
        env = self._games.repeat([len(acting) for acting in self._acting])
        slots = self._slots = _Slots(env, np.array(seats, np.int64), mask)
        return Turn(
            env_index=slots.env,
            seat=slots.seat,
            obs=fields_of(self.spec, rows[:row], seat=slots.seat, times=times),
            action_mask=mask.copy(),
            rewards=self._rewards.waiting.astype(np.float32),
            terminated=self._ended,
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=np.where(self._ended[:, None], self._rewards.total, 0.0).astype(np.float32),
        )
