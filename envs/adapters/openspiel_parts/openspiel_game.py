"""An OpenSpiel game: loading it by name, its spec, its chance events, and reading its tensors.

Shape letters: S seats, A actions.
Source: Lanctot et al. 2019, OpenSpiel: a framework for reinforcement learning in games; `open_spiel` 2.0.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray
from open_spiel.python.observation import make_observation

from league.envs.plugins import first_line
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec

IMAGE_RANK = 3
TRIAL_GAMES, TRIAL_MOVES = 50, 3000  # random play that looks for what a game's description does not say
RECURRING_SHARE = 0.01  # of the moves of random play, from which on a game is one whose positions recur
TIME = "time"
"""Observation field, float32 one-hot: which of equal parts of the longest game a move falls into."""
MAX_TIMES = 32  # a longer game has fewer parts than moves


def load_game(name: str, kwargs: Mapping[str, object]) -> Any:
    """The OpenSpiel game of that name and these further parameters.

    Raises:
      EnvError: see `make_registered`.
    """
    env_id, short = f"openspiel:{name}", name.partition("(")[0]
    if short.startswith("python_"):
        from open_spiel.python import games  # noqa: F401  registers the games that are written in Python
    if short not in pyspiel.registered_names():
        near = difflib.get_close_matches(short, pyspiel.registered_names(), n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(f'openspiel:{other}' for other in near)}?" if near else ""
        raise EnvError(f"unknown env {env_id!r}{hint}")
    try:
        parameters = pyspiel.game_parameters_from_string(name)
        if not kwargs:
            return pyspiel.load_game(name)
        return pyspiel.load_game(short, {key: parameters[key] for key in parameters if key != "name"} | dict(kwargs))
    except (pyspiel.SpielError, TypeError, IndexError) as error:  # the last: a parameter that it looks up unasked
        raise EnvError(f"{env_id}: OpenSpiel cannot load it: {first_line(error)}") from error


def spec_of_game(game: Any, env_id: str) -> EnvSpec:
    """The spec of an OpenSpiel game.

    Raises:
      EnvError: it has no tensor to observe, or its chance cannot be seeded.
    """
    facts = game.get_type()
    if facts.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise EnvError(f"{env_id}: it is a mean-field game, whose distribution of players nobody here updates")
    if facts.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise EnvError(f"{env_id}: it draws its chance events itself, so that no seed would repeat a game")
    if not (facts.provides_information_state_tensor or facts.provides_observation_tensor):
        raise EnvError(f"{env_id}: it has neither an information state tensor nor an observation tensor to learn from")
    seats, low, high = game.num_players(), float(game.min_utility()), float(game.max_utility())
    try:
        name, shape = tensor_of(game)
    except pyspiel.SpielError as error:
        raise EnvError(f"{env_id}: it does not give the tensor that it promises: {error}") from error
    observations = {name: ArraySpec(shape, "float32")}
    if _hides_time(str(game)):
        observations[TIME] = ArraySpec((Clock(game).num_parts,), "float32")
    if seats > 1:
        observations["seat"] = ArraySpec((seats,), "bool")
    return EnvSpec(
        env_id=env_id,
        num_seats=seats,
        observations=observations,
        actions=ActionSpec(kind="categorical", num_actions=game.num_distinct_actions()),
        teams=(0,) * seats if facts.utility == pyspiel.GameType.Utility.IDENTICAL else tuple(range(seats)),
        has_mask=True,
        max_turns=game.max_game_length(),
        seat_names=tuple(f"player_{seat}" for seat in range(seats)),
        hidden_information=facts.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        information_known=True,
        return_range=(low, high),
        win_draw_loss=seats > 1 and (low, high) == (-1.0, 1.0) and _only_wins_and_losses(str(game)),
    )


def tensor_of(game: Any) -> tuple[str, tuple[int, ...]]:
    """Name and shape of the tensor that a seat observes."""
    if game.get_type().provides_information_state_tensor:
        name, shape = "information_state", game.information_state_tensor_shape()
    else:
        name, shape = "observation", game.observation_tensor_shape()
    size = int(np.prod(shape))
    return name, tuple(shape) if len(shape) == IMAGE_RANK and min(shape[1:]) > 1 else (size,)


@functools.lru_cache(maxsize=64)
def _only_wins_and_losses(game: str) -> bool:
    """True if random play of this game of returns in [-1, 1] shows no return but -1, 0 and 1."""
    loaded, rng, moves = pyspiel.load_game(game), np.random.default_rng(0), 0
    for _ in range(TRIAL_GAMES):
        state = loaded.new_initial_state()
        while not state.is_terminal():
            random_step(state, rng)
            moves += 1
            if moves == TRIAL_MOVES:
                return True
        if not set(state.returns()) <= {-1.0, 0.0, 1.0}:
            return False
    return True


@functools.lru_cache(maxsize=64)
def _hides_time(name: str) -> bool:
    """True for a game whose tensor looks the same at different times, although every seat has seen all moves.

    Such a game ends after so many moves without showing how many are left, and what is best depends on that (Pardo et
    al. 2018, Time limits in reinforcement learning, section 2). Where something is hidden, the number of moves may be
    hidden too, and a tensor of an information state is complete by definition.
    """
    game = pyspiel.load_game(name)
    facts = game.get_type()
    if facts.provides_information_state_tensor or facts.information != pyspiel.GameType.Information.PERFECT_INFORMATION:
        return False
    observer, rng, first_seen = TensorReader(game), np.random.default_rng(0), dict[tuple[int, bytes], int]()
    moves = recurring = 0
    for _ in range(TRIAL_GAMES):
        state = game.new_initial_state()
        while not state.is_terminal() and moves < TRIAL_MOVES:
            if not state.is_chance_node():
                seat = 0 if state.is_simultaneous_node() else state.current_player()
                observer.read(state, seat)
                now = state.move_number()
                recurring += first_seen.setdefault((seat, observer.tensor.tobytes()), now) != now
            random_step(state, rng)
            moves += 1
    return recurring > RECURRING_SHARE * moves


def random_step(state: Any, rng: np.random.Generator) -> float:
    """Let chance draw, or every seat that acts choose evenly; returns minus the logarithm of the step's probability."""
    if state.is_chance_node():
        outcome, probabilities = draw(state, rng), dict(state.chance_outcomes())
        state.apply_action(outcome)
        return -math.log(probabilities[outcome])
    together = state.is_simultaneous_node()
    seats = range(state.num_players()) if together else [state.current_player()]
    choices = [state.legal_actions(seat) or [0] for seat in seats]
    drawn = [actions[int(rng.integers(len(actions)))] for actions in choices]
    if together:
        state.apply_actions(drawn)
    else:
        state.apply_action(drawn[0])
    return sum(math.log(len(actions)) for actions in choices)


def draw(state: Any, rng: np.random.Generator) -> int:
    """One outcome of a chance node, with the probabilities of the game."""
    left, outcome = rng.random(), 0
    for outcome, probability in state.chance_outcomes():  # noqa: B007  the last one stays, should rounding leave a rest
        left -= probability
        if left < 0:
            break
    return outcome


def fields_of(
    spec: EnvSpec, tensors: NDArray[np.float32], *, seat: NDArray[np.int64], times: Sequence[int]
) -> dict[str, NDArray[np.generic]]:
    """The observation fields of K seats.

    Args:
      tensors: [K, tensor size]. seat: [K].
      times: K of `Clock.time_of`; not read where the game has no field of that name.
    """
    name, first = next(iter(spec.observations.items()))
    fields: dict[str, NDArray[np.generic]] = {name: tensors.reshape(len(tensors), *first.shape)}
    if TIME in spec.observations:
        fields[TIME] = np.eye(*spec.observations[TIME].shape, dtype=np.float32)[times]
    if spec.num_seats > 1:
        fields["seat"] = np.eye(spec.num_seats, dtype=np.bool_)[seat]
    return fields


class TensorReader:
    """Reads the tensor of one seat in one state without a Python list in between."""

    def __init__(self, game: Any) -> None:
        perfect_recall = game.get_type().provides_information_state_tensor
        kind = pyspiel.IIGObservationType(perfect_recall=True) if perfect_recall else None
        observation = make_observation(game, kind)
        self.read = observation.set_from
        """Call with (state, seat): fills `tensor`."""
        self.tensor: NDArray[np.float32] = observation.tensor
        """float32 [tensor size], the last reading."""


class Clock:
    """Tells which of equal parts of the longest game the next move falls into.

    OpenSpiel counts chance moves only where seats move in turns.
    """

    def __init__(self, game: Any) -> None:
        together = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        self._longest = int(game.max_game_length() if together else game.max_move_number())
        self.num_parts = min(self._longest, MAX_TIMES)

    def time_of(self, state: Any) -> int:
        """A part in [0, num_parts)."""
        return min(int(state.move_number()) * self.num_parts // self._longest, self.num_parts - 1)
