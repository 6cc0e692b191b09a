"""Operations on a running league: the daemon carries them out between two turns, journal and config.yaml agree."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from league.config.loading import parse_config
from league.core.state.events import EVENTS, DirectiveIssued, LeaseGranted, PlayerReset, SettingsChanged, SnapshotAdded
from league.errors import LeagueError
from league.hosts.protocol import InstallPlayer, Reconfigure
from league.operate.history.event_ref import point_at
from league.policies.select import choose
from league.run.budget import Limits
from league.run.config_changes import config_problem, noted_config, settled_config
from league.run.operations.catalogue import OPERATIONS
from league.run.operations.operator import MAX_WAITING, Done
from league.run.operations.plans import OperationRefused
from league.store.journal_reader import JournalReader
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, state_of

Request = tuple[str, Mapping[str, object]]


def run_with(bench: Bench, asked: Mapping[int, Request], *, env_steps: int = 2_000) -> dict[int, Future[Done]]:
    """Run, asking for an operation at some polls; poll -> its answer."""
    answers: dict[int, Future[Done]] = {}

    def ask(number: int) -> None:
        if number in asked:
            name, arguments = asked[number]
            answers[number] = bench.operator.submit(name, arguments, by="me@here", reason="a test")

    bench.runtime.on_poll = ask
    bench.run(env_steps=env_steps)
    return answers


def changes_of(bench: Bench) -> list[SettingsChanged]:
    return [event for event in events_of(bench.folder.path) if isinstance(event, SettingsChanged)]


def test_a_change_is_in_the_journal_with_who_and_why_and_the_file_follows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answers = run_with(bench, {6: ("set", {"key": "learner.learning_rate", "value": 0.0001})})
    done = answers[6].result(timeout=0)
    (event,) = changes_of(bench)
    assert (event.by, event.reason) == ("me@here", "a test")
    assert [(change.key, change.new) for change in event.changes] == [("learner.learning_rate", "0.0001")]
    assert events_of(bench.folder.path)[done.first_event - 1] == event
    assert "learner.learning_rate" in done.words
    assert parse_config(bench.folder.read_config(), source="run").learner.learning_rate == 0.0001
    assert config_problem(bench.folder, bench.league.state) is None
    told = {task.player: task.learner.learning_rate for task in bench.runtime.of(Reconfigure)}
    assert told == dict.fromkeys(bench.league.state.players, 0.0001)


def test_learners_that_are_installed_later_have_the_settings_of_then(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")

    def lose(number: int) -> None:
        if number == 5:
            bench.operator.submit("set", {"key": "learner.entropy_cost", "value": 0.07}, by="me")
        if number == 12:
            bench.runtime.lose("learner-0", "learner_host")

    bench.runtime.on_poll = lose
    bench.run(env_steps=2_000)
    installed = [task.learner.entropy_cost for task in bench.runtime.of(InstallPlayer)]
    players = len(bench.league.state.players)
    assert set(installed[:players]) == {bench.config.learner.entropy_cost}
    assert set(installed[players:]) == {0.07}


def test_one_players_value_reaches_its_learner_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    run_with(bench, {6: ("set", {"key": "players.main-exploiter-0.learning_rate", "value": 0.5})})
    (task,) = bench.runtime.of(Reconfigure)
    assert isinstance(task, Reconfigure)
    assert task.player == "main-exploiter-0"
    assert task.learner.learning_rate == 0.5 * bench.config.learner.learning_rate
    assert task.learner.entropy_cost == bench.config.learner.entropy_cost


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("set", {"key": "learner.batch_rows", "value": 32}, "hosts are built with it; stop the run"),
        ("set", {"key": "env.id", "value": "connect_four"}, "made for this game"),
        ("set", {"key": "league.players.main.role", "value": "x"}, "league"),
        ("set", {"key": "league.players.nobody.step_weight", "value": 2}, "no group of players 'nobody'"),
        ("set", {"key": "league.players.main.step_weight", "value": 0}, "step_weight must be positive"),
        ("set", {"key": "learner.learning_rates", "value": 1}, "nearest is"),
        ("set", {"key": "learner.learning_rate", "value": "fast"}, "learner.learning_rate"),
        ("set", {"key": "players.main-0.paused", "value": False}, "is false already"),
        ("set", {"key": "budget.env_steps"}, "needs value"),
        ("set", {"key": "adapt", "value": True, "loud": 1}, "no argument 'loud'"),
        ("extend", {"limit": "seconds", "amount": "long"}, "must be of type number"),
        ("extend", {"limit": "seconds", "amount": 5}, "no limit of this run"),
        ("extend", {"limit": "games", "amount": 5}, "limit is one of"),
        ("pause", {"what": "everything"}, "no player or role 'everything'"),
        ("unpause", {"what": "training"}, "^training is not paused$"),
        ("unpause", {"what": "main-0"}, "main-0 is not paused$"),
        ("undo", {"event": 1}, "has no inverse"),
        ("undo", {"event": 10**9}, "has no event"),
        ("add", {"role": "wizard"}, "wizard"),
        ("add", {"role": "main_agent", "step_weight": 2.0}, "step_weight of their group"),
        ("add", {"role": "main_agent", "parent": "nobody-s1"}, "no snapshot 'nobody-s1'"),
        ("reset", {"player": "nobody"}, "no player or role"),
        ("resett", {}, "did you mean reset"),
        ("tag", {"snapshot": "mixture", "name": "x"}, "name one of them, as main-0-s0"),
        ("tag", {"snapshot": "main-0-s0", "name": "../x"}, "can be no tag"),
        ("tag", {"snapshot": "main-0-s0", "name": "best"}, "best names a policy in every run"),
        ("set", {"key": "tags.auto", "value": "main-0-s0"}, "auto names a policy in every run"),
        ("untag", {"name": "x"}, "no tag 'x'"),
        ("unpin", {"snapshot": "main-0-s0"}, "not pinned already"),
    ],
)
def test_a_refusal_is_a_sentence_with_the_rule_and_changes_nothing(
    tmp_path: Path, name: str, arguments: Mapping[str, object], words: str
) -> None:
    bench = Bench(tmp_path / "run")
    answers = run_with(bench, {8: (name, arguments)}, env_steps=900)
    with pytest.raises(OperationRefused, match=words) as caught:
        answers[8].result(timeout=0)
    assert "\n" not in str(caught.value)
    assert changes_of(bench) == []
    assert bench.operator.config == bench.config


def test_a_change_is_undone_and_only_while_nothing_changed_it_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", adapt=False)
    answers: dict[str, Future[Done]] = {}

    def ask(name: str, **arguments: object) -> Callable[[], None]:
        def submit() -> None:
            answers[f"{name} {len(answers)}"] = bench.operator.submit(name, arguments, by="me")

        return submit

    def undo_first() -> None:
        number = next(iter(answers.values())).result(timeout=0).first_event
        ask("undo", event=number)()

    plan = {
        6: ask("set", key="league.players.main.gate.timeout_steps", value=77_000),
        9: ask("pause", what="main_exploiter"),
        12: undo_first,
        15: undo_first,
    }
    bench.runtime.on_poll = lambda number: plan.get(number, lambda: None)()
    bench.run(env_steps=2_500)
    first, _, second, third = answers.values()
    assert second.result(timeout=0).words.startswith(f"takes back event {first.result(timeout=0).first_event}")
    with pytest.raises(OperationRefused, match="was changed again"):
        third.result(timeout=0)
    events = changes_of(bench)
    assert [event.undoes for event in events] == [0, 0, first.result(timeout=0).first_event]
    assert bench.league.state.config == state_of(bench.folder.path).config
    assert (
        bench.league.state.config_of("main-0").gate.timeout_steps == bench.config.league.players[0].gate.timeout_steps
    )
    assert bench.league.state.players["main-exploiter-0"].paused


def test_a_tag_names_a_snapshot_everywhere_and_is_undone(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answers: dict[int, Future[Done]] = {}
    found: list[tuple[str, ...]] = []

    def ask(number: int) -> None:
        if number == 8:
            answers[8] = bench.operator.submit("tag", {"snapshot": "main-0-s0", "name": "release-3"}, by="me")
        if number == 10:
            answers[10] = bench.operator.submit("add", {"role": "main_exploiter", "parent": "release-3"}, by="me")
            found.append(tuple(info.snapshot_id for _, info in choose(bench.league.state, "release-3").members))
        if number == 12:
            first = answers[8].result(timeout=0).first_event
            answers[12] = bench.operator.submit("undo", {"event": first}, by="me")
        if number == 14:
            bench.operator.submit("tag", {"snapshot": "main-0-s0", "name": "release-4"}, by="me")

    bench.runtime.on_poll = ask
    bench.run(env_steps=2_000)
    assert answers[8].result(timeout=0).words == "tags main-0-s0 as release-3"
    assert found == [("main-0-s0",)]
    assert answers[10].result(timeout=0).words.endswith("from main-0-s0")
    assert answers[12].result(timeout=0).words.startswith("takes back event")
    assert state_of(bench.folder.path).tags == {"release-4": "main-0-s0"}
    with JournalReader.open_readonly(bench.folder.journal_path, events=EVENTS) as journal:
        assert point_at(journal, "snapshot:release-4") == point_at(journal, "snapshot:main-0-s0")
        with pytest.raises(LeagueError, match="no snapshot 'release-3'"):
            point_at(journal, "snapshot:release-3")


def test_the_budget_is_extended_while_the_run_goes(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000})
    answers = {}

    def ask(number: int) -> None:
        if number == 6:
            answers[6] = bench.operator.submit("extend", {"limit": "env_steps", "amount": 600}, by="me")

    bench.runtime.on_poll = ask
    bench.daemon(Limits()).run()
    assert "budget.env_steps 1000 -> 1600" in answers[6].result(timeout=0).words
    assert bench.league.state.totals.env_steps >= 1_600


def test_a_player_joins_a_running_league_and_the_file_counts_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answers = run_with(
        bench,
        {8: ("add", {"role": "main_exploiter", "parent": "main-0-s0"}), 14: ("add", {"role": "league_exploiter"})},
    )
    assert answers[8].result(timeout=0).words == "adds a player of main_exploiter from main-0-s0"
    assert answers[14].result(timeout=0)
    state = state_of(bench.folder.path)
    assert {"main-exploiter-1", "league-exploiter-0"} < set(state.players)
    assert state.players["main-exploiter-1"].initial == "main-exploiter-1-s0"
    groups = parse_config(bench.folder.read_config(), source="run").league.players
    assert state.config is not None
    assert [group.count for group in groups] == [group.count for group in state.config.players]
    granted = [event.lease.home for event in events_of(bench.folder.path) if isinstance(event, LeaseGranted)]
    assert {"main-exploiter-1", "league-exploiter-0"} < set(granted)
    again = Bench(tmp_path / "run")
    again.run(env_steps=500)
    assert {task.player for task in again.runtime.of(InstallPlayer)} == set(state.players)


def test_after_a_crash_config_yaml_is_one_change_behind_the_journal_and_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.league.execute(noted_config(bench.folder.read_config()))
    for seconds in (10.0, 20.0, 30.0):
        bench.operator.submit("set", {"key": "runtime.snapshot_seconds", "value": seconds}, by="me@here")

    def died(text: str) -> None:
        raise KeyboardInterrupt

    bench.folder.write_config = died  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.run(env_steps=500)
    bench.league.close()
    again = Bench(tmp_path / "run")
    assert settled_config(again.folder, again.league).runtime.snapshot_seconds == 10.0
    assert run_with(again, {3: ("set", {"key": "runtime.snapshot_seconds", "value": 40.0})})[3].result(timeout=0)


def test_freezing_snapshots_and_pauses_and_a_reset_freezes_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    asked = {8: ("freeze", {"player": "main-exploiter-0"}), 14: ("reset", {"player": "main-0"}), 18: ("snapshot", {})}
    answers = run_with(bench, asked, env_steps=4_000)
    assert all(answer.result(timeout=0) for answer in answers.values())
    assert not answers[18].result(timeout=0).undoable
    taken = [event.snapshot for event in events_of(bench.folder.path) if isinstance(event, SnapshotAdded)]
    assert ("main-exploiter-0", "manual") in [(snapshot.player, snapshot.reason) for snapshot in taken]
    kinds = [type(event) for event in events_of(bench.folder.path) if isinstance(event, SnapshotAdded | PlayerReset)]
    assert PlayerReset in kinds
    assert bench.league.state.players["main-exploiter-0"].paused


def test_while_training_is_paused_no_lease_is_granted_and_no_time_is_spent(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"seconds": 60.0}, league={"ratings": {"step_fraction": 0.0}})
    plan = {
        20: lambda: bench.operator.submit("pause", {"what": "training"}, by="me"),
        220: lambda: bench.operator.submit("unpause", {"what": "training"}, by="me"),
    }
    granted: list[int] = []

    def note(number: int) -> None:
        plan.get(number, lambda: None)()
        granted.append(bench.league.state.next_lease_id)

    bench.runtime.on_poll = note
    bench.daemon(Limits()).run()
    assert len(set(granted[30:215])) == 1
    assert bench.runtime.now >= 260.0
    assert bench.seen[215].spent.seconds - bench.seen[30].spent.seconds <= 1.0


def test_a_flood_of_requests_is_refused_and_a_run_that_ends_answers_all(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answers = [bench.operator.submit("pause", {"what": "rating"}, by="me") for _ in range(MAX_WAITING + 1)]
    with pytest.raises(OperationRefused, match="requests wait already"):
        answers[-1].result(timeout=0)
    bench.run(env_steps=100)
    assert all(answer.done() for answer in answers)
    assert answers[0].result(timeout=0).words == "pauses rating"
    with pytest.raises(OperationRefused, match="the run is ending"):
        bench.operator.submit("pause", {"what": "rating"}, by="me").result(timeout=0)


def test_a_request_that_comes_just_as_the_run_ends_is_refused_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")

    class Ending(queue.Queue[Any]):
        """The run ends between the look of a request and its place in the queue."""

        def put_nowait(self, item: Any) -> None:
            bench.operator.close()
            super().put_nowait(item)

    bench.operator._waiting = Ending()
    with pytest.raises(OperationRefused, match="the run is ending"):
        bench.operator.submit("pause", {"what": "rating"}, by="me").result(timeout=0)


def test_a_request_whose_journal_fails_is_answered_when_the_run_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    answer = bench.operator.submit("pause", {"what": "rating"}, by="me")
    bench.operator.carry_out(bench.league.execute_all)
    bench.operator.close()  # the commit has failed, and with it the daemon
    with pytest.raises(OperationRefused, match="before this was durable"):
        answer.result(timeout=0)


def test_every_operation_says_what_it_is_and_takes_described_arguments() -> None:
    for name, operation in OPERATIONS.items():
        assert operation.name == name and operation.what.endswith(".")
        assert all(argument.what and not argument.what.endswith(".") for argument in operation.arguments)
    assert DirectiveIssued.__name__ not in OPERATIONS
