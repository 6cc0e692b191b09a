"""The arena: steps N games under assignments of policies to seats, and returns unrolls and outcomes.

Shape letters: N games, S seats, K slots that act in one turn, C core state size. Row of a slot = env_index * S + seat.

An arena outlives its leases: games in flight keep the assignment that they started with, and only a starting episode
draws from the table of the present lease. So no opponent changes inside an episode and the end of a lease discards
nothing. Where other processes decide or step the games, an arena can be left while they work, see `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.outcome_counter import AssignmentTotals, OutcomeCounter
from league.agents.acting.policy import ActInputs, CoreRows, Policy
from league.agents.acting.turn_policies import Decisions, TurnPolicies
from league.agents.unroll.builder import UnrollBuilder, turn_rewards
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs import calls
from league.envs.failures import FaultTolerant, GameFailure
from league.envs.protocol import BatchedEnv, ForkableEnv, Turn
from league.envs.sampling import pack_stream, unpack_stream


class AssignmentLike(Protocol):
    """One way to fill the seats: [S] policy ids, [S] flags of recorded seats, probability among new episodes."""

    @property
    def policies(self) -> tuple[str, ...]: ...
    @property
    def records(self) -> tuple[bool, ...]: ...
    @property
    def probability(self) -> float: ...


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
      first_game: number of the env's first game among those of the host.
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
        first_game: int = 0,
    ) -> None:
        spec = env.spec
        self._env = env
        self._is_async = isinstance(env, calls.AsyncEnv)
        if isinstance(env, FaultTolerant):
            env.tolerate_failures()
        self._seats = spec.num_seats
        self._rng = np.random.default_rng(seed)
        self._unrolls = unrolls
        self._bootstrap_time_limits = bootstrap_time_limits
        self._builder = UnrollBuilder(unrolls, num_rows=env.num_envs * spec.num_seats)
        self._core = np.zeros((env.num_envs * spec.num_seats, max(unrolls.core_size, max_core)), np.float32)
        self._core_given = np.ones(len(self._core), np.bool_)
        self._core_table, self._first_game = core_table, first_game
        self.counter = counter or OutcomeCounter(spec.teams)
        self._assignments: list[AssignmentLike] = []
        self._policies: list[Policy] = []
        self._turn_policies = TurnPolicies([])
        self._policy_ids: list[str] = []
        self._policy_table = np.zeros((0, spec.num_seats), np.int64)
        self._record_table = np.zeros((0, spec.num_seats), np.bool_)
        self._counter_of = np.zeros(0, np.int64)
        self._assignment_of = np.full(env.num_envs, -1, np.int64)
        self._policy_of = np.zeros((env.num_envs, spec.num_seats), np.int64)
        self._records = np.zeros((env.num_envs, spec.num_seats), np.bool_)
        self._decisions = np.zeros(env.num_envs, np.int64)
        self._turn: Turn | None = None
        self._seed = seed
        self._first, self._probabilities = 0, np.zeros(0)
        self._steps_left = 0
        self._next: Callable[[], bool] = self._observe_turn
        self._is_waiting = False
        self._rows = self._recorded = np.zeros(0, np.int64)  # of the turn's slots; those of them that are recorded
        self._deciding: Decisions | None = None
        self._finished: list[Unrolls] = []

    @property
    def num_envs(self) -> int:
        """N."""
        return self._env.num_envs

    @property
    def is_finished(self) -> bool:
        """True if `advance` has made every step."""
        return not self._steps_left

    def run(
        self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy], *, steps: int
    ) -> Iterator[Unrolls]:
        """Step every game `steps` times under a table of assignments; yields unrolls as they become complete.

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
        self._first = self._take_table(assignments, policies)
        self._probabilities = np.cumsum([assignment.probability for assignment in assignments])
        self._steps_left = steps
        if self._turn is None:
            self._turn = calls.reset(self._env, self._seed)
            self._draw_assignments(np.arange(self._env.num_envs))

    def advance(self) -> Iterator[Unrolls]:
        """Step until the arena would wait for another process, or has made its steps; yields complete unrolls.

        Called again, it first waits for what it asked. It may be left at any unroll.

        Raises:
          EnvError: from the env.
        """
        while self._steps_left:
            self._is_waiting = self._next()
            while self._finished:
                yield self._finished.pop(0)
            if self._is_waiting:
                return

    def settle(self) -> None:
        """Continue until no other process works for this arena. Unrolls are yielded later. Raises as `advance`."""
        while self._is_waiting:
            self._is_waiting = self._next()

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
            "arena.core": self._core.copy(),
            "arena.decisions": self._decisions.copy(),
            "arena.assignment_of": self._assignment_of.copy(),
        }
        arrays.update({f"env.{name}": array for name, array in self._env.save().items()})
        arrays.update({f"builder.{name}": array for name, array in self._builder.save().items()})
        return arrays

    def saved_assignments(self) -> tuple[AssignmentLike, ...]:
        """The table that `arena.assignment_of` in the saved arrays indexes."""
        return tuple(self._assignments)

    def load(
        self,
        saved: Mapping[str, NDArray[np.generic]],
        assignments: Sequence[AssignmentLike],
        policies: Mapping[str, Policy],
    ) -> None:
        """Continue from `save`. Args: the saved arrays and table, and the policies that the table names."""
        assert isinstance(self._env, ForkableEnv)
        self._rng = unpack_stream(saved["arena.rng"])
        self._take_table(assignments, policies)
        self._turn = self._env.load({k.removeprefix("env."): v for k, v in saved.items() if k.startswith("env.")})
        self._builder.load({k.removeprefix("builder."): v for k, v in saved.items() if k.startswith("builder.")})
        self._core[...] = saved["arena.core"]
        self._core_given[:] = True
        self._decisions[...] = saved["arena.decisions"]
        self._assign(np.arange(self._env.num_envs), np.asarray(saved["arena.assignment_of"], np.int64))

    def _take_table(self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy]) -> int:
        """Append a table, after dropping assignments that no game in flight holds; returns its first index."""
        live, inverse = np.unique(self._assignment_of, return_inverse=True)
        kept = [int(index) for index in live if index >= 0]
        by_id = {**dict(zip(self._policy_ids, self._policies, strict=True)), **policies}
        if kept:
            self._assignment_of = inverse.astype(np.int64)
        self._assignments = [self._assignments[index] for index in kept]
        first = len(self._assignments)
        self._assignments.extend(assignments)
        wanted = dict.fromkeys(policy for assignment in self._assignments for policy in assignment.policies)
        self._policy_ids = list(wanted)
        self._policies = [by_id[policy] for policy in wanted]
        self._turn_policies = TurnPolicies(self._policies)
        index_of = {policy: index for index, policy in enumerate(self._policy_ids)}
        self._policy_table = np.array(
            [[index_of[p] for p in assignment.policies] for assignment in self._assignments], np.int64
        )
        self._record_table = np.array([assignment.records for assignment in self._assignments], np.bool_)
        self._counter_of = np.array(
            [self.counter.index_of(assignment.policies) for assignment in self._assignments], np.int64
        )
        if kept:
            self._assign(np.arange(self._env.num_envs), self._assignment_of)
        return first

    def _draw_assignments(self, envs: NDArray[np.int64]) -> None:
        """Assign starting episodes by the table of the present lease."""
        cumulated = self._probabilities
        drawn = np.searchsorted(cumulated, self._rng.random(len(envs)) * cumulated[-1], side="right")
        self._assign(envs, self._first + np.minimum(drawn, len(cumulated) - 1))

    def _assign(self, envs: NDArray[np.int64], assignment_of: NDArray[np.int64]) -> None:
        self._assignment_of[envs] = assignment_of
        self._policy_of[envs] = self._policy_table[assignment_of]
        self._records[envs] = self._record_table[assignment_of]

    def _observe_turn(self) -> bool:
        """First part of a step: record what the turn shows. Each part returns True if others work on the next one."""
        turn = self._turn
        assert turn is not None
        self._rows = turn.env_index * self._seats + turn.seat
        self._recorded = np.flatnonzero(self._records[turn.env_index, turn.seat])
        # Before acting: the record needs the core state from before this observation.
        if len(self._recorded):
            self._finish(self._observe(turn, self._rows, self._recorded))
        self._next = self._decide
        return False

    def _decide(self) -> bool:
        """Second part: have every slot decided."""
        turn = self._turn
        assert turn is not None
        holders = self._policy_of[turn.env_index, turn.seat]
        self._deciding = self._turn_policies.begin(
            self._act_inputs(turn, self._rows), holders, self._rng, num_sub_actions=self._unrolls.num_sub_actions
        )
        self._next = self._move
        return self._deciding.is_waited_for

    def _move(self) -> bool:
        """Third part: record the decisions, and step the games."""
        turn, rows, recorded = self._turn, self._rows, self._recorded
        assert turn is not None and self._deciding is not None
        outputs, versions = self._deciding.take()
        if self._core.shape[1]:
            self._core[rows, : outputs.core.shape[1]] = outputs.core
            self._core_given[rows] = False
        if len(recorded):
            self._builder.act(
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
        self._next = self._arrive
        if self._is_async:
            calls.step_async(self._env, actions)
        else:
            self._turn = calls.step(self._env, actions)
        return self._is_async

    def _arrive(self) -> bool:
        """Last part: take the next turn, with the episodes that ended in the step."""
        turn = self._turn = calls.step_wait(self._env) if self._is_async else self._turn
        assert turn is not None
        self._next = self._observe_turn
        self._steps_left = max(self._steps_left - 1, 0)
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
            self._draw_assignments(np.flatnonzero(restarted))
        return False

    def _finish(self, done: Unrolls | None) -> None:
        """Keep unrolls that became complete until `advance` yields them."""
        if done is not None:
            self._finished.append(done)

    def _within_bounds(self, actions: NDArray[np.generic]) -> NDArray[np.generic]:
        """Clip box actions to the env's bounds; unrolls record them unclipped, since clipped ones have no density."""
        code = self._env.spec.actions
        return np.clip(actions, code.low, code.high) if code.kind == "box" else actions

    def _observe(self, turn: Turn, rows: NDArray[np.int64], recorded: NDArray[np.int64]) -> Unrolls | None:
        everyone = len(recorded) == len(rows)
        chosen = rows if everyone else rows[recorded]
        rewards = turn_rewards(turn)
        mask, core_size = turn.action_mask, self._unrolls.core_size
        return self._builder.observe(
            chosen,
            obs=turn.obs if everyone else {name: array.take(recorded, axis=0) for name, array in turn.obs.items()},
            action_mask=mask if everyone or mask is None else mask.take(recorded, axis=0),
            rewards=rewards if everyone else rewards[recorded],
            core=self._core[chosen, :core_size] if core_size else None,
        )

    def _act_inputs(self, turn: Turn, rows: NDArray[np.int64]) -> ActInputs:
        """Every slot of the turn."""
        core, places = self._core[rows], None
        if core.shape[1]:
            places = CoreRows(self._core_table, rows, self._core_given[rows], self._builder.completes(rows))
        return ActInputs(self._env, turn, np.arange(len(rows)), core, core_rows=places, first_game=self._first_game)

    def _end(self, turn: Turn, ended: NDArray[np.int64]) -> Unrolls | None:
        """Count the episodes that ended in this turn and close their rows."""
        of = self._counter_of[self._assignment_of[ended]]
        self.counter.add(
            of, returns=turn.returns[ended], decisions=self._decisions[ended], truncated=turn.truncated[ended]
        )
        rows = self._clear(ended)
        recorded = np.flatnonzero(self._records[ended].reshape(-1))
        if not len(recorded):
            return None
        assert turn.final is not None or not turn.truncated[ended].any(), "a truncated episode came without `final`"
        return self._close(turn, rows[recorded])

    def _rejoin(self, turn: Turn, rows: NDArray[np.int64]) -> Unrolls | None:
        """Close the parts of an episode after which seats act again; they remember nothing of them."""
        self._core[rows], self._core_given[rows] = 0.0, True
        return self._close(turn, rows[self._records.reshape(-1)[rows]])

    def _close(self, turn: Turn, rows: NDArray[np.int64]) -> Unrolls | None:
        """Close the last decisions of recorded rows; those that were cut off lead to their last observations."""
        final, terminated = None, np.ones(len(rows), np.bool_)
        if turn.final is not None and self._bootstrap_time_limits:
            final, terminated = self._final_by_row(turn, rows)
        return self._builder.end(rows, rewards=turn.rewards.reshape(-1)[rows], terminated=terminated, final_obs=final)

    def _abort(self, games: NDArray[np.int64]) -> None:
        """Throw away the unfinished episodes of failed games: counted as aborted, learnt from up to the failure."""
        self.counter.add_aborted(self._counter_of[self._assignment_of[games]])
        rows = self._clear(games)
        self._builder.abandon(rows[self._records[games].reshape(-1)])

    def _clear(self, games: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget the decisions and core states of episodes that are over; returns the rows of all their seats."""
        self._decisions[games] = 0
        rows = (games[:, None] * self._seats + np.arange(self._seats)).reshape(-1)
        self._core[rows], self._core_given[rows] = 0.0, True
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
