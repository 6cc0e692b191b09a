"""Images of drawings by Pillow: the same shapes as in SVG."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from league.envs.plugins import install_extra
from league.envs.rendering.drawing import PAPER, Circle, Drawing, Label, Line, Pixels, Rect
from league.errors import LeagueError


def image_of(drawing: Drawing, *, width: int, height: int) -> Any:
    """An RGB image of Pillow: the drawing as large as it fits, in the middle.

    Args:
      width, height: in pixels.
    Raises:
      LeagueError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise LeagueError(f"images need Pillow; {install_extra('replays')}.") from error
    scale = min(width / drawing.width, height / drawing.height)
    left, top = (width - scale * drawing.width) / 2, (height - scale * drawing.height) / 2
    image = Image.new("RGB", (width, height), PAPER)
    canvas = _Canvas(image, ImageDraw.Draw(image), scale, left, top)
    for shape in drawing.shapes:
        canvas.add(shape)
    return image


class _Canvas:
    """Shapes on an image. scale, left, top: from units of the drawing to pixels."""

    def __init__(self, image: Any, draw: Any, scale: float, left: float, top: float) -> None:
        self._image, self._draw = image, draw
        self._scale, self._left, self._top = scale, left, top

    def add(self, shape: Rect | Circle | Line | Label | Pixels) -> None:
        match shape:
            case Rect():
                box = self._box(shape.x, shape.y, shape.width, shape.height)
                paint = self._paint(shape.fill, shape.stroke, shape.stroke_width)
                self._draw.rounded_rectangle(box, self._scale * shape.radius, **paint)
            case Circle():
                edge = shape.radius + (shape.stroke_width / 2 if shape.stroke else 0)
                box = self._box(shape.x - edge, shape.y - edge, 2 * edge, 2 * edge)
                self._draw.ellipse(box, **self._paint(shape.fill, shape.stroke, shape.stroke_width))
            case Line():
                ends = (*self._at(shape.x1, shape.y1), *self._at(shape.x2, shape.y2))
                self._draw.line(ends, shape.stroke, self._pixels(shape.width))
            case Label():
                anchor = "mm" if shape.centred else "lm"
                font = _font(max(1, round(self._scale * shape.size)))
                self._draw.text(self._at(shape.x, shape.y), shape.text, shape.fill, font, anchor=anchor)
            case Pixels():
                from PIL import Image

                x0, y0, x1, y1 = (round(value) for value in self._box(shape.x, shape.y, shape.width, shape.height))
                picture = Image.fromarray(shape.array).resize((max(1, x1 - x0), max(1, y1 - y0)), Image.Resampling.BOX)
                self._image.paste(picture, (x0, y0))

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self._left + self._scale * x, self._top + self._scale * y

    def _box(self, x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
        return (*self._at(x, y), *self._at(x + width, y + height))

    def _pixels(self, width: float) -> int:
        return max(1, round(self._scale * width))

    def _paint(self, fill: str, stroke: str, stroke_width: float) -> dict[str, Any]:
        border = {"outline": stroke, "width": self._pixels(stroke_width)} if stroke else {}
        return {"fill": None if fill == "none" else fill, **border}


@lru_cache(maxsize=64)
def _font(size: int) -> Any:
    """The scalable font that Pillow brings along; DejaVu Sans Mono where the system has it."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSansMono.ttf", size)
    except OSError:
        return ImageFont.load_default(size)
