"""A picture of win rates: rows against columns, blue where the row wins, red where it loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from league.see.trackers.league_tables import WinRates

if TYPE_CHECKING:
    from PIL.Image import Image

CELL, MARGIN, CHARACTER = 34, 6, 6.2
"""Pixels: width of a cell, space around text, mean width of a character."""
_BLUE, _RED, _EVEN, _UNKNOWN = (33, 102, 172), (178, 24, 43), (247, 247, 247), (215, 215, 215)
_DARK, _BRIGHT = (20, 20, 20), (255, 255, 255)


def colour_of(rate: float | None) -> tuple[int, int, int]:
    """The colour of a win rate: white at one half, blue at 1, red at 0, grey where it is not known."""
    if rate is None:
        return _UNKNOWN
    end = _BLUE if rate >= 0.5 else _RED
    weight = min(abs(rate - 0.5) * 2.0, 1.0)
    red, green, blue = (round(e + (c - e) * weight) for e, c in zip(_EVEN, end, strict=True))
    return red, green, blue


def heatmap(found: WinRates) -> Image:
    """The picture, with names at the rows and numbers in the cells. Needs pillow."""
    from PIL import Image, ImageDraw

    names = max((len(member) for member in found.members), default=1)
    left = round(names * CHARACTER) + 3 * MARGIN
    size = CELL * len(found.members)
    picture = Image.new("RGB", (left + size + MARGIN, CELL + size + MARGIN), _BRIGHT)
    draw = ImageDraw.Draw(picture)
    for number, member in enumerate(found.members):
        middle = CELL + number * CELL + CELL // 2
        draw.text((MARGIN, middle), f"{number} {member}", fill=_DARK, anchor="lm")
        draw.text((left + number * CELL + CELL // 2, CELL // 2), str(number), fill=_DARK, anchor="mm")
        for column, rate in enumerate(found.rates[number]):
            x, y = left + column * CELL, CELL + number * CELL
            draw.rectangle((x, y, x + CELL - 2, y + CELL - 2), fill=colour_of(rate))
            if rate is not None:
                ink = _BRIGHT if abs(rate - 0.5) > 0.3 else _DARK
                draw.text((x + CELL // 2, y + CELL // 2), f"{rate:.2f}", fill=ink, anchor="mm")
    return picture
