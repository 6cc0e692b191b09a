"""The runs of the two sides: their settings with reasons, what they cost, and exact values that are known."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.config.changes import differences
from league.config.commented import chosen_in
from league.config.run_config import RunConfig, config_plain
from league.errors import LeagueError, StorageError
from league.policies.auto_export import AUTO, auto_choice
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import NoExactValue
from league.policies.loading import OpenRun, load_from_run, open_run
from league.run.budget import ClockFile
from league.store.journaled_league import state_of_run
from league.store.run_folder import CLOCK_FILE, RunFolder

APART = ("seed", "name")
"""Settings in which runs of one side may differ."""
SMALL_TREES = ("kuhn_poker", "leduc_poker", "openspiel:kuhn_poker", "openspiel:leduc_poker")
"""Games whose exact values are computed here; elsewhere those that the run has stored are taken."""


@dataclass(frozen=True)
class ComparedRun:
    """One run of a side.

    Fields:
      path: its folder, as given. config: resolved. reasons: dotted key -> why `auto` chose it.
      run: open. costs: name -> amount, see `COSTS`.
      nash_conv: of its `auto` export; None where it is not known.
    """

    path: str
    config: RunConfig
    reasons: dict[str, str]
    run: OpenRun
    costs: dict[str, float]
    nash_conv: float | None


@dataclass(frozen=True)
class SettingDifference:
    """A setting that differs. left, right: as JSON; the reasons are empty where a user gave it."""

    key: str
    left: str
    right: str
    left_reason: str = ""
    right_reason: str = ""


COSTS = {
    "core_seconds": "core-s",
    "seconds": "s",
    "env_steps": "env steps",
    "decisions": "decisions",
    "trained_steps": "trained steps",
    "games": "games",
    "snapshots": "snapshots",
}
"""Name of a cost -> its unit."""


def open_side(written: str) -> tuple[ComparedRun, ...]:
    """The runs that "RUN1,RUN2,..." names.

    Raises:
      LeagueError: there is no such run, one is named twice, or it cannot be read.
    """
    names = [name for name in written.split(",") if name]
    if not names or len(set(names)) < len(names):
        raise LeagueError(f"{written!r} names no run, or one twice: give run folders, as RUN1 or RUN1,RUN2,RUN3.")
    return tuple(_opened(name) for name in names)


def _opened(name: str) -> ComparedRun:
    folder = RunFolder.open(Path(name))
    run = open_run(folder.path)
    assert run.config is not None, "the folder of a run"
    reasons = {key: reason for key, (_, reason) in chosen_in(folder.read_config()).items()}
    return ComparedRun(name, run.config, reasons, run, costs_of(folder), _nash_conv(run))


def costs_of(folder: RunFolder) -> dict[str, float]:
    """Name of a cost -> what a run has used."""
    state = state_of_run(folder)
    clock = ClockFile()
    with contextlib.suppress(FileNotFoundError, StorageError, msgspec.DecodeError):  # it costs only a number here
        clock = ClockFile.decode(folder.read_resume_file(CLOCK_FILE))
    return {
        "core_seconds": clock.spent.core_seconds,
        "seconds": clock.spent.seconds,
        "env_steps": float(state.totals.env_steps),
        "decisions": float(state.totals.decisions),
        "trained_steps": float(sum(player.trained_steps for player in state.players.values())),
        "games": float(state.totals.games),
        "snapshots": float(len(state.snapshots)),
    }


def _nash_conv(run: OpenRun) -> float | None:
    """NashConv of what `auto` stands for: stored, or computed where the tree is small."""
    name, _ = auto_choice(run.state, run.exact)
    if run.exact is not None and name in run.exact.values:
        return run.exact.values[name]
    if run.env.id not in SMALL_TREES:
        return None
    try:
        return nash_conv(run.env, members_of(load_from_run(run, AUTO)))
    except (NoExactValue, LeagueError):
        return None


def setting_differences(left: Sequence[ComparedRun], right: Sequence[ComparedRun]) -> tuple[SettingDifference, ...]:
    """Settings in which the first runs of the two sides differ."""
    one, two = left[0], right[0]
    return tuple(
        SettingDifference(
            change.key, change.old, change.new, one.reasons.get(change.key, ""), two.reasons.get(change.key, "")
        )
        for change in differences(config_plain(one.config), config_plain(two.config))
    )


def mixed_settings(side: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Keys, but for seed and name, in which runs of one side differ: then they differ by more than their seeds."""
    plain = [json.loads(json.dumps(config_plain(run.config))) for run in side]
    keys = {change.key for other in plain[1:] for change in differences(plain[0], other)}
    return tuple(sorted(keys - set(APART)))
