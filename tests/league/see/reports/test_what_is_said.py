"""What a command says at its start and end: of presets that were replaced, and of what to try next."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.run import launch
from league.run.launch import preset_remarks
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, tiny, write_config

REPLACED = "league.players replaces the players of the preset psro"


def test_players_beside_a_preset_are_said_to_replace_its_own() -> None:
    assert preset_remarks(LeagueConfig(preset="psro", players=(PlayerConfig(),)))[0].startswith(REPLACED)
    assert preset_remarks(LeagueConfig(preset="psro")) == ()
    assert preset_remarks(LeagueConfig(players=(PlayerConfig(),))) == ()


def test_a_run_says_at_its_start_that_a_presets_players_were_replaced(tmp_path: Path) -> None:
    config = write_config(tmp_path, tiny(league={"preset": "psro", **ONE_PLAYER}))
    ran = league("train", config, "--run-dir", tmp_path / "run", "--env-steps", 50)
    assert ran.code == 0
    assert REPLACED in ran.out


def test_commands_to_try_next_are_written_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(tmp_path, tiny(league=ONE_PLAYER))
    monkeypatch.chdir(tmp_path)
    ran = league("train", config, "--run-dir", "runs of mine/one", "--env-steps", 50)
    assert "  league resume 'runs of mine/one' --for 180s\n" in ran.out
    monkeypatch.chdir("/")
    ran = league("resume", tmp_path / "runs of mine" / "one", "--env-steps", 50)
    assert str(tmp_path.relative_to("/")) in ran.out


def test_a_run_whose_folder_to_start_from_is_removed_ends_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, here = write_config(tmp_path, tiny(league=ONE_PLAYER)), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    trained = launch.run_session

    def remove(*given: object, **named: object) -> object:
        here.rmdir()
        return trained(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(launch, "run_session", remove)
    ran = league("train", config, "--run-dir", tmp_path / "run", "--env-steps", 50)
    assert ran.code == 0, ran.err
    assert "To try next:" in ran.out
    refused = league("status", tmp_path / "run")
    sentence = "league: the current folder has been removed: go to another one and give the command again.\n"
    assert (refused.code, refused.err) == (2, sentence)
    monkeypatch.chdir(tmp_path)
