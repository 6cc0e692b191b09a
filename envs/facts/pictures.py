"""Tells how a field of rank 3 holds a picture: with channels last, as most environments give it, or first.

Shape letters: H height, W width, C channels.
"""

from __future__ import annotations

PICTURE_RANK = 3
LONG_SIDE = 32
"""Height and width from which three axes tell by their lengths which of them holds the channels."""


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(H, W, C) of a field of rank 3."""
    if has_channels_first(shape):
        channels, height, width = shape
    else:
        height, width, channels = shape
    return height, width, channels


def has_channels_first(shape: tuple[int, ...]) -> bool:
    """True for [C, H, W]: long last two axes, and a first one of at most half their length. Boards are too small."""
    channels, height, width = shape
    return min(height, width) >= max(LONG_SIDE, 2 * channels)
