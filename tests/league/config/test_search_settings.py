"""Settings with which nothing can be searched: one sentence each, with the full key, all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from league.config.loading import load_config
from league.config.plugin_checks import require_working_names
from league.envs.registry import spec_of
from league.errors import ConfigError

SEARCH = {"kind": "search", "simulations": 8}


def problems_of(folder: Path, **sections: object) -> str:
    """What loading, or else the trial before a run, says."""
    path = folder / "config.yaml"
    plain = {"env": {"id": "tic_tac_toe"}, "actors": {"acting": SEARCH}, **sections}
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(ConfigError) as caught:
        config = load_config(path)
        require_working_names(config, spec_of(config.env), source=str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (
            {"env": {"id": "kuhn_poker"}},
            "actors.acting: search tries moves out on copies, which would show a seat what",
        ),
        ({"env": {"id": "rock_paper_scissors"}}, "actors.acting: search needs one seat to act at a time"),
        (
            {"env": {"id": "tic_tac_toe", "workers": 4}},
            "actors.acting: search plays copies of the games, and env.workers keeps these in 4 child processes, where "
            "they cannot be copied; set env.workers: 0",
        ),
        ({"actors": {"acting": SEARCH, "inference": "central"}}, "actors.acting is search; use inference: local"),
        ({"network": {"core": "lstm"}}, "actors.acting: search tries many games, and network.core lstm remembers one"),
        ({"actors": {"acting": {**SEARCH, "simulations": 0}}}, "actors.acting.simulations: 0 is not in [1, 100000]"),
        ({"actors": {"acting": {**SEARCH, "noise": 1.5}}}, "actors.acting.noise: 1.5 is not in [0, 1]"),
        ({"actors": {"acting": {**SEARCH, "simulation": 8}}}, "actors.acting.simulation: unknown key"),
        (
            {"actors": {}, "learner": {"algorithm": {"kind": "search_targets"}}},
            "actors.acting: sample does not record search_policy and search_value, from which the algorithm "
            "search_targets learns; set actors.acting: {kind: search}",
        ),
        (
            {"league": {"players": [{"matchmaker": {"kind": "generator"}}]}},
            "actors.acting_frozen: sample would make the games of main, whose matchmaker is generator ",
        ),
        (
            {"league": {"players": [{"matchmaker": {"kind": "generator"}}], "ratings": {"step_fraction": 0.0}}},
            "league.ratings.step_fraction: 0 leaves no games that judge the candidates of main",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_named(tmp_path: Path, sections: dict[str, object], sentence: str) -> None:
    assert sentence in problems_of(tmp_path, **sections)


def test_the_error_on_a_game_of_the_user_that_cannot_be_copied_says_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from league.envs.games.tic_tac_toe import TicTacToe\n"
        "class Own:\n"
        "    def __init__(self, num_envs):\n"
        "        game = TicTacToe(num_envs=num_envs)\n"
        "        self.spec, self.num_envs = game.spec, num_envs\n"
        "        self.reset, self.step, self.close = game.reset, game.step, game.close\n"
        "def make(*, num_envs):\n"
        "    return Own(num_envs=num_envs)\n"
    )
    said = problems_of(tmp_path, env={"id": f"{tmp_path}/own.py:make"})
    assert "cannot be copied; give the env the methods of league.envs.protocol.ForkableEnv (fork, save, load)" in said


def test_problems_are_named_together(tmp_path: Path) -> None:
    said = problems_of(
        tmp_path,
        env={"id": "tic_tac_toe", "workers": 2},
        network={"core": "lstm"},
        actors={"acting": SEARCH, "inference": "central"},
    )
    assert all(key in said for key in ("in 2 child processes", "network.core lstm", "actors.inference"))


def test_settings_of_a_players_own_are_judged_alike(tmp_path: Path) -> None:
    players = [{"actors": {"acting": SEARCH}, "network": {"core": "lstm"}}]
    said = problems_of(tmp_path, env={"id": "tic_tac_toe", "workers": 2}, actors={}, league={"players": players})
    assert "league.players.0.actors.acting: search plays copies of the games" in said
    assert "league.players.0.actors.acting: search tries many games, and network.core lstm" in said
