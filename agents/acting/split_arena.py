"""The games of an actor host in several arenas that take turns (double-buffered sampling).

While another process decides or steps the games of one arena, the next one takes its turn, so that neither process
waits for the other. Sample Factory calls the parts splits (Petrenko et al., 2020).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from league.agents.acting.arena import Arena
from league.agents.acting.outcome_counter import AssignmentTotals
from league.agents.acting.policy import Policy
from league.agents.acting.seating import AssignmentLike
from league.agents.unroll.field_table import Record
from league.envs.failures import GameFailure
from league.envs.protocol import BatchedEnv


class SplitArena:
    """Arenas that take turns, as one. Args: parts: they share an outcome counter."""

    def __init__(self, parts: Sequence[Arena]) -> None:
        assert all(part.counter is parts[0].counter for part in parts), "arenas that count by themselves"
        self._parts = tuple(parts)

    @property
    def num_envs(self) -> int:
        """Games of all parts."""
        return sum(part.num_envs for part in self._parts)

    def run(
        self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy], *, steps: int
    ) -> Iterator[Record]:
        """As `Arena.run`."""
        for part in self._parts:
            part.begin(assignments, policies, steps=steps)
        waiting = deque(self._parts)
        while waiting:
            part = waiting.popleft()
            yield from part.advance()
            if not part.is_finished:
                waiting.append(part)

    def settle(self) -> None:
        """As `Arena.settle`."""
        for part in self._parts:
            part.settle()

    def take_outcomes(self) -> tuple[AssignmentTotals, ...]:
        """As `Arena.take_outcomes`, of all parts together."""
        return self._parts[0].take_outcomes()

    def take_failures(self) -> tuple[GameFailure, ...]:
        """As `Arena.take_failures`."""
        return tuple(failure for part in self._parts for failure in part.take_failures())

    def release(self) -> tuple[BatchedEnv, ...]:
        """As `Arena.release`, the envs of all parts."""
        return tuple(env for part in self._parts for env in part.release())

    def close(self) -> None:
        """Close every env."""
        for part in self._parts:
            part.close()
