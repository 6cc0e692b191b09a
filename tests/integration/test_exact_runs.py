"""One process, one seed: the same league to the last bit, whole or in pieces, and nothing lost wherever it dies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from league.core.state.events import LeaseFinished, PlayerReset, RunStarted, SnapshotAdded
from league.errors import MissingRun
from league.see.reports.verify import verify_run
from league.store.storage import FAULT_POINTS, Storage
from tests.league.store.store_faults import Died
from tests.league.tiny_runs import (
    ONE_PLAYER,
    checkpoints_of,
    events_of,
    go_on,
    head_of,
    history_of,
    start,
    state_of,
    tiny,
)

STEPS = 3_600
KINDS: dict[str, dict[str, Any]] = {
    "turns": tiny(),
    "memory": tiny(network={"hidden": [8], "core": "lstm", "core_size": 6}),
    "simultaneous": tiny(env={"id": "repeated_rock_paper_scissors"}),
}


@pytest.fixture(scope="module", params=list(KINDS))
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """(kind, folder) of a run that never stopped."""
    folder = tmp_path_factory.mktemp(request.param)
    start(folder, KINDS[request.param], env_steps=STEPS)
    return request.param, folder


def test_the_same_seed_gives_the_same_journal_and_the_same_weights(whole: tuple[str, Path]) -> None:
    kind, folder = whole
    start(folder, KINDS[kind], env_steps=STEPS, run="again")
    assert head_of(folder / "again") == head_of(folder / "run")
    assert checkpoints_of(folder / "again") == checkpoints_of(folder / "run")
    assert None not in checkpoints_of(folder / "run").values()
    snapshots = [{info.digest for info in state_of(folder / run).snapshots.values()} for run in ("run", "again")]
    assert snapshots[0] == snapshots[1]


@pytest.mark.parametrize("stop_at", [400, 1_900])
def test_twice_n_steps_equal_n_steps_a_stop_and_n_more(whole: tuple[str, Path], stop_at: int) -> None:
    kind, folder = whole
    run = f"stopped-{stop_at}"
    start(folder, KINDS[kind], env_steps=stop_at, run=run)
    go_on(folder / run, env_steps=STEPS - stop_at)
    assert sum(isinstance(event, RunStarted) for event in events_of(folder / run)) == 2
    assert history_of(folder / run) == history_of(folder / "run")
    assert checkpoints_of(folder / run) == checkpoints_of(folder / "run")


def test_snapshots_and_resets_are_part_of_what_repeats(whole: tuple[str, Path]) -> None:
    _, folder = whole
    happened = Counter(type(event) for event in events_of(folder / "run"))
    assert happened[SnapshotAdded] > 3
    assert happened[PlayerReset] > 0
    assert verify_run(folder / "run").problems == ()


def test_another_seed_gives_another_journal(tmp_path: Path) -> None:
    plain = tiny(league=ONE_PLAYER)
    start(tmp_path, plain, env_steps=400, run="one")
    start(tmp_path, {**plain, "seed": 6}, env_steps=400, run="two")
    assert head_of(tmp_path / "one")[1] != head_of(tmp_path / "two")[1]


class DieAt:
    """Ends the process, as far as a test can, at one passing of a fault point; nothing is written after that."""

    def __init__(self, point: str, *, passing: int) -> None:
        self._point = point
        self._left = passing
        self.dead = False

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            self.dead = self.dead or self._left == 0
        if self.dead:
            raise Died(point)


ELSEWHERE = (
    "link.before_link",
    "link.before_fsync",
    "remove.before_rmtree",
    "swap.before_exchange",
    "swap.before_fsync",
    "publish.before_rename",
    "sweep.before_remove",
)
"""Points that no start passes once it has a journal: those of copies, of the journal's making, of left-overs."""

LATER = {"make.before_mkdir": 9, "make.before_fsync": 9, "remove.before_unlink": 2, "remove.before_fsync": 2}
"""Point -> its first passing after the journal is made; 1 where none is given."""

PASSINGS = [
    (point, passing)
    for point in FAULT_POINTS
    if point not in ELSEWHERE
    for passing in ((2, 9) if point.startswith(("write.", "journal.")) else (LATER.get(point, 1),))
]


@pytest.mark.parametrize(("point", "passing"), PASSINGS)
def test_a_run_that_died_anywhere_continues_and_has_lost_nothing(
    point: str, passing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die = DieAt(point, passing=passing)
    plain = tiny(league=ONE_PLAYER, runtime={"checkpoint_updates": 2})
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "fault", lambda self, passed: die(passed))
        with pytest.raises(Died):
            start(tmp_path, plain, env_steps=900)
    before = events_of(tmp_path / "run")
    go_on(tmp_path / "run", env_steps=200)
    after = events_of(tmp_path / "run")
    assert after[: len(before)] == before
    assert verify_run(tmp_path / "run").problems == ()
    answered = [event.lease_id for event in after if isinstance(event, LeaseFinished)]
    assert len(set(answered)) == len(answered)


def test_a_start_that_died_before_it_was_a_run_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, die = tiny(league=ONE_PLAYER), DieAt("write.before_rename", passing=1)
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "fault", lambda self, passed: die(passed))
        with pytest.raises(Died):
            start(tmp_path, plain, env_steps=200)
    with pytest.raises(MissingRun, match=r"not a run folder"):
        go_on(tmp_path / "run", env_steps=200)
    start(tmp_path, plain, env_steps=200)
    assert verify_run(tmp_path / "run").problems == ()
