"""How a policy fares against what was made to beat it: each snapshot of its own past, and an exploiter trained afresh.

Mean strength hardly shows whether a league works; its worst case does. Here all policies sample their actions, as they
do in training, and games start from the empty board, so that an opponent may repeat whatever works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strength_runs import core_budget, finished_run, wall_limit

from league.core.records import SnapshotInfo
from league.core.roles import MAIN_ROLE
from league.eval.choose import Selection
from league.eval.load import OpenRun, load_from_run, load_selection, open_run
from league.eval.loaded import LoadedPolicy
from league.eval.match import play_match

EARLIER = 0.75
"""Snapshots up to this part of a player's training count as its past: later ones are nearly the same policy."""
EXPLOITER_SHARE = 0.2
"""Of the prey's budget that its exploiter gets."""
EXPLOITER_LEAGUE = (
    "league={{preset: exploit, guests: [{{policy: outside:prey, source: {source}, player: {player}, share: 1.0}}],"
    " lease_turns: 96}}"
)


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
    config: Path,
    *,
    prey: OpenRun,
    player: str,
    run_dir: Path,
    core_seconds: float,
    games: int,
    seed: int,
    training_seed: int,
) -> float:
    """What an exploiter, trained from random weights against `player` of `prey` alone, scores against it.

    Args:
      config: of the prey's run; network and learner are the same.
      player: a snapshot, or "average", of which both draw a member for each game.
      run_dir: of the exploiter's run. core_seconds: its budget. seed: of the match.
    """
    settings = [f"seed={training_seed}", "evaluation.bots=[]", core_budget(core_seconds)]
    settings.append(EXPLOITER_LEAGUE.format(source=prey.path, player=player))
    finished_run(config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(core_seconds))
    run = open_run(run_dir)
    exploiter = load_from_run(run, next(iter(run.state.players))).as_seat_policy()
    players = [exploiter, load_from_run(prey, player, seed=seed).as_seat_policy()]
    return play_match(prey.env, players, games=games, seed=seed, opening_plies=0).score().value
