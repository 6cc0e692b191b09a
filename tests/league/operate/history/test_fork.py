"""A fork begins as another run's past, trains on from there, and leaves the other as it was."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from league.config.loading import parse_config
from league.core.state.commands import StartRun
from league.core.state.events import (
    EVENTS,
    CheckpointSaved,
    ConfigChanged,
    DirectiveDropped,
    DirectiveIssued,
    Event,
    LeagueForked,
    PlayerReset,
    RunStopped,
    SnapshotAdded,
)
from league.core.state.records import Directive
from league.errors import ConfigError, LeagueError, RunExists
from league.operate.history.event_ref import belongs_to_the_one_before
from league.operate.history.fork import fork_run
from league.see.reports.lineage import read_lineage
from league.see.reports.verify import verify_run
from league.store.journal import Journal
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from tests.league.commands import league
from tests.league.operate.history.fork_cases import contents
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

STEPS = 6_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped run of three players with snapshots, resets and two generations of restart states."""
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(runtime={"checkpoint_updates": 2}), env_steps=STEPS)
    return folder / "run"


@pytest.mark.parametrize(("where", "sentence"), [("", "is the run itself"), ("inside", "lie in one another")])
def test_a_fork_lies_outside_of_its_run(made: Path, where: str, sentence: str) -> None:
    before = contents(made)
    with pytest.raises(LeagueError, match=sentence):
        fork_run(made, made / where, at="latest")
    assert contents(made) == before


def events_after(path: Path, kind: type[Event]) -> list[int]:
    """Numbers of the events of a kind."""
    return [seq for seq, event in enumerate(events_of(path), start=1) if isinstance(event, kind)]


def middle_of(path: Path) -> int:
    """An event in the midst of the run, whose restart states are long gone."""
    return len(events_of(path)) // 2


def test_a_fork_begins_with_the_very_events_and_says_where_they_come_from(made: Path, tmp_path: Path) -> None:
    at = middle_of(made)
    report = fork_run(made, tmp_path / "new", at=str(at))
    events = events_of(tmp_path / "new")
    assert events[: report.event] == events_of(made)[: report.event]
    forked, *settings = events[report.event :]
    assert isinstance(forked, LeagueForked)
    assert len(settings) <= 1 and all(isinstance(event, ConfigChanged) for event in settings), "of a later remedy"
    assert (forked.run, forked.event, forked.chain) == (str(made), report.event, report.chain)
    assert verify_run(tmp_path / "new").problems == ()
    assert f"taken over from {made} at event {report.event}" in read_lineage(tmp_path / "new").text()


def test_the_source_is_only_read(made: Path, tmp_path: Path) -> None:
    before = contents(made)
    fork_run(made, tmp_path / "new", at="latest")
    go_on(tmp_path / "new", env_steps=300)
    assert contents(made) == before


def test_a_fork_from_the_last_stop_plays_on_as_the_source_itself(made: Path, tmp_path: Path) -> None:
    report = fork_run(made, tmp_path / "new", at="latest")
    assert report.same_games and not any(point.lost_steps for point in report.players)
    source = tmp_path / "source"
    shutil.copytree(made, source)
    for path in (source, tmp_path / "new"):
        go_on(path, env_steps=600)
    history = [event for event in history_of(tmp_path / "new") if not isinstance(event, LeagueForked)]
    assert history == history_of(source) and len(history) > len(history_of(made))
    assert checkpoints_of(tmp_path / "new") == checkpoints_of(source) != checkpoints_of(made)


def test_two_forks_from_the_same_event_become_the_same_league(made: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        report = fork_run(made, tmp_path / name, at=str(middle_of(made)))
        assert not report.same_games
        go_on(tmp_path / name, env_steps=600)
    assert head_of(tmp_path / "one") == head_of(tmp_path / "two")
    assert head_of(tmp_path / "one")[0] > report.event + 10
    assert checkpoints_of(tmp_path / "one") == checkpoints_of(tmp_path / "two")
    assert verify_run(tmp_path / "one").problems == ()
    assert state_of(tmp_path / "one").totals.env_steps >= report.env_steps + 600


def test_a_state_stored_by_another_version_is_passed_over(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "source")
    with Journal.open(tmp_path / "source" / "journal.db", events=EVENTS) as journal:
        journal.save_state(b'{"players": 3}')
    report = fork_run(tmp_path / "source", tmp_path / "new", at="latest")
    assert report.games == state_of(made).totals.games
    assert verify_run(tmp_path / "new").problems == ()


def test_a_fork_of_a_fork_holds_and_names_both(made: Path, tmp_path: Path) -> None:
    fork_run(made, tmp_path / "one", at=str(middle_of(made)))
    go_on(tmp_path / "one", env_steps=300)
    fork_run(tmp_path / "one", tmp_path / "two", at="latest")
    assert [fork.run for fork in read_lineage(tmp_path / "two").lineage.forks] == [str(made), str(tmp_path / "one")]
    assert verify_run(tmp_path / "two").problems == ()


def test_nothing_newer_than_the_event_is_in_the_fork(made: Path, tmp_path: Path) -> None:
    report = fork_run(made, tmp_path / "new", at=str(middle_of(made)))
    state = state_of(tmp_path / "new")
    stored = {path.name for path in (tmp_path / "new" / "snapshots").glob("*/*")}
    assert stored == {info.digest for info in state.snapshots.values()}
    assert len(state.snapshots) == report.snapshots < len(state_of(made).snapshots)
    assert not list((tmp_path / "new" / "checkpoints").rglob("*.ckpt"))
    assert not (tmp_path / "new" / "hosts.safetensors").exists()


def test_snapshots_are_shared_with_the_source_and_survive_it(made: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(made, source)
    fork_run(source, tmp_path / "new", at="latest")
    weights = next((tmp_path / "new" / "snapshots").rglob("weights.safetensors"))
    assert weights.stat().st_nlink == 2
    shutil.rmtree(source)
    assert verify_run(tmp_path / "new").problems == ()
    go_on(tmp_path / "new", env_steps=200)


def test_where_files_cannot_be_shared_they_are_copied(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object, **options: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    fork_run(made, tmp_path / "new", at="latest")
    assert next((tmp_path / "new" / "snapshots").rglob("weights.safetensors")).stat().st_nlink == 1
    assert verify_run(tmp_path / "new").problems == ()


def test_a_restart_state_that_is_gone_is_reported_loudly_with_the_steps_it_costs(made: Path, tmp_path: Path) -> None:
    ran = league("fork", made, tmp_path / "new", "--at", str(middle_of(made)))
    assert ran.code == 0
    report = fork_run(made, tmp_path / "again", at=str(middle_of(made)))
    fallen = [point for point in report.players if point.is_warning]
    assert fallen
    state = state_of(tmp_path / "new")
    for point in fallen:
        player = state.players[point.player]
        assert player.checkpoint is None and point.name == player.parent
        assert point.trained_steps + point.lost_steps == player.trained_steps
        assert f"WARNING: {point.player} continues from the weights of its snapshot {point.name}" in ran.out
        assert f"{point.lost_steps:,} of its {player.trained_steps:,} trained steps are lost" in ran.out


def test_a_learner_that_fell_back_to_a_snapshot_counts_on_from_its_steps(made: Path, tmp_path: Path) -> None:
    report = fork_run(made, tmp_path / "new", at=str(middle_of(made)))
    begun = {point.player: point.trained_steps for point in report.players}
    assert max(begun.values()) > 0
    go_on(tmp_path / "new", env_steps=1)
    for name, player in state_of(tmp_path / "new").players.items():
        assert begun[name] <= player.trained_steps < begun[name] + 200


def test_a_corrupt_restart_state_is_reported_and_not_taken_over(made: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(made, source)
    path = next((source / "checkpoints" / "main-0").glob(f"{checkpoints_of(source)['main-0']}.ckpt"))
    path.write_bytes(path.read_bytes()[:-3])
    report = fork_run(source, tmp_path / "new", at="latest")
    (main,) = (point for point in report.players if point.player == "main-0")
    assert "is corrupt" in main.reason and main.source == "snapshot"
    assert verify_run(tmp_path / "new").problems == ()


@pytest.mark.parametrize(
    "harm", [lambda path: path.write_bytes(path.read_bytes()[:-3]), lambda p: shutil.rmtree(p.parent)]
)
def test_a_fork_continues_without_a_missing_or_corrupt_snapshot_and_says_so(
    harm: Callable[[Path], object], made: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    shutil.copytree(made, source)
    path = next((source / "snapshots").rglob("weights.safetensors"))
    harm(path)
    report = fork_run(source, tmp_path / "new", at="latest")
    state = state_of(tmp_path / "new")
    gone = tuple(name for name, info in state.snapshots.items() if info.digest == path.parent.name)
    assert report.set_aside == gone != ()
    assert all(f"snapshot {name} cannot be read and is set aside" in report.text() for name in gone)
    assert not any(state.is_present(name) for name in gone)
    go_on(tmp_path / "new", env_steps=400)


def test_a_snapshot_by_name_is_the_event_that_added_it_with_the_reset_decided_with_it(
    made: Path, tmp_path: Path
) -> None:
    events = events_of(made)
    reset = next(
        event.directive
        for event in events
        if isinstance(event, DirectiveIssued) and event.directive.reason.startswith("after ")
    )
    name = reset.reason.removeprefix("after ")
    report = fork_run(made, tmp_path / "new", at=f"snapshot:{name}")
    assert isinstance(events[report.event - 1], DirectiveIssued)
    added = events[report.event - 2]
    assert isinstance(added, SnapshotAdded) and added.snapshot.snapshot_id == name
    assert list(state_of(tmp_path / "new").snapshots)[-1] == name
    assert reset.directive_id in state_of(tmp_path / "new").directives
    assert fork_run(made, tmp_path / "same", at=str(report.event - 1)).event == report.event
    go_on(tmp_path / "new", env_steps=1)
    assert any(isinstance(event, PlayerReset) for event in events_of(tmp_path / "new")[report.event :])


def test_a_league_is_never_forked_in_the_midst_of_its_founding(made: Path, tmp_path: Path) -> None:
    report = fork_run(made, tmp_path / "new", at="1")
    state = state_of(tmp_path / "new")
    assert (len(state.players), len(state.directives), report.event) == (3, 3, 7)
    assert [point.source for point in report.players] == ["initial"] * 3
    go_on(tmp_path / "new", env_steps=200)
    assert state_of(tmp_path / "new").totals.games > 0


@pytest.mark.parametrize(
    ("event", "belongs"),
    [
        (DirectiveIssued(Directive(1, "snapshot", "main-0", "gate")), True),
        (DirectiveIssued(Directive(1, "snapshot", "main-0", "initial")), True),
        (DirectiveIssued(Directive(1, "reset", "main-0", "after main-0-s1")), True),
        (DirectiveIssued(Directive(1, "transplant", "main-0", "elo_gap: ...")), True),
        (DirectiveIssued(Directive(1, "snapshot", "main-0", "retired")), True),
        (DirectiveIssued(Directive(1, "snapshot", "main-0", "final")), False),
        (DirectiveDropped(1, "the weights of main-0-s1 cannot be had"), True),
        (DirectiveDropped(1, "its donor is gone"), False),
        (RunStopped(1, "the limit"), False),
        (CheckpointSaved("main-0", "", 0, 0), False),
    ],
)
def test_what_the_league_itself_orders_belongs_to_the_event_that_caused_it(event: Event, belongs: bool) -> None:
    assert belongs_to_the_one_before(event) is belongs


@pytest.mark.parametrize("command", [("fork", "new", "--at", "latest"), ("rewind", "--at", "1", "--yes")])
def test_a_missing_run_is_one_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = league(command[0], tmp_path / "nowhere", *command[1:])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"league: {tmp_path / 'nowhere'} does not exist")


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("0", "there is no event 0"),
        ("99999", "the journal holds events 1 to"),
        ("-1", "is no point of a journal"),
        ("yesterday", "is no point of a journal"),
        ("snapshot:main-0-s99", "there is no snapshot 'main-0-s99' in the journal; the newest of"),
        ("snapshot:", "there is no snapshot ''"),
    ],
)
def test_a_point_that_is_none_is_one_sentence(made: Path, tmp_path: Path, at: str, words: str) -> None:
    ran = league("fork", made, tmp_path / "new", "--at", at)
    assert ran.code == 2
    assert words in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "new").exists()


def test_a_fork_takes_an_equal_game_although_the_file_of_the_old_one_was_moved(made: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text("from league.envs.games.tic_tac_toe import TicTacToe\n")
    fork_run(made, tmp_path / "run", at="latest", overrides=[f"env.id={old}:TicTacToe"])
    old.rename(new)
    fork_run(tmp_path / "run", tmp_path / "moved", at="latest", overrides=[f"env.id={new}:TicTacToe"])
    go_on(tmp_path / "moved", env_steps=200)
    with pytest.raises(ConfigError, match="env: seats, teams, observations, actions or the mask of connect_four"):
        fork_run(tmp_path / "run", tmp_path / "other", at="latest", overrides=["env.id=connect_four"])


def test_a_fork_may_change_how_it_learns_and_not_what_its_league_is(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        fork_run(
            made, tmp_path / "new", at="latest", overrides=["league.ratings.step_fraction=0.3", "network.hidden=[16]"]
        )
    text = str(caught.value)
    assert "league.ratings.step_fraction: the league in the journal was created with 0.1, not 0.3" in text
    assert "network: the" in text
    with pytest.raises(ConfigError, match="env: seats, teams, observations, actions or the mask of connect_four"):
        fork_run(made, tmp_path / "new", at="latest", overrides=["env.id=connect_four"])
    report = fork_run(
        made, tmp_path / "new", at="latest", overrides=["learner.learning_rate=0.01", "budget.env_steps=2_000_000"]
    )
    assert not report.same_games
    assert "learning_rate: 0.01" in (tmp_path / "new" / "config.yaml").read_text()
    go_on(tmp_path / "new", env_steps=200)
    assert fork_run(made, tmp_path / "longer", at="latest", overrides=["budget.env_steps=2_000_000"]).same_games


def test_a_teacher_comes_along_and_another_may_be_given(tmp_path: Path, made: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=150, run="teacher")
    plain = tiny(
        league=ONE_PLAYER,
        learner={"teacher_cost": 1.0, "teacher_cost_end": 1.0},
        teacher={"source": str(tmp_path / "teacher"), "player": "main-0-s0"},
    )
    start(tmp_path, plain, env_steps=150)
    shutil.rmtree(tmp_path / "teacher")
    assert fork_run(tmp_path / "run", tmp_path / "new", at="latest").same_games
    go_on(tmp_path / "new", env_steps=100)
    other = [f"teacher.source={made}", "teacher.player=main-0-s1"]
    assert not fork_run(tmp_path / "run", tmp_path / "other", at="latest", overrides=other).same_games
    noted = parse_config(RunFolder.open(tmp_path / "other").read_config(), source="other").teacher
    assert noted.digest == state_of(made).snapshots["main-0-s1"].digest
    go_on(tmp_path / "other", env_steps=100)


def test_a_fork_is_never_written_over_something(made: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    fork_run(made, tmp_path / "new", at="latest")
    before = contents(tmp_path / "new")
    with pytest.raises(RunExists, match="choose another folder"):
        fork_run(made, tmp_path / "new", at="latest")
    assert contents(tmp_path / "new") == before


def test_the_clock_of_a_fork_is_in_proportion_to_what_was_played(made: Path, tmp_path: Path) -> None:
    report = fork_run(made, tmp_path / "new", at=str(middle_of(made)))
    clocks = [json.loads((path / "clock.json").read_text()) for path in (made, tmp_path / "new")]
    part = report.env_steps / clocks[0]["spent"]["env_steps"]
    assert 0.0 < part < 1.0
    assert clocks[1]["spent"]["seconds"] == pytest.approx(part * clocks[0]["spent"]["seconds"])
    assert (clocks[1]["spent"]["env_steps"], clocks[1]["env_steps_target"]) == (report.env_steps, None)


def test_json_says_all_of_it(made: Path, tmp_path: Path) -> None:
    plain = league("fork", made, tmp_path / "new", "--at", "latest", "--json").json
    assert (plain["run"], plain["source"], plain["at"]) == (str(tmp_path / "new"), str(made), "latest")
    assert (plain["event"], plain["chain"]) == head_of(made)
    assert (plain["warnings"], plain["same_games"], len(plain["players"])) == (0, True, 3)


def test_a_run_at_work_can_be_forked(tmp_path: Path) -> None:
    """Its writer holds the lock and an open transaction's worth of events that are not durable yet."""
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=400)
    folder = RunFolder.open(tmp_path / "run")
    with folder.lock:
        league = JournaledLeague.open(folder.journal_path, at_least_seq=0, wall_time=lambda: 0.0)
        durable = league.head()
        league.execute(StartRun())
        report = fork_run(tmp_path / "run", tmp_path / "new", at="latest")
        league.commit()
        assert league.head().seq == durable.seq + 1
        league.close()
    assert (report.event, report.chain) == (durable.seq, durable.chain)
    assert verify_run(tmp_path / "new").problems == ()
