"""One game as a record for people and programs: tags and moves in the manner of PGN.

Chess is true PGN with moves in standard algebraic notation. Other games have the same form with their own moves.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from league.envs.notation.notation import Notation

WIDTH = 80


def game_record(
    notation: Notation, moves: Sequence[int], *, names: Sequence[str], returns: Sequence[float], tags: Mapping[str, str]
) -> str:
    """The record of a game of two seats.

    Args:
      moves: actions in their order. names: [2] who held each seat. returns: [2] of each seat.
      tags: further tags, in their order.
    Source: Edwards 1994, Portable Game Notation, sections 8.1 and 8.2.
    """
    first, second = ("White", "Black") if notation.colours[0] != "black" else ("Black", "White")
    result = "1/2-1/2" if returns[0] == returns[1] else "1-0" if returns[0] > returns[1] else "0-1"
    if first == "Black":  # the result of PGN counts White first
        result = {"1-0": "0-1", "0-1": "1-0"}.get(result, result)
    heads = {**tags, first: names[0], second: names[1], "Result": result}
    lines = [f'[{tag} "{_quoted(text)}"]' for tag, text in heads.items()]
    position, words = notation.start(), []
    for number, move in enumerate(moves):
        if number % 2 == 0:
            words.append(f"{number // 2 + 1}.")
        short = getattr(position, "short_name", position.name)
        words.append(str(short(move)))
        position.push(move)
    return "\n".join([*lines, "", *textwrap.wrap(" ".join([*words, result]), WIDTH), ""])


def _quoted(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text.replace("\n", " "))
