"""`league explain`: a setting by any form of its key, and no value for one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.errors import LeagueError
from league.see.reports.explain import explain_setting

GAME = Path("kuhn_poker")


@pytest.mark.parametrize("key", ["league.players[0].role", "league.players.0.role", " league.players.0.role "])
def test_a_place_of_a_list_is_written_with_dots_or_brackets(key: str) -> None:
    (row,) = explain_setting(GAME, key).settings
    assert (row.key, row.value) == ("league.players.0.role", "main_agent")
    assert row.meaning.startswith("main_agent, main_exploiter")


def test_a_number_of_a_list_has_the_meaning_of_the_list() -> None:
    (row,) = explain_setting(GAME, "network.hidden.1").settings
    assert row.value == 128
    assert row.origin == "auto: chosen with network.hidden"


def test_a_place_that_is_not_there_has_no_value() -> None:
    with pytest.raises(LeagueError, match=r"kuhn_poker has no league\.players\.7\.role"):
        explain_setting(GAME, "league.players.7.role")


def test_an_empty_mapping_is_a_value() -> None:
    (row,) = explain_setting(GAME, "env.kwargs").settings
    assert row.text().startswith("env.kwargs = {}")


def test_a_setting_of_some_players_own_stands_beside_that_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    own = "{role: main_agent, name: other, learner: {algorithm: {kind: ppo}}, network: {hidden: [9]}}"
    path.write_text(f"env: {{id: kuhn_poker}}\nleague: {{players: [{{role: main_agent}}, {own}]}}\n")
    rows = {row.key: row for row in explain_setting(path, "league.players[1]").settings}
    assert rows["league.players.1.learner.algorithm.kind"].value == "ppo"
    assert rows["league.players.1.learner.algorithm.kind"].origin.startswith("given for these players; the run has ")
    assert rows["league.players.1.network.hidden"].origin.startswith("given for these players; the run has [")
    assert not rows["league.players.1.count"].origin.startswith("given for these players")
