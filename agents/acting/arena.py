"""The arena: steps N games under assignments of policies to seats, and returns what was recorded, and outcomes.

Shape letters: N games, S seats, K slots that act in one turn, C core state size. Row of a slot = env_index * S + seat.

An arena outlives its leases: games in flight keep the assignment that they started with, and only a starting episode
draws from the table of the present lease. So no opponent changes inside an episode and the end of a lease discards
nothing. Where other processes decide or step the games, an arena can be left while they work, see `advance`.

A step has four parts, in the order of `PARTS`: observe, decide, move, arrive. `SeatTable` knows who sits where, a
`Recorder` makes rows of what recorded seats see and do, and an `OutcomeCounter` counts ended episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.arena_step import ArenaStep
from league.agents.acting.core_states import CoreStates
from league.agents.acting.outcome_counter import AssignmentTotals, OutcomeCounter
from league.agents.acting.policy import ActInputs, Policy, Round
from league.agents.acting.seating import AssignmentLike, SeatTable
from league.agents.unroll.builder import UnrollBuilder, turn_rewards
from league.agents.unroll.field_table import Record
from league.agents.unroll.recorder import Recorder, RoundRecorder
from league.agents.unroll.unroll import UnrollSpec
from league.envs import calls
from league.envs.failures import FaultTolerant, GameFailure
from league.envs.protocol import BatchedEnv, ForkableEnv, Turn
from league.envs.sampling import pack_stream, unpack_stream


class Arena:
    """N games of one env, stepped in lockstep, with policies in their seats.

    Args:
      env: the games; the arena owns them and closes them, unless `release` gives them to another.
      unrolls: spec of the recorded unrolls, with core size and sub-actions of the recorded policies.
      max_core: largest core state of any other policy that will play here.
      bootstrap_time_limits: whether unrolls show a truncated episode's final observation; if False they record the
        episode as terminated.
      seed: of the games, the assignments and the sampled actions.
      core_table: number of this arena among those of its host, for policies that keep core states themselves.
      counter: of ended episodes; another arena's, to count with it.
      recorder: of N * S rows; None for one of unrolls.
      first_game: number of the env's first game among those of the host.
      staggered: as of `UnrollBuilder`.
    """

    def __init__(
        self,
        env: BatchedEnv,
        unrolls: UnrollSpec,
        *,
        seed: int,
        max_core: int = 0,
        bootstrap_time_limits: bool = True,
        core_table: int = 0,
        counter: OutcomeCounter | None = None,
        recorder: Recorder | None = None,
        first_game: int = 0,
        staggered: bool = False,
    ) -> None:
        spec, num_rows = env.spec, env.num_envs * env.spec.num_seats
        self._env = env
        self._is_async = isinstance(env, calls.AsyncEnv)
        if isinstance(env, FaultTolerant):
            env.tolerate_failures()
        self._seats = spec.num_seats
        self._first_game = first_game
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._unrolls = unrolls
        self._bootstrap_time_limits = bootstrap_time_limits
        self._recorder = recorder or UnrollBuilder(unrolls, num_rows=num_rows, staggered=staggered)
        self._rounds = self._recorder if isinstance(self._recorder, RoundRecorder) else None
        self._round: Round | None = None
        self._core = CoreStates(num_rows, max(unrolls.core_size, max_core), table=core_table)
        self._first_game = first_game
        self.counter = counter or OutcomeCounter(spec.teams)
        self._seating = SeatTable(env.num_envs, spec.num_seats, self.counter, one_seat=self._rounds is not None)
        self._decisions = np.zeros(env.num_envs, np.int64)
        self._turn: Turn | None = None
        self._step = ArenaStep()
        self._finished: list[Record] = []

    @property
    def num_envs(self) -> int:
        """N."""
        return self._env.num_envs

    @property
    def is_finished(self) -> bool:
        """True if `advance` has made every step."""
        return not self._step.left

    def run(
        self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy], *, steps: int
    ) -> Iterator[Record]:
        """Step every game `steps` times under a table of assignments; yields what is recorded as it becomes complete.

        Args and errors as of `begin` and `advance`.
        """
        self.begin(assignments, policies, steps=steps)
        while not self.is_finished:
            yield from self.advance()

    def begin(self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy], *, steps: int) -> None:
        """Take a table of assignments, under which `advance` steps every game `steps` times.

        Args:
          assignments: table from which each new episode draws.
          policies: every policy named in the table. Games in flight keep the objects from their start.
        Raises:
          EnvError: from the env.
        """
        self._seating.take_table(assignments, policies)
        self._step.left = steps
        if self._rounds is not None:
            self._begin_round(self._rounds.next_round())
        elif self._turn is None:
            self._begin_games(self._seed)

    def advance(self) -> Iterator[Record]:
        """Step until the arena would wait for another process, or has made its steps; yields complete records.

        Called again, it first waits for what it asked. It may be left at any record.

        Raises:
          EnvError: from the env.
        """
        while self._step.left:
            self._continue()
            while self._finished:
                yield self._finished.pop(0)
            if self._step.is_waiting:
                return

    def settle(self) -> None:
        """Continue until no other process works for this arena. Records are yielded later. Raises as `advance`."""
        while self._step.is_waiting:
            self._continue()

    def take_outcomes(self) -> tuple[AssignmentTotals, ...]:
        """Totals of the episodes that ended since the last call."""
        return self.counter.take()

    def take_failures(self) -> tuple[GameFailure, ...]:
        """The failures of single games since the last call, where the env outlives them."""
        return self._env.take_failures() if isinstance(self._env, FaultTolerant) else ()

    def release(self) -> tuple[BatchedEnv, ...]:
        """The env, for another arena, which resets it; this one ends here. Raises as `settle`."""
        self.settle()
        return (self._env,)

    def close(self) -> None:
        """Close the env."""
        self._env.close()

    def save(self) -> dict[str, NDArray[np.generic]] | None:
        """The full state as plain arrays; None if the env cannot be saved."""
        if not isinstance(self._env, ForkableEnv) or self._turn is None:
            return None
        arrays: dict[str, NDArray[np.generic]] = {
            "arena.rng": pack_stream(self._rng),
            "arena.core": self._core.states.copy(),
            "arena.decisions": self._decisions.copy(),
            "arena.assignment_of": self._seating.assignment_of.copy(),
        }
        arrays.update({f"env.{name}": array for name, array in self._env.save().items()})
        arrays.update({f"builder.{name}": array for name, array in self._recorder.save().items()})
        return arrays

    def saved_assignments(self) -> tuple[AssignmentLike, ...]:
        """The table that `arena.assignment_of` in the saved arrays indexes."""
        return self._seating.assignments

    def load(
        self,
        saved: Mapping[str, NDArray[np.generic]],
        assignments: Sequence[AssignmentLike],
        policies: Mapping[str, Policy],
    ) -> None:
        """Continue from `save`. Args: the saved arrays and table, and the policies that the table names."""
        assert isinstance(self._env, ForkableEnv)
        self._rng = unpack_stream(saved["arena.rng"])
        self._seating.take_table(assignments, policies)
        self._turn = self._env.load({k.removeprefix("env."): v for k, v in saved.items() if k.startswith("env.")})
        self._recorder.load({k.removeprefix("builder."): v for k, v in saved.items() if k.startswith("builder.")})
        self._core.load(saved["arena.core"])
        self._decisions[...] = saved["arena.decisions"]
        self._seating.load(np.asarray(saved["arena.assignment_of"], np.int64))

    def _begin_games(self, seed: int) -> None:
        """Begin every game again, under an assignment that is drawn now."""
        self._turn = calls.reset(self._env, seed)
        self._clear(np.arange(self._env.num_envs))
        self._seating.draw(np.arange(self._env.num_envs), self._rng)

    def _begin_round(self, seed: int | None) -> None:
        """Begin a round, where one is due: games, opponents and chance follow from its seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
            self._begin_games(seed)
            self._round = Round(seed, self._seating.recorded_seats())

    def _continue(self) -> None:
        """Do the next part of a step."""
        part = PARTS[self._step.part]
        self._step.part = (self._step.part + 1) % len(PARTS)
        self._step.is_waiting = part(self)

    def _observe(self) -> bool:
        """Record what the turn shows. Each part returns True if another process works on the next one."""
        turn = self._turn
        assert turn is not None
        rows = self._step.rows = turn.env_index * self._seats + turn.seat
        recorded = self._step.recorded = self._seating.recorded_slots(turn)
        # Before acting: the record needs the core state from before this observation.
        if len(recorded):
            self._finish(self._show(turn, rows, recorded))
            if self._rounds is not None and self._round is not None:
                self._round.seats[self._rounds.take_cut() // self._seats] = -1
        return False

    def _decide(self) -> bool:
        """Have every slot decided."""
        turn = self._turn
        assert turn is not None
        rows = self._step.rows
        inputs = ActInputs(
            self._env,
            turn,
            np.arange(len(rows)),
            self._core.states[rows],
            core_rows=self._core.places(rows, self._recorder.completes),
            plies=self._decisions,
            first_game=self._first_game,
            round=self._round,
        )
        deciding = self._step.deciding = self._seating.policies.begin(
            inputs, self._seating.holders(turn), self._rng, num_sub_actions=self._unrolls.num_sub_actions
        )
        return deciding.is_waited_for

    def _move(self) -> bool:
        """Record the decisions, and step the games."""
        turn, rows, recorded, deciding = self._turn, self._step.rows, self._step.recorded, self._step.deciding
        assert turn is not None and deciding is not None
        outputs, versions = deciding.take()
        self._core.put(rows, outputs.core)
        if len(recorded):
            self._recorder.act(
                rows[recorded],
                actions=outputs.actions[recorded],
                log_probs=outputs.log_probs[recorded],
                versions=versions[recorded],
                sub_action_log_probs=None
                if outputs.sub_action_log_probs is None
                else outputs.sub_action_log_probs[recorded],
                **{name: values[recorded] for name, values in outputs.recorded.items()},
            )
        self._decisions += np.bincount(turn.env_index, minlength=self._env.num_envs)
        actions = self._within_bounds(outputs.actions)
        if self._is_async:
            calls.step_async(self._env, actions)
        else:
            self._turn = calls.step(self._env, actions)
        return self._is_async

    def _arrive(self) -> bool:
        """Take the next turn, with the episodes that ended in the step."""
        turn = self._turn = calls.step_wait(self._env) if self._is_async else self._turn
        assert turn is not None
        self._step.left = max(self._step.left - 1, 0)
        ended, restarted = np.flatnonzero(turn.ended), turn.ended
        # Count ended episodes before new assignments are drawn: `_end` reads the old ones.
        if len(ended):
            self._finish(self._end(turn, ended))
        if turn.rejoined is not None and turn.rejoined.any():
            self._finish(self._rejoin(turn, np.flatnonzero(turn.rejoined)))
        if turn.aborted is not None:
            self._abort(np.flatnonzero(turn.aborted))
            restarted = restarted | turn.aborted
        if restarted.any():
            self._seating.draw(np.flatnonzero(restarted), self._rng)
        if self._rounds is not None:
            self._begin_round(self._rounds.next_round())
        return False

    def _finish(self, done: Record | None) -> None:
        """Keep rows that became complete until `advance` yields them."""
        if done is not None:
            self._finished.append(done)

    def _within_bounds(self, actions: NDArray[np.generic]) -> NDArray[np.generic]:
        """Clip box actions to the env's bounds; unrolls record them unclipped, since clipped ones have no density."""
        code = self._env.spec.actions
        return np.clip(actions, code.low, code.high) if code.kind == "box" else actions

    def _show(self, turn: Turn, rows: NDArray[np.int64], recorded: NDArray[np.int64]) -> Record | None:
        """Show recorded slots of the turn to the recorder."""
        everyone = len(recorded) == len(rows)
        chosen = rows if everyone else rows[recorded]
        rewards = turn_rewards(turn)
        mask, core_size = turn.action_mask, self._unrolls.core_size
        return self._recorder.observe(
            chosen,
            obs=turn.obs if everyone else {name: array.take(recorded, axis=0) for name, array in turn.obs.items()},
            action_mask=mask if everyone or mask is None else mask.take(recorded, axis=0),
            rewards=rewards if everyone else rewards[recorded],
            core=self._core.states[chosen, :core_size] if core_size else None,
        )

    def _end(self, turn: Turn, ended: NDArray[np.int64]) -> Record | None:
        """Count the episodes that ended in this turn and close their rows."""
        if self._round is not None:
            ended = self._leave_round(self._round, ended)
            if not len(ended):
                return None
        self.counter.add(
            self._seating.counter_index(ended),
            returns=turn.returns[ended],
            decisions=self._decisions[ended],
            truncated=turn.truncated[ended],
        )
        recorded = self._seating.recorded(self._clear(ended))
        if not len(recorded):
            return None
        assert turn.final is not None or not turn.truncated[ended].any(), "a truncated episode came without `final`"
        return self._close(turn, recorded)

    def _leave_round(self, played: Round, ended: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the ended games that were not idle; all of them idle from now on."""
        counted = ended[played.seats[ended] >= 0]
        played.seats[ended] = -1
        return counted

    def _rejoin(self, turn: Turn, rows: NDArray[np.int64]) -> Record | None:
        """Close the parts of an episode after which seats act again; they remember nothing of them."""
        self._core.clear(rows)
        return self._close(turn, self._seating.recorded(rows))

    def _close(self, turn: Turn, rows: NDArray[np.int64]) -> Record | None:
        """Close the last decisions of recorded rows; those that were cut off lead to their last observations."""
        final, terminated = None, np.ones(len(rows), np.bool_)
        if turn.final is not None and self._bootstrap_time_limits:
            final, terminated = self._final_by_row(turn, rows)
        return self._recorder.end(rows, rewards=turn.rewards.reshape(-1)[rows], terminated=terminated, final_obs=final)

    def _abort(self, games: NDArray[np.int64]) -> None:
        """Throw away the unfinished episodes of failed games: counted as aborted, learnt from up to the failure."""
        if self._round is not None:
            self._round.seats[games] = -1
        self.counter.add_aborted(self._seating.counter_index(games))
        self._recorder.abandon(self._seating.recorded(self._clear(games)))

    def _clear(self, games: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget the decisions and core states of episodes that are over; returns the rows of all their seats."""
        self._decisions[games] = 0
        rows = (games[:, None] * self._seats + np.arange(self._seats)).reshape(-1)
        self._core.clear(rows)
        return rows

    def _final_by_row(
        self, turn: Turn, rows: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        """Final observations in the order of `rows`, and True for rows without one: nothing follows for these seats."""
        assert turn.final is not None
        position = np.full(self._env.num_envs * self._seats, -1, np.int64)
        position[turn.final.env_index * self._seats + turn.final.seat] = np.arange(len(turn.final.seat))
        found = position[rows]
        arranged = {}
        for name, array in turn.final.obs.items():
            values = np.zeros((len(rows), *array.shape[1:]), array.dtype)
            values[found >= 0] = array[found[found >= 0]]
            arranged[name] = values
        return arranged, found < 0


PARTS: tuple[Callable[[Arena], bool], ...] = (Arena._observe, Arena._decide, Arena._move, Arena._arrive)
"""The parts of a step in their order."""
