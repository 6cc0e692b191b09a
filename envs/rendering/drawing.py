"""A drawing: a short list of shapes, from which SVG and raster images are made alike.

Lengths are in units of the drawing, y grows downwards, colours are "#rrggbb".
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

PAPER, INK, FAINT = "#ffffff", "#1b1f24", "#57606a"
SEAT_COLOURS = ("#c8102e", "#e8b400", "#1f6feb", "#2da44e", "#8250df", "#bc4c00", "#0a7ea4", "#6e7781")
MARK = "#0a7d28"
"""The last move and a winning line."""
LETTER_WIDTH = 0.62
"""Of a monospaced letter over its size; enough for the fonts of browsers and of raster images."""
TEXT_SIZE = 14.0
"""Of the letters of a drawing that is text alone."""


@dataclass(frozen=True)
class Rect:
    """A rectangle from its top left corner. radius: of its corners. stroke: of its border, empty for none."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = ""
    stroke_width: float = 1.0
    radius: float = 0.0


@dataclass(frozen=True)
class Circle:
    """A disc round its centre. stroke: of its border, empty for none."""

    x: float
    y: float
    radius: float
    fill: str
    stroke: str = ""
    stroke_width: float = 1.0


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    width: float = 1.0


@dataclass(frozen=True)
class Label:
    """One line of monospaced text. x, y: its middle, or the middle of its left edge. size: height of its letters."""

    x: float
    y: float
    text: str
    size: float
    fill: str = INK
    centred: bool = True


@dataclass(frozen=True, eq=False)
class Pixels:
    """An image, uint8 [H, W, 3], scaled to a rectangle."""

    x: float
    y: float
    width: float
    height: float
    array: NDArray[np.uint8]


Shape = Rect | Circle | Line | Label | Pixels


@dataclass(frozen=True)
class Target:
    """A rectangle of the drawing that stands for an action. action: its number."""

    action: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Drawing:
    """Shapes on paper, later ones over earlier ones.

    Fields:
      width, height: of the paper.
      targets: where a click means an action; legal or not.
    """

    width: float
    height: float
    shapes: tuple[Shape, ...]
    targets: tuple[Target, ...] = ()


def svg_of(drawing: Drawing, *, title: str) -> str:
    """The drawing as one `<svg>` element with no reference outside of itself. title: read out in its place."""
    size = f"{_number(drawing.width)} {_number(drawing.height)}"
    body = "".join(_element(shape) for shape in drawing.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label={quoteattr(_clean(title))}'
        f' font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace">'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{body}</svg>'
    )


def text_drawing(text: str) -> Drawing:
    """Lines of text as a drawing."""
    size, lines = TEXT_SIZE, text.splitlines() or [""]
    width = max(max(map(len, lines)) * size * LETTER_WIDTH, 10 * size) + 2 * size
    labels = [Label(size, size * (1.5 + 1.4 * row), line, size, centred=False) for row, line in enumerate(lines)]
    return Drawing(width, size * (1.4 * len(lines) + 1.6), tuple(labels))


def png_of(array: NDArray[np.uint8]) -> bytes:
    """A PNG file of an image, uint8 [H, W, 3]. Source: the PNG specification, RFC 2083."""
    height, width, _ = array.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), array.reshape(height, width * 3)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _element(shape: Shape) -> str:
    match shape:
        case Rect():
            return (
                f"<rect{_attributes(x=shape.x, y=shape.y, width=shape.width, height=shape.height, rx=shape.radius)}"
                f"{_paint(shape.fill, shape.stroke, shape.stroke_width)}/>"
            )
        case Circle():
            place = _attributes(cx=shape.x, cy=shape.y, r=shape.radius)
            return f"<circle{place}{_paint(shape.fill, shape.stroke, shape.stroke_width)}/>"
        case Line():
            ends = _attributes(x1=shape.x1, y1=shape.y1, x2=shape.x2, y2=shape.y2)
            return f'<line{ends} stroke="{shape.stroke}" stroke-width="{_number(shape.width)}"/>'
        case Label():
            anchor = "middle" if shape.centred else "start"
            place = _attributes(
                x=shape.x, y=shape.y + 0.35 * shape.size
            )  # the baseline, by hand: pillow knows no other
            return (
                f'<text{place} font-size="{_number(shape.size)}" text-anchor="{anchor}" fill="{shape.fill}"'
                f' xml:space="preserve">{escape(_clean(shape.text))}</text>'
            )
        case Pixels():
            encoded = base64.b64encode(png_of(shape.array)).decode()
            place = _attributes(x=shape.x, y=shape.y, width=shape.width, height=shape.height)
            return f'<image{place} href="data:image/png;base64,{encoded}"/>'


def _paint(fill: str, stroke: str, stroke_width: float) -> str:
    border = f' stroke="{stroke}" stroke-width="{_number(stroke_width)}"' if stroke else ""
    return f' fill="{fill}"{border}'


def _attributes(**values: float) -> str:
    return "".join(f' {name}="{_number(value)}"' for name, value in values.items() if value or name in "xycxcy")


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _clean(text: str) -> str:
    """Text without the control characters that XML does not allow."""
    return "".join(letter for letter in text if letter >= " " and not "\ud800" <= letter <= "\udfff")
