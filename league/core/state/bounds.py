"""Bounds on the numbers of a command: what its lease can bring, and what a count of the league can hold.

Answers and reports come from other processes, and an event is for ever: a number that a fold cannot hold would make the
whole journal unreadable.
"""

from __future__ import annotations

import dataclasses
import math

from league.core.state.commands import FinishLease, Refused
from league.core.state.records import Lease
from league.core.state.state import LeagueState

MAX_COUNT = 1 << 53
"""Largest count: a float holds every whole number up to it, and 1,000 of it fit into 64 bits."""

OVERDUE_LEASES = 4
"""An answer may also hold the games that ended under leases that were lost before it, of up to so many."""


def check_numbers(command: object) -> None:
    """Look at every number of a command, or of a record, tuple or list in it.

    Raises:
      Refused: a number is not finite or lies beyond `MAX_COUNT`, above or below zero.
    """
    if isinstance(command, int):
        _require(-MAX_COUNT <= command <= MAX_COUNT, "a number lies beyond 2**53")
    elif isinstance(command, float):
        _require(math.isfinite(command), f"{command} is not finite")
    elif isinstance(command, tuple | list):
        for item in command:
            check_numbers(item)
    elif dataclasses.is_dataclass(command):
        for field in dataclasses.fields(command):
            check_numbers(getattr(command, field.name))


def check_answer(state: LeagueState, lease: Lease, command: FinishLease) -> None:
    """Look at the sums of an answer.

    A game ends at most once in each env step, so the steps of the lease bound its games. The decisions in them do not:
    a game may have begun many leases ago.

    Raises:
      Refused: the lease cannot have brought so much, or the league's totals cannot hold it.
    """
    what = f"lease {lease.lease_id}"
    most = lease.steps * lease.num_envs if lease.num_envs else MAX_COUNT
    _require(0 <= command.env_steps <= most, f"{what}: {command.env_steps} env steps, and it can bring {most}")
    games = sum(outcome.games + outcome.aborted for outcome in command.outcomes)
    most = min(OVERDUE_LEASES * most, MAX_COUNT)
    _require(games <= most, f"{what}: {games} games, and it can bring {most}")
    totals = state.totals
    turns = sum(outcome.decisions for outcome in command.outcomes)
    steps = totals.env_steps + totals.settling_steps + command.env_steps
    sums = (steps, totals.games + totals.aborted + games, totals.decisions + turns)
    _require(max(sums) <= MAX_COUNT, f"{what}: with it a total of the league is larger than 2**53")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise Refused(problem)
