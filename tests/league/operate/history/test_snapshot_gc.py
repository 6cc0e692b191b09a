"""`league gc`: what goes and why the others stay, in a stopped run and in a live one; a plan changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import league
from league.core.state.events import SnapshotRetired
from league.errors import MissingSnapshot, RunInUse
from league.operate.history.snapshot_gc import GcReport, collect_stopped, plan_gc
from league.policies.loading import frozen_copies, open_run
from league.run.operations.plans import OperationRefused
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage
from tests.league.operate.history.fork_cases import contents
from tests.league.run.fake_runtime import Bench
from tests.league.store.store_faults import DieAt, Died
from tests.league.tiny_runs import events_of, go_on, start, state_of, tiny

GATE = {"min_steps": 60, "timeout_steps": 60, "test": {"min_games": 4}}
ONE = {"players": [{"role": "main_agent", "gate": GATE}]}
KEEP, KEEP_OF_FAKES = 16, 11


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE), env_steps=4_400)
    return folder / "run"


def stored(run: Path) -> set[str]:
    return set(LocalSnapshotStore(run / "snapshots").digests())


def digests(run: Path, names: list[str]) -> set[str]:
    return {state_of(run).snapshots[name].digest for name in names}


def names_of(report: GcReport) -> list[str]:
    return [found.snapshot for found in report.retired]


def test_a_plan_says_what_goes_and_why_the_others_stay_and_changes_nothing(run: Path) -> None:
    before = contents(run)
    report = plan_gc(run, keep=KEEP)
    assert contents(run) == before and not report.done
    state = state_of(run)
    assert len(report.kept) == KEEP and len(report.retired) == len(state.snapshots) - KEEP > 1
    reasons = {found.snapshot: found.reason for found in report.kept}
    newest = f"main-0-s{state.players['main-0'].num_snapshots - 1}"
    assert reasons["main-0-s0"] == "main-0 starts again from it"
    assert reasons[newest] == "main-0 descends from it" and "newest of main-0" in " ".join(reasons.values())
    assert report.freed_bytes == sum(found.num_bytes for found in report.retired) > 0
    assert f"go    {names_of(report)[0]}" in report.text() and "would go" in report.text()
    nothing = plan_gc(run, keep=None)
    assert not nothing.retired and "nothing goes" in nothing.text()
    assert all(f"{found.snapshot:<28} {found.reason}" in nothing.text() for found in nothing.kept)


def test_a_stopped_run_loses_the_weights_keeps_the_records_and_trains_on(run: Path) -> None:
    planned = plan_gc(run, keep=KEEP)
    gone = digests(run, names_of(planned))
    report = collect_stopped(run, keep=KEEP, by="me@here", reason="room")
    assert names_of(report) == names_of(planned) and report.done
    state = state_of(run)
    assert not gone & stored(run) and all(not state.is_present(name) for name in names_of(report))
    events = [event for event in events_of(run) if isinstance(event, SnapshotRetired)]
    assert all(event.reason.endswith("by me@here: room") for event in events) and len(events) == len(report.retired)
    assert verify_run(run).problems == ()
    again = collect_stopped(run, keep=KEEP, by="me@here", reason="")
    assert not again.retired and not again.waiting
    go_on(run, env_steps=200)
    assert verify_run(run).problems == ()


def test_a_kill_in_a_collection_leaves_a_run_that_holds_and_the_next_one_ends_it(run: Path) -> None:
    going = names_of(plan_gc(run, keep=KEEP))
    deaths = 0
    while True:
        try:
            collect_stopped(run, keep=KEEP, by="me", reason="", storage=Storage(hook=DieAt(deaths)))
            break
        except Died:
            deaths += 1
        assert verify_run(run).problems == ()
        assert all(state_of(run).is_present(name) or name in going for name in state_of(run).snapshots)
    assert deaths > 3
    assert not digests(run, going) & stored(run)
    assert len([event for event in events_of(run) if isinstance(event, SnapshotRetired)]) == len(going)


def test_every_reader_says_in_a_sentence_that_the_weights_are_gone(run: Path) -> None:
    report = collect_stopped(run, keep=KEEP, by="me@here", reason="")
    name = names_of(report)[0]
    opened = open_run(run)
    for read in (
        lambda: league.load_policy(run, name),
        lambda: league.load_policy(run, f"{name}*2+main-0-s0"),
        lambda: frozen_copies(opened, opened.choose(name)),
    ):
        with pytest.raises(MissingSnapshot, match=f"weights of {name} cannot be had: retired to keep.*A backup may"):
            read()
    assert league.load_policy(run) and league.load_policy(run, "average")


def test_what_is_tagged_or_pinned_stays_and_a_shared_file_is_not_removed(tmp_path: Path) -> None:
    """The fake learner's weights never change, so that all its snapshots are one file."""
    bench = Bench(tmp_path / "run", league=ONE, adapt=False)
    bench.runtime.on_poll = lambda number: (
        bench.operator.submit("pin", {"snapshot": "main-0-s3"}, by="me") if number == 12 else None
    )
    bench.run(env_steps=2_500)
    bench.league.close()
    report = collect_stopped(tmp_path / "run", keep=KEEP_OF_FAKES, by="me", reason="")
    assert report.retired and report.freed_bytes == 0 and len(stored(tmp_path / "run")) == 1
    assert {found.snapshot: found.reason for found in report.kept}["main-0-s3"] == "tagged or pinned"


def test_a_live_run_removes_them_by_an_operation_when_games_in_flight_do_without_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE, adapt=False)
    bench.runtime.varied = True
    asked, left = [], list[int]()

    def ask(number: int) -> None:
        if number == 20:
            with bench.folder.lock, pytest.raises(RunInUse):
                collect_stopped(bench.folder.path, keep=KEEP_OF_FAKES, by="me", reason="")
            asked.append(bench.operator.submit("gc", {"keep": KEEP_OF_FAKES}, by="me", reason="room"))
            asked.append(bench.operator.submit("gc", {"keep": 0}, by="me"))
        if number == 22:
            left.append(len(bench.league.state.population.snapshots()))

    bench.runtime.on_poll = ask
    bench.run(env_steps=2_500)
    done, refused = asked[0].result(timeout=0), asked[1].exception(timeout=0)
    assert "removes the weights of" in done.words and isinstance(refused, OperationRefused)
    assert "0 may keep theirs" in str(refused)
    assert KEEP_OF_FAKES <= left[0] <= KEEP_OF_FAKES + 1
    retired = [event for event in events_of(bench.folder.path) if isinstance(event, SnapshotRetired)]
    state = bench.league.state
    assert retired and not {state.snapshots[event.snapshot].digest for event in retired} & stored(bench.folder.path)
    assert plan_gc(bench.folder.path, keep=None).waiting == () and RunFolder.open(bench.folder.path)
