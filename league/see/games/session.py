"""A game between a person and policies, without any input or output: what may be seen, moves, hints and take back.

Nothing that a seat may not know is shown: the answer of a simultaneous opponent comes with the person's own choice,
and in games with hidden information the others' thoughts come after the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Evaluating, Policy
from league.envs.protocol import BatchedEnv, EnvConfig, EnvSpec, Turn
from league.envs.rendering.frames import make_shown
from league.envs.rendering.renderer import seat_name
from league.envs.rendering.renderers import PUBLIC_MOVES
from league.errors import LeagueError
from league.judge.recording.recorder import MAX_TURNS, ReplayRecorder, act, decision_of, evaluations
from league.judge.recording.replay import Decision, Replay, SeatHolder
from league.see.games.follower import GameFollower, SeatMove
from league.see.games.opinions import Advisors, Opinion
from league.see.games.session_view import Hint, Option, SessionView, Thought
from league.wording import seats_text


class IllegalMove(LeagueError):  # noqa: N818
    """A move that the game does not allow now."""


@dataclass(frozen=True)
class _Past:
    """The game before one step, to return to. core: [S] core states; rng: state of the stream of draws."""

    actions: NDArray[np.generic]
    decisions: tuple[Decision | None, ...]
    by_person: bool
    core: tuple[NDArray[np.float32], ...]
    rng: Any


@dataclass
class _Course:
    """A game up to now, made again from its seed where moves are taken back.

    Fields:
      rng: of all draws but those of the game. core: [S] core states of the policies.
      past: the steps; moves: what people may read of each. returns: of the seats, once the game is over.
    """

    recorder: ReplayRecorder
    turn: Turn
    rng: np.random.Generator
    core: list[NDArray[np.float32]]
    follower: GameFollower
    past: list[_Past] = field(default_factory=list)
    moves: list[tuple[SeatMove, ...]] = field(default_factory=list)
    returns: tuple[float, ...] = ()

    def take(self, past: _Past, env: BatchedEnv) -> None:
        """Make a step."""
        self.turn = self.recorder.step_with(past.actions, past.decisions)
        ended = bool(self.turn.ended[0])
        self.moves.append(self.follower.advance(past.actions, env, self.turn, ended=ended, said=past.decisions))
        self.past.append(past)
        if ended:
            self.returns = tuple(float(value) for value in self.turn.returns[0])


def accepts_moves_by_hand(spec: EnvSpec) -> bool:
    """True if a person can type moves: actions are numbered, neither continuous nor composed."""
    return spec.actions.kind == "categorical"


class GameSession:
    """One game of a person in one seat.

    Args:
      env: the game. seat: of the person.
      policies: [S] who plays the other seats; what stands at the person's own place gives the hints, None for none.
      holders: [S] their names.
      seed: of the game and of all draws.
      hides: whether the game hides something; None for what it says itself.
    Raises:
      LeagueError: the game cannot be played by a person. EnvError: it cannot be made.
    """

    def __init__(
        self,
        env: EnvConfig,
        policies: Sequence[Policy | None],
        *,
        seat: int,
        holders: Sequence[SeatHolder],
        seed: int = 0,
        hides: bool | None = None,
    ) -> None:
        self._config, self._seed, self.seat = env, seed, seat
        self._env = make_shown(replace(env, workers=0), num_envs=1)
        spec = self._env.spec
        by_hand = accepts_moves_by_hand(spec)
        if not by_hand or not 0 <= seat < spec.num_seats or len(policies) != spec.num_seats:
            self._env.close()
            kind = "it has no such seat" if by_hand else "its actions are not numbered"
            seats = seats_text(spec.seat_names, spec.num_seats)
            raise LeagueError(f"{env.id} cannot be played in seat {seat}: {kind} (seats are {seats}).")
        self._advisor = policies[seat]
        self._policies = [None if place == seat else policy for place, policy in enumerate(policies)]
        self._holders = tuple(holders)
        self._hides = spec.hidden_information if hides is None else hides
        self._hides_moves = self._hides and spec.env_id not in PUBLIC_MOVES
        self._course = self._begun()
        self._settle()

    @property
    def over(self) -> bool:
        """True once the game has ended."""
        return self._course.recorder.complete

    @property
    def num_steps(self) -> int:
        """Steps of the game so far."""
        return len(self._course.past)

    def choose(self, action: int) -> None:
        """Make the person's move; the others move until the person must act again or the game ends.

        Raises:
          IllegalMove: it is not one of the present options.
        """
        if self.over:
            raise IllegalMove("the game is over: start another one.")
        if action not in self._legal():
            names = ", ".join(f"{option.action} ({option.name})" for option in self._options()[:20])
            raise IllegalMove(f"{action} is not allowed now; allowed are {names}.")
        self._step(action)
        self._settle()

    def take_back(self) -> None:
        """Return to the person's last move; the same move again gets the same answer.

        Raises:
          IllegalMove: there is none, or the end has shown what was hidden.
        """
        mine = [number for number, past in enumerate(self._course.past) if past.by_person]
        if not mine:
            raise IllegalMove("there is no move of yours to take back.")
        if self.over and self._hides:
            raise IllegalMove("the game is over and has shown what was hidden: no move can be taken back.")
        kept, undone = self._course.past[: mine[-1]], self._course.past[mine[-1]]
        course = self._course = self._begun()
        for past in kept:
            course.take(past, self._env)
        course.core = [core.copy() for core in undone.core]
        course.rng.bit_generator.state = undone.rng

    def hint(self) -> Hint | None:
        """The advisor's thoughts on the person's position; None where nobody must act or it says nothing."""
        slot = self._slot()
        if slot is None or not isinstance(self._advisor, Evaluating):
            return None
        decision = decision_of(self._advisor.evaluate(self._inputs(slot)))
        ranked = sorted(((p, a) for a, p in enumerate(decision.probs) if p > 0), reverse=True)
        name = self._course.follower.action_name
        thoughts = tuple(Thought(action, name(self.seat, action), chance) for chance, action in ranked)
        return Hint(decision.value, thoughts)

    def view(self, *, evaluation: bool = True) -> SessionView:
        """All that the person may see now.

        Args:
          evaluation: whether thoughts of policies are shown, the advisor's among them.
        """
        spec, scene = self._env.spec, self._course.follower.scene(self.seat if not self.over or self._hides else None)
        names = tuple(seat_name(spec, place) for place in range(spec.num_seats))
        return SessionView(
            env=self._config.id,
            seat=self.seat,
            seat_names=names,
            seats=self._holders,
            step=self.num_steps,
            scene=scene,
            options=() if self.over else self._options(),
            moves=self._shown_moves(evaluation=evaluation),
            hint=self.hint() if evaluation else None,
            returns=self._course.returns if self.over else None,
            can_take_back=any(past.by_person for past in self._course.past) and not (self.over and self._hides),
            simultaneous=len(self._course.turn.seat) > 1,
        )

    def replay(self) -> Replay:
        """The record of the game, which must be over."""
        assert self.over, "the game has not ended"
        return self._course.recorder.replay(self._holders, tags={"kind": "played by a person"})

    def opinion(self, written: str, advisors: Advisors, *, name: str, since: int) -> Opinion:
        """The moves of another policy in each position so far; in a game that hides, in the person's place alone.

        Args:
          written: a contender. name: of it, for people. since: as of `opinion_of`.
        Raises:
          See `Advisors.ask`.
        """
        seat = self.seat if self._hides and not self.over else None
        return advisors.ask(written, self._course.recorder.replay(self._holders), 0, name=name, since=since, seat=seat)

    def close(self) -> None:
        """Close the game."""
        self._env.close()

    def _begun(self) -> _Course:
        """The game from its seed."""
        recorder = ReplayRecorder(self._config, self._env)
        turn: Turn = recorder.reset(self._seed)
        recorder.opened()
        everyone = [*self._policies[: self.seat], self._advisor, *self._policies[self.seat + 1 :]]
        core = [np.zeros((1, int(getattr(policy, "core_size", 0))), np.float32) for policy in everyone]
        rng = np.random.default_rng([self._seed, 1])
        return _Course(recorder, turn, rng, core, GameFollower(self._env, turn))

    def _settle(self) -> None:
        """Let the policies move until the person must act or the game is over."""
        for _ in range(MAX_TURNS):
            if self.over or self._slot() is not None:
                return
            self._step(None)
        raise LeagueError(f"{self._config.id}: the game does not end.")

    def _step(self, action: int | None) -> None:
        """One step of the game. action: of the person, None where it is not their turn."""
        course = self._course
        core = tuple(part.copy() for part in course.core)
        rng = course.rng.bit_generator.state
        decisions = evaluations(self._env, course.turn, self._policies, course.core)
        actions = act(self._env, course.turn, self._policies, course.core, course.rng)
        slot = self._slot()
        if slot is not None:
            assert action is not None
            actions[slot] = action
            if self._advisor is not None and self._course.core[self.seat].size:
                # The advisor remembers what it has seen; what it would have done counts for nothing.
                seen = self._advisor.act(self._inputs(slot), np.random.default_rng(0))
                self._course.core[self.seat] = seen.core
        self._course.take(_Past(actions, tuple(decisions), slot is not None, core, rng), self._env)

    def _slot(self) -> int | None:
        """The person's slot of the present turn; None where it is not their turn."""
        slots = np.flatnonzero(self._course.turn.seat == self.seat)
        return int(slots[0]) if slots.size and not self.over else None

    def _inputs(self, slot: int) -> ActInputs:
        return ActInputs(self._env, self._course.turn, np.array([slot]), self._course.core[self.seat])

    def _legal(self) -> list[int]:
        slot, mask = self._slot(), self._course.turn.action_mask
        if slot is None:
            return []
        if mask is None:
            return list(range(self._env.spec.actions.num_actions))
        legal: list[int] = np.flatnonzero(mask[slot]).tolist()
        return legal

    def _options(self) -> tuple[Option, ...]:
        return tuple(Option(action, self._course.follower.action_name(self.seat, action)) for action in self._legal())

    def _shown_moves(self, *, evaluation: bool) -> tuple[tuple[SeatMove, ...], ...]:
        """Every step's moves as the person may see them."""
        tells = evaluation and (self.over or not self._hides)
        shown = []
        for moves in self._course.moves:
            row = []
            for move in moves:
                hidden = self._hides_moves and not self.over and move.seat != self.seat
                row.append(
                    SeatMove(
                        move.seat,
                        "hidden" if hidden else move.action,
                        move.value if tells else None,
                        move.probs if tells else (),
                    )
                )
            shown.append(tuple(row))
        return tuple(shown)
