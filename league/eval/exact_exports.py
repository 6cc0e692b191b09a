"""Exact exploitability of a run's exports, where its game is small enough, in a file beside the journal.

The file holds nothing that could not be computed again; a run without it is none the worse.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from league.errors import CorruptSnapshot, MissingSnapshot
from league.eval.exploitability import NoExactValue, members_of, nash_conv
from league.policies.auto_export import EXPORTS, ExactExports, main_steps
from league.policies.loading import load_selection, open_run
from league.policies.select import UnknownPolicy
from league.store.run_folder import RunFolder


def measure_exports(path: Path, *, limit_s: float, clock: Callable[[], float] = time.monotonic) -> ExactExports | None:
    """Compute and store the NashConv of each export of a run that has stopped.

    The cheapest exports come first; none is begun that would end after the limit if it took as long as the last one.

    Args:
      limit_s: seconds.
    Returns:
      None where the game has no exact value, or all seats see everything and nobody asks for one.
    Raises:
      LeagueError: the run cannot be read.
    """
    run = open_run(path)
    if not run.state.is_competitive or run.state.perfect_information:
        return None
    begun = before = clock()
    values: dict[str, float] = {}
    for name in EXPORTS:
        if clock() - begun + (clock() - before) > limit_s:
            break
        before = clock()
        try:
            values[name] = nash_conv(run.env, members_of(load_selection(run, run.choose(name))))
        except NoExactValue:
            return None
        except (UnknownPolicy, MissingSnapshot, CorruptSnapshot):
            continue
    exact = ExactExports(values, main_steps(run.state))
    folder = RunFolder.open(path)
    folder.storage.atomic_write_bytes(folder.exports_path, msgspec.json.encode(exact))
    return exact
