"""A run's configuration changes by a command that the journal keeps, and never by a silent edit of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.config.loading import parse_config
from league.core.state.events import ConfigChanged, SettingsChanged
from league.errors import ConfigError, LeagueError
from league.operate.history.fork import fork_run
from league.operate.history.rewind import rewind_run
from league.run.budget import Limits
from league.run.config_changes import config_problem
from league.run.launch import resume
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, events_of, go_on, start, state_of, tiny

NOW = Limits(env_steps=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=200)
    return folder / "run"


def edit(run: Path, old: str, new: str) -> None:
    path = run / "config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def config_events(run: Path) -> list[ConfigChanged]:
    return [event for event in events_of(run) if isinstance(event, ConfigChanged)]


def learning_rate(run: Path) -> float:
    return parse_config((run / "config.yaml").read_text(), source="run").learner.learning_rate


def test_the_journal_holds_the_configuration_of_the_start(run: Path) -> None:
    (event,) = config_events(run)
    assert (event.text, event.changes) == ((run / "config.yaml").read_text(), ())
    assert "@" in event.by
    assert config_problem(RunFolder.open(run), state_of(run)) is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("batch_rows: 16", "batch_rows: 32", "learner.batch_rows (16 -> 32): .*resume .* -s learner.batch_rows=32"),
        ("step_weight: 1.0", "step_weight: 7.0", r"league.players.0.step_weight \(1.0 -> 7.0\)"),
        ("seed: 5", "seed: 6", r"seed \(5 -> 6\)"),
        ("batch_rows: 16", "batch_rowz: 16", "unknown key, nearest is 'batch_rows'"),
    ],
)
def test_a_hand_edited_file_is_refused_with_the_keys_that_changed(run: Path, old: str, new: str, words: str) -> None:
    before = len(events_of(run))
    edit(run, old, new)
    with pytest.raises(LeagueError, match=words.replace("(16 -> 32)", r"\(16 -> 32\)")) as caught:
        resume(run, limits=NOW)
    assert "--restore-config" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(events_of(run)) == before
    assert config_problem(RunFolder.open(run), state_of(run)) is not None


def test_a_file_that_says_the_same_in_other_words_is_no_edit(run: Path) -> None:
    edit(run, "name: tiny", "# a remark\nname: tiny")
    go_on(run, env_steps=100)
    assert len(config_events(run)) == 1
    assert config_problem(RunFolder.open(run), state_of(run)) is None


def test_the_file_can_be_put_back(run: Path) -> None:
    edit(run, "batch_rows: 16", "batch_rows: what")
    resume(run, limits=NOW, restore_config=True)
    assert "batch_rows: 16" in (run / "config.yaml").read_text()
    assert len(config_events(run)) == 1


def test_a_change_by_command_is_journaled_with_who_and_what(run: Path) -> None:
    resume(run, limits=NOW, overrides=["learner.learning_rate=0.0025", "actors.num_envs=6"])
    event = config_events(run)[-1]
    assert [(change.key, change.new) for change in event.changes] == [
        ("actors.num_envs", "6"),
        ("learner.learning_rate", "0.0025"),
    ]
    assert learning_rate(run) == 0.0025
    assert event.text == (run / "config.yaml").read_text() == state_of(run).config_text
    go_on(run, env_steps=100)
    assert len(config_events(run)) == 2


def test_a_setting_of_the_league_that_may_change_live_may_change_at_a_resume_and_holds(run: Path) -> None:
    resume(run, limits=NOW, overrides=["league.players.0.step_weight=7", "learner.learning_rate=0.0025"])
    (event,) = [event for event in events_of(run) if isinstance(event, SettingsChanged)]
    assert [change.key for change in event.changes] == ["league.players.0.step_weight", "learner.learning_rate"]
    state = state_of(run)
    assert state.config is not None and state.config.players[0].step_weight == 7.0
    assert state.fair_share.step_weight.values[0] == 7.0
    assert event.text == (run / "config.yaml").read_text()
    assert verify_run(run).problems == ()


def test_a_change_that_was_made_by_hand_may_be_confirmed_by_command(run: Path) -> None:
    edit(run, "batch_rows: 16", "batch_rows: 32")
    resume(run, limits=NOW, overrides=["learner.batch_rows=32"])
    assert [change.key for change in config_events(run)[-1].changes] == ["learner.batch_rows"]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "league.payoff.prior_games=7",
            "league.payoff.prior_games: cannot change from 2.0 to 7.0 .* `league train` creates",
        ),
        ("env.id=connect_four", "env.id: cannot change .* made for this game"),
        ("network.hidden=[8]", "network.hidden.0: cannot change from 12 to 8"),
        ("seed=8", "seed: cannot change from 5 to 8"),
        ("game.information=hidden", "game.information: cannot change from null to"),
        ("learner.lerning_rate=1", "learner.lerning_rate: unknown key, nearest is 'learning_rate'"),
    ],
)
def test_what_may_not_change_is_said_with_its_reason(run: Path, override: str, words: str) -> None:
    before = len(events_of(run))
    with pytest.raises(ConfigError, match=words):
        resume(run, limits=NOW, overrides=[override])
    assert len(events_of(run)) == before
    go_on(run, env_steps=100)


def test_a_crash_between_journal_and_file_is_healed(run: Path) -> None:
    old = (run / "config.yaml").read_text()
    resume(run, limits=NOW, overrides=["learner.learning_rate=0.0025"])
    (run / "config.yaml").write_text(old)
    go_on(run, env_steps=100)
    assert learning_rate(run) == 0.0025


def test_a_fork_with_other_values_notes_them_and_a_rewind_brings_the_old_ones_back(run: Path, tmp_path: Path) -> None:
    end = len(events_of(run))
    fork_run(run, tmp_path / "new", at="latest", overrides=["learner.learning_rate=0.0025"])
    assert [change.key for change in config_events(tmp_path / "new")[-1].changes] == ["learner.learning_rate"]
    go_on(tmp_path / "new", env_steps=100)
    resume(run, limits=NOW, overrides=["learner.learning_rate=0.0025"])
    rewind_run(run, at=str(end), confirm=lambda plan: True)
    assert learning_rate(run) != 0.0025
    go_on(run, env_steps=100)


def test_verify_finds_a_configuration_that_the_journal_does_not_hold(run: Path) -> None:
    assert verify_run(run).problems == ()
    edit(run, "batch_rows: 16", "batch_rows: 32")
    (problem,) = verify_run(run).problems
    assert problem.startswith(f"{run / 'config.yaml'} is not the configuration in the journal")
    resume(run, limits=NOW, overrides=["learner.batch_rows=32"])
    assert verify_run(run).problems == ()
