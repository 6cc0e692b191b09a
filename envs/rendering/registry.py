"""The renderer of each game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs.plugins import load
from envs.protocol import EnvSpec
from envs.rendering.renderer import Renderer

RENDERERS: Mapping[str, str] = {
    "connect_four": "envs.rendering.boards:ConnectFourRenderer",
    "tic_tac_toe": "envs.rendering.boards:TicTacToeRenderer",
    "othello": "envs.rendering.othello:OthelloRenderer",
    "matrix_game": "envs.rendering.tables:TableRenderer",
    "rock_paper_scissors": "envs.rendering.tables:TableRenderer",
    "repeated_rock_paper_scissors": "envs.rendering.tables:TableRenderer",
    "cyclic_game": "envs.rendering.tables:TableRenderer",
    "disc_game": "envs.rendering.tables:TableRenderer",
    "three_seat_rock_paper_scissors": "envs.rendering.tables:TableRenderer",
    "team_rock_paper_scissors": "envs.rendering.tables:TableRenderer",
    "kuhn_poker": "envs.rendering.poker:KuhnRenderer",
    "leduc_poker": "envs.rendering.poker:LeducRenderer",
}
"""Env id -> its renderer; every other game has the plain one."""
PUBLIC_MOVES = frozenset({"kuhn_poker", "leduc_poker"})
"""Games with hidden information in which all seats see every move."""
PLAIN = "envs.rendering.plain:PlainRenderer"


def renderer_for(spec: EnvSpec) -> Renderer[Any]:
    """The renderer of a game."""
    made: Renderer[Any] = load(RENDERERS.get(spec.env_id, PLAIN))(spec)
    return made
