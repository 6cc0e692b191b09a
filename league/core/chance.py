"""The seed of every command that draws random numbers; no two accepted commands of one league share a seed."""

from __future__ import annotations

import zlib

from league.core.state.commands import Command, ConfirmSnapshot, CreateLeague, ReportProgress, RequestLease
from league.core.state.state import LeagueState

_WORD = 1 << 32


def seed_of(state: LeagueState, command: Command) -> tuple[int, ...] | None:
    """Non-negative integers that seed the generator of one command; None where its decision draws nothing.

    The seed names the lease, the directive or the report, never the number of the next event: stops and starts write
    events too, and a resumed league must not differ from one that never stopped. A seed cannot be accepted twice: lease
    numbers advance, a directive closes, and every report that can draw moves its player on or back, whose distance
    grows.
    """
    if isinstance(command, CreateLeague):
        return (command.seed, _kind(command))
    if isinstance(command, RequestLease):
        return (state.seed, _kind(command), *_words(state.next_lease_id))
    if isinstance(command, ConfirmSnapshot) and command.directive_id in state.directives:
        return (state.seed, _kind(command), *_words(command.directive_id))
    if isinstance(command, ReportProgress) and command.progress.player in state.players:
        policy = state.players[command.progress.player].policy
        staleness_clock = int(state.population.staleness_clock.values[policy])
        return (state.seed, _kind(command), policy, *_words(staleness_clock))
    return None


def _kind(command: Command) -> int:
    return zlib.crc32(type(command).__name__.encode())


def _words(number: int) -> tuple[int, int]:
    """Two of 32 bits always: numpy would take one or two, so that neighbours in a seed could be confused."""
    return number % _WORD, number // _WORD
