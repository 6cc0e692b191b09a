"""Scores of a policy against each snapshot of its own past.

Mean strength hardly shows whether a league works; its worst case does. Here all policies sample their actions, as they
do in training. Games start from the empty board, so that an opponent may repeat whatever works.
"""

from __future__ import annotations

from dataclasses import dataclass

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.state.records import SnapshotInfo
from league.judge.matches.match import Match
from league.policies.loaded_policy import LoadedPolicy
from league.policies.loading import OpenRun, load_selection
from league.policies.select import Selection

EARLIER = 0.75
"""Snapshots up to this part of a player's training count as its past: later ones are nearly the same policy."""


@dataclass(frozen=True)
class PastScore:
    """Score of the last policy against a snapshot of its past. early: True if the snapshot counts as past."""

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
        opponent = load_snapshot(run, snapshot).as_seat_policy()
        result = Match(run.env, [player, opponent], seed=seed, opening_plies=0).play(games)
        early = snapshot.trained_steps <= EARLIER * last.trained_steps
        scores.append(PastScore(snapshot.snapshot_id, result.score().value, early))
    return scores
