"""The renderer of each game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from league.envs.plugins import load
from league.envs.protocol import EnvSpec
from league.envs.rendering.renderer import Renderer

RENDERERS: Mapping[str, str] = {
    "connect_four": "league.envs.rendering.boards:ConnectFourRenderer",
    "tic_tac_toe": "league.envs.rendering.boards:TicTacToeRenderer",
    "othello": "league.envs.rendering.othello:OthelloRenderer",
    "matrix_game": "league.envs.rendering.tables:TableRenderer",
    "rock_paper_scissors": "league.envs.rendering.tables:TableRenderer",
    "repeated_rock_paper_scissors": "league.envs.rendering.tables:TableRenderer",
    "cyclic_game": "league.envs.rendering.tables:TableRenderer",
    "disc_game": "league.envs.rendering.tables:TableRenderer",
    "three_seat_rock_paper_scissors": "league.envs.rendering.tables:TableRenderer",
    "team_rock_paper_scissors": "league.envs.rendering.tables:TableRenderer",
    "team_matrix": "league.envs.rendering.tables:TableRenderer",
    "pursuit": "league.envs.rendering.pursuit:PursuitRenderer",
    "kuhn_poker": "league.envs.rendering.poker:KuhnRenderer",
    "leduc_poker": "league.envs.rendering.poker:LeducRenderer",
}
"""Env id -> its renderer; every other game has the plain one."""
PUBLIC_MOVES = frozenset({"kuhn_poker", "leduc_poker"})
"""Games with hidden information in which all seats see every move."""
PLAIN = "league.envs.rendering.plain:PlainRenderer"


def renderer_for(spec: EnvSpec) -> Renderer[Any]:
    """The renderer of a game."""
    made: Renderer[Any] = load(RENDERERS.get(spec.env_id, PLAIN))(spec)
    return made
