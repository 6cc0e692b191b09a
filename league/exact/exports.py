"""Exact exploitability of a run's exports, where its game is small enough, in a file beside the journal.

The file holds nothing that could not be computed again; a run without it is none the worse.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from league.core.metagame.meta_game import exported_snapshots
from league.errors import CorruptSnapshot, MissingSnapshot
from league.exact.behaviours import PolicyFunction, members_of
from league.exact.least_exploitable import least_exploitable
from league.exact.small_game import NoExactValue, SmallGame, small_game
from league.policies.auto_export import EXACT, EXPORTS, ExactExports, main_steps
from league.policies.loading import OpenRun, load_selection, open_run
from league.policies.select import UnknownPolicy
from league.store.run_folder import RunFolder

VISIT_FRACTION = 0.7
"""Part of the time for the visit of a game by copies."""

MAX_MEMBERS = 64
"""Most snapshots that the least exploitable mixture is sought among, evenly spaced; their plans are held in memory."""


def measure_exports(
    path: Path,
    *,
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], None] = lambda sentence: None,
) -> ExactExports | None:
    """Compute and store the NashConv of each export of a run that has stopped, and its least exploitable mixture.

    The cheapest exports come first; none is begun that would end after the limit if it took as long as the last one.

    Args:
      limit_s: seconds.
      say: takes a sentence before the work begins.
    Returns:
      None where the game has no exact value, or all seats see everything and nobody asks for one.
    Raises:
      LeagueError: the run cannot be read.
    """
    run = open_run(path)
    if not run.state.is_competitive or run.state.perfect_information:
        return None
    begun = clock()
    say(f"The least exploitable export is sought by exact best replies, {limit_s:.0f} s at most.")
    try:
        game = small_game(run.env, limit_s=VISIT_FRACTION * limit_s)
    except NoExactValue:
        return None
    before = clock()
    values: dict[str, float] = {}
    mixture: dict[str, float] = {}
    for name in EXPORTS:
        if clock() - begun + (clock() - before) > limit_s:
            break
        before = clock()
        try:
            if name == EXACT:
                mixture, values[name] = _least_exploitable(run, game, go_on=lambda: clock() - begun < limit_s)
            else:
                values[name] = game.nash_conv(members_of(load_selection(run, run.choose(name))))
        except (UnknownPolicy, MissingSnapshot, CorruptSnapshot):
            continue
    exact = ExactExports(values, main_steps(run.state), mixture, deals=game.deals)
    folder = RunFolder.open(path)
    folder.storage.atomic_write_bytes(folder.exports_path, msgspec.json.encode(exact))
    return exact


def _least_exploitable(run: OpenRun, game: SmallGame, *, go_on: Callable[[], bool]) -> tuple[dict[str, float], float]:
    """Snapshot -> weight of the mixture, and its NashConv.

    Raises:
      UnknownPolicy: no trained snapshot has its weights.
    """
    policies: dict[str, PolicyFunction] = {}
    trained = [name for name in exported_snapshots(run.state) if run.state.snapshots[name].trained_steps > 0]
    places = np.linspace(0, len(trained) - 1, min(len(trained), MAX_MEMBERS)).round().astype(int).tolist()
    for name in [trained[place] for place in places]:
        try:
            ((_, policies[name]),) = members_of(load_selection(run, run.choose(name)))
        except (MissingSnapshot, CorruptSnapshot):
            continue
    if not policies:
        raise UnknownPolicy("no trained snapshot has its weights")
    found = least_exploitable(game.form, game.plans(list(policies.values())), go_on=go_on)
    weights = zip(policies, found.weights.tolist(), strict=True)
    return {name: weight for name, weight in weights if weight > 0.0}, found.nash_conv
