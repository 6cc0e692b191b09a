"""The games that have a device form, and the sentence for one that has none."""

from __future__ import annotations

from collections.abc import Mapping

from league.envs.protocol import EnvConfig, EnvError

DEVICE_GAMES: Mapping[str, str] = {
    "connect_four": "league.agents.device_games.stones:connect_four",
    "tic_tac_toe": "league.agents.device_games.stones:tic_tac_toe",
    "othello": "league.agents.device_games.othello:DeviceOthello",
    "kuhn_poker": "league.agents.device_games.poker:DevicePoker",
    "leduc_poker": "league.agents.device_games.poker:DevicePoker",
    "matrix_game": "league.agents.device_games.matrix:matrix_game",
    "rock_paper_scissors": "league.agents.device_games.matrix:matrix_game",
    "repeated_rock_paper_scissors": "league.agents.device_games.matrix:matrix_game",
    "cyclic_game": "league.agents.device_games.matrix:matrix_game",
    "disc_game": "league.agents.device_games.matrix:matrix_game",
    "three_seat_rock_paper_scissors": "league.agents.device_games.matrix:normal_form",
    "team_rock_paper_scissors": "league.agents.device_games.matrix:normal_form",
    "team_matrix": "league.agents.device_games.matrix:normal_form",
}
"""Id of a built-in game -> what makes it from the same game in numpy."""


def require_device_form(config: EnvConfig) -> None:
    """Refuse a game that has no device form.

    Raises:
      EnvError: it has none.
    """
    if config.id not in DEVICE_GAMES:
        raise EnvError(f"{config.id} has no device form; those that have one are {', '.join(DEVICE_GAMES)}")
