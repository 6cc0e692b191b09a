"""How a policy fares against what was made to beat it: each snapshot of its own past, and an exploiter trained afresh.

Mean strength hardly shows whether a league works; its worst case does. Here all policies sample their actions, as they
do in training, and games start from the empty board, so that an opponent may repeat whatever works.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from run_to_end import run_to_end
from strength_runs import wall_limit

from league.core.records import SnapshotInfo
from league.core.roles import MAIN_ROLE
from league.eval.choose import Selection
from league.eval.load import OpenRun, load_selection
from league.eval.loaded import LoadedPolicy
from league.eval.match import play_match

EARLIER = 0.75
"""Snapshots up to this part of a player's training count as its past: later ones are nearly the same policy."""
EXPLOITER_SHARE = 0.2
"""Of the prey's budget that its exploiter gets."""


@dataclass(frozen=True)
class PastScore:
    """What the last policy scores against one of its past. early: whether that counts as past."""

    snapshot: str
    score: float
    early: bool


def main_snapshots(run: OpenRun) -> list[SnapshotInfo]:
    """Of the first main agent, oldest first."""
    mains = [snapshot for snapshot in run.state.snapshots.values() if snapshot.player and snapshot.role == MAIN_ROLE]
    return [snapshot for snapshot in mains if snapshot.player == mains[0].player]


def load_snapshot(run: OpenRun, snapshot: SnapshotInfo) -> LoadedPolicy:
    """One snapshot as a policy."""
    loaded = load_selection(run, Selection(snapshot.snapshot_id, ((1.0, snapshot),), ""))
    assert isinstance(loaded, LoadedPolicy)
    return loaded


def against_past(run: OpenRun, *, games: int, seed: int) -> list[PastScore]:
    """The last policy of the main agent against each of its earlier snapshots, `games` games each, seats paired."""
    *past, last = main_snapshots(run)
    player = load_snapshot(run, last).as_seat_policy()
    scores = []
    for snapshot in past:
        rival = load_snapshot(run, snapshot).as_seat_policy()
        result = play_match(run.env, [player, rival], games=games, seed=seed, opening_plies=0)
        early = snapshot.trained_steps <= EARLIER * last.trained_steps
        scores.append(PastScore(snapshot.snapshot_id, result.score().value, early))
    return scores


def exploiter_score(
    prey: OpenRun, *, player: str, run_dir: Path, core_seconds: float, games: int, seed: int, training_seed: int
) -> float:
    """What an exploiter, trained from random weights against `player` of `prey` alone, scores against it.

    Args:
      player: a snapshot, or "average", of which both draw a member for each game.
      run_dir: of the exploiter's run. core_seconds: its budget. seed: of the match.
    """
    report = run_dir.with_name(f"{run_dir.name}.match.json")
    command = [
        *(str(Path(sys.executable).with_name("league")), "exploit", str(prey.path), "--player", player),
        *("--run-dir", str(run_dir), "--core-seconds", f"{core_seconds:g}", "--games", str(games), "--seed", str(seed)),
        *("-s", f"seed={training_seed}", "-s", "wandb.mode=disabled", "--json", str(report)),
    ]
    run_to_end(command, log=run_dir.with_suffix(".log"), timeout_s=wall_limit(core_seconds))
    print(f"{run_dir.name}: exploited", flush=True)
    return float(json.loads(report.read_text())["match"]["score"]["value"])
