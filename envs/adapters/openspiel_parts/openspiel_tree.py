"""Visits every history of a small OpenSpiel game, for its information states and endings.

A game with simultaneous moves is walked beside its turn-based form: the observations are those that the seats of the
env see, the names of the information states those of the turn-based game.

Shape letters: S seats, I information states, A actions.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from league.envs.adapters.openspiel_parts.openspiel_game import (
    TIME,
    Clock,
    TensorReader,
    fields_of,
    random_step,
    spec_of_game,
)
from league.envs.decision_tree import DecisionTree, Endings, InformationStates, log_endings
from league.envs.protocol import EnvError, EnvSpec

MAX_HISTORIES = 1_000_000  # about ten seconds of visits and as much for each evaluation
MAX_ENTRIES = 100_000_000  # of all observations together: 400 MB
LOOK_EVERY = 100
"""Histories between two looks at the clock."""

PLAYOUTS, HOPELESS = 20, 100.0
"""Random games that estimate the number of histories, and times `MAX_HISTORIES` from which on none is visited."""

Decision = tuple[int, int]
"""(information state, action) of the last decision of a seat."""

NEVER: Decision = (-1, -1)
"""Before its first decision."""


_LAST: dict[tuple[str, str], DecisionTree] = {}
"""The last tree, for one policy after the other."""


def tree_of(name: str, env_id: str, *, limit_s: float = math.inf) -> DecisionTree:
    """The tree of the game that OpenSpiel loads by `name`; arguments and errors as of `walk`."""
    key = name, env_id
    if key not in _LAST:
        game = pyspiel.load_game(name)
        tree = walk(game, spec_of_game(game, env_id), limit_s=limit_s)
        _LAST.clear()
        _LAST[key] = tree
    return _LAST[key]


def walk(
    game: Any, spec: EnvSpec, *, limit_s: float = math.inf, clock: Callable[[], float] = time.process_time
) -> DecisionTree:
    """Visit every history of `game`.

    Args:
      limit_s: longest visit, in seconds of `clock`, which is one of processor time.
    Raises:
      EnvError: the game has too many histories, takes too long to visit, or does not name its information states.
    """
    twice = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
    turn_based = pyspiel.convert_to_turn_based(game) if twice else game
    if not turn_based.get_type().provides_information_state_string:
        raise EnvError(f"{spec.env_id} does not name its information states")
    if _is_hopeless(game):
        raise EnvError(f"{spec.env_id} is far too large to visit every history (at most {MAX_HISTORIES:,})")
    found = _Found(game, spec)
    shadow = turn_based.new_initial_state() if twice else None
    stack = [_Place(game.new_initial_state(), shadow, (NEVER,) * spec.num_seats, 1.0)]
    num_histories, began = 1, clock()
    while stack:
        place = stack.pop()
        if place.state.is_terminal():
            found.end(place.state.returns(), place.last, place.chance)
            continue
        for child in _children(place, found):
            num_histories += 1
            if num_histories > MAX_HISTORIES or found.num_entries > MAX_ENTRIES:
                raise EnvError(f"{spec.env_id} is too large to visit every history (at most {MAX_HISTORIES:,})")
            if num_histories % LOOK_EVERY == 0 and clock() - began > limit_s:
                raise EnvError(f"{spec.env_id} takes longer than {limit_s:.0f} s to visit every history")
            stack.append(child)
    return DecisionTree(found.info_states(), found.endings())


def _is_hopeless(game: Any) -> bool:
    """True if random games say that there are far too many histories; to find it by visits takes half a minute."""
    rng, logs, limit = np.random.default_rng(0), [], math.log(HOPELESS * MAX_HISTORIES)
    for _ in range(PLAYOUTS):
        state, log_choices = game.new_initial_state(), 0.0
        while not state.is_terminal():
            log_choices += random_step(state, rng)
            if log_choices - math.log(PLAYOUTS) > limit:  # the mean of all games is at least this one's part of it
                return True
        logs.append(log_choices)
    return log_endings(logs) > limit


@dataclass(frozen=True)
class _Place:
    """A history.

    Fields:
      state: of the game. shadow: the same in turn-based form, None if that is the game's own.
      last: [S], last decisions. chance: probability of the draws of chance so far.
    """

    state: Any
    shadow: Any
    last: tuple[Decision, ...]
    chance: float


def _children(place: _Place, found: _Found) -> Iterator[_Place]:
    """The histories one step on; records the information states of the seats that must act."""
    state, shadow = place.state, place.shadow
    if state.is_simultaneous_node():
        yield from _joint_children(place, found)
        return
    if state.is_chance_node():
        for action, probability in state.chance_outcomes():
            chance = place.chance * probability
            yield _Place(state.child(action), shadow and shadow.child(action), place.last, chance)
        return
    seat = state.current_player()
    index = found.add(state, shadow or state, seat, place.last[seat])
    for action in state.legal_actions():
        last = _with(place.last, seat, (index, action))
        yield _Place(state.child(action), shadow and shadow.child(action), last, place.chance)


def _joint_children(place: _Place, found: _Found) -> Iterator[_Place]:
    """As `_children`, where several seats act at once; a seat without legal actions answers 0."""
    seats = range(len(place.last))
    choices = [place.state.legal_actions(seat) for seat in seats]
    acting = [seat for seat in seats if choices[seat]]
    shadow, indices = place.shadow, {}
    for seat in acting:
        indices[seat] = found.add(place.state, shadow, seat, place.last[seat])
        shadow = shadow.child(choices[seat][0])
    for joint in itertools.product(*(actions or [0] for actions in choices)):
        state, shadow, last = place.state.clone(), place.shadow.clone(), place.last
        state.apply_actions(joint)
        for seat in acting:
            shadow.apply_action(joint[seat])
            last = _with(last, seat, (indices[seat], joint[seat]))
        yield _Place(state, shadow, last, place.chance)


def _with(last: tuple[Decision, ...], seat: int, decision: Decision) -> tuple[Decision, ...]:
    return (*last[:seat], decision, *last[seat + 1 :])


class _Found:
    """The information states and endings seen so far, in the order of their first visit."""

    def __init__(self, game: Any, spec: EnvSpec) -> None:
        self.index_of: dict[tuple[int, str, Decision], int] = {}
        self.num_entries = 0
        self._spec = spec
        self._observer = TensorReader(game)
        self._clock = Clock(game) if TIME in spec.observations else None
        self._tensors: list[NDArray[np.float32]] = []
        self._times: list[int] = []
        self._seats: list[int] = []
        self._legal: list[list[int]] = []
        self._last: list[Decision] = []
        self._ends: list[tuple[Decision, ...]] = []
        self._returns: list[list[float]] = []
        self._chance: list[float] = []

    def add(self, state: Any, shadow: Any, seat: int, last: Decision) -> int:
        """The number of the information state of `seat`; new ones are recorded. shadow: `state` in turn-based form.

        Some games' names leave out what a seat did before. Its own last decision stands beside the name, so that a best
        reply may remember, as in a game of perfect recall.
        """
        key = (seat, shadow.information_state_string(seat), last)
        index = self.index_of.setdefault(key, len(self._seats))
        if index < len(self._seats):
            return index
        self._observer.read(state, seat)
        self._tensors.append(self._observer.tensor.copy())
        if self._clock is not None:
            self._times.append(self._clock.time_of(state))
        self.num_entries += self._observer.tensor.size
        self._seats.append(seat)
        self._legal.append(state.legal_actions(seat))
        self._last.append(last)
        return index

    def end(self, returns: list[float], last: tuple[Decision, ...], chance: float) -> None:
        """Record an ending. last: of each seat."""
        self._returns.append(returns)
        self._ends.append(last)
        self._chance.append(chance)

    def endings(self) -> Endings:
        """All endings as arrays."""
        ends = np.array(self._ends, np.int64)
        return Endings(
            chance=np.array(self._chance), returns=np.array(self._returns), info_state=ends[..., 0], action=ends[..., 1]
        )

    def info_states(self) -> InformationStates:
        """All information states as arrays."""
        num = len(self._seats)
        legal = np.zeros((num, self._spec.actions.num_actions), np.bool_)
        for row, actions in zip(legal, self._legal, strict=True):
            row[actions] = True
        seat, last = np.array(self._seats, np.int64), np.array(self._last, np.int64).reshape(num, 2)
        return InformationStates(
            seat=seat,
            fields=fields_of(self._spec, np.stack(self._tensors), seat=seat, times=self._times),
            legal=legal,
            parent=last[:, 0],
            parent_action=last[:, 1],
        )
