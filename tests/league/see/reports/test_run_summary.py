"""The end of a training: a failed evaluation, and the commands that are named."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from league.cli.options import games_line
from league.config.loading import load_config
from league.envs.protocol import EnvError
from league.errors import PREEMPTED
from league.run.budget import BUDGET, LIMIT, SIGNAL, Spent
from league.run.session import Ended
from league.see.reports.run_summary import evaluation_limit_s, next_commands, show_end
from league.store.run_folder import RunFolder
from tests.league.commands import league
from tests.league.tiny_runs import tiny, write_config


def names_of(commands: list[str]) -> list[str]:
    return [command.split()[1] for command in commands]


def test_a_failed_evaluation_is_one_sentence_of_a_training_that_ended_well(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EnvError("the game broke.")

    monkeypatch.setattr("league.see.reports.run_summary.chosen_bots", lambda *_: ("random",))
    monkeypatch.setattr("league.judge.matches.evaluation.evaluate_run", fail)
    show_end(made, "the budget is spent", spent=Spent(), limit_s=5.0, games_line=games_line)
    said = capsys.readouterr()
    assert "The last evaluation failed: the game broke." in said.err
    assert "To try next:" in said.out


def test_commands_named_at_the_end_work(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as it is printed; a game to watch is limited to one, and the person to play leaves at once."""
    shorter = {"watch": ["--games", "1", "--delay", "0"], "play": [], "ratings": []}
    commands = next_commands(
        load_config(made / "config.yaml"), shlex.quote(str(made)), spent=Spent(), has_policies=True
    )
    assert names_of(commands) == ["resume", "watch", "play", "eval", "ratings"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("quit\n"))
    for command in commands:
        if (name := command.split()[1]) in shorter:
            ran = league(*shlex.split(command)[1:], *shorter[name])
            assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("env_id", "has_policies", "names"),
    [
        ("gymnasium:Pendulum-v1", True, ["resume", "watch", "eval"]),
        ("tic_tac_toe", False, ["resume", "eval", "ratings"]),
    ],
)
def test_only_commands_that_work_for_the_run_are_named(
    env_id: str, has_policies: bool, names: list[str], tmp_path: Path
) -> None:
    config = load_config(write_config(tmp_path, tiny(env={"id": env_id})))
    assert names_of(next_commands(config, "run", spent=Spent(), has_policies=has_policies)) == names


def test_a_run_whose_budget_is_spent_is_not_resumed_without_a_larger_one(tmp_path: Path) -> None:
    """Of two limits the one that is used up; a limit of the command alone would train nothing."""
    config = load_config(write_config(tmp_path, tiny(budget={"seconds": 60.0, "core_seconds": 1e7})))
    for seconds, resume in ((60.5, "-s budget.seconds=120"), (59.5, "--for 180s")):
        commands = next_commands(config, "run", spent=Spent(seconds, 100.0, 10), has_policies=True)
        assert commands[0] == f"league resume run {resume}"


@pytest.mark.parametrize(("reason", "evaluates"), [(SIGNAL, False), (BUDGET, True), (LIMIT, True)])
def test_a_stop_that_was_asked_for_plays_nothing(
    reason: str, evaluates: bool, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, object] = {}
    ended = Ended(RunFolder(made), reason, Spent(), seconds=100.0)
    monkeypatch.setattr("league.run.launch.resume", lambda *_, **__: ended)
    monkeypatch.setattr("league.see.reports.run_summary.show_end", lambda *_, **given: shown.update(given))
    assert league("resume", made).code == (PREEMPTED if reason == SIGNAL else 0)
    assert (shown["limit_s"] is not None) == evaluates


def test_down_plays_only_where_it_is_asked_to(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Path] = []
    monkeypatch.setattr("league.cli.evaluation.evaluate", played.append)
    assert league("down", made).code == 0 and played == []
    assert league("down", made, "--eval").code == 0 and played == [made]


def test_a_command_that_trained_nothing_evaluates_nothing() -> None:
    assert evaluation_limit_s(0.0) is None
    assert (evaluation_limit_s(10.0), evaluation_limit_s(3600.0)) == (2.0, 60.0)
