"""Draws a game between policies in the plane: points that beat each other by the area between them.

Shape letter: N policies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.solvers import gains_of

Array = NDArray[np.float64]

FLAT = 1e-9
"""Largest gain of a game in which nobody beats anybody: its points all lie at the origin."""


@dataclass(frozen=True)
class Disc:
    """A game between policies, as far as two dimensions show it.

    Fields:
      points: float64 [N, 2]. Policy i wins about `cross(i, j)` more than a half against j, which is twice the area of
        the triangle between the origin, i and j; it is positive where j lies counter-clockwise of i.
      explained: part of the squared gains that the points reproduce, in [0, 1]; 1 for a flat game.
    """

    points: Array
    explained: float

    def gains(self) -> Array:
        """float64 [N, N], the gains over a half that the points stand for."""
        x, y = self.points[:, 0], self.points[:, 1]
        gains: Array = np.outer(x, y) - np.outer(y, x)
        return gains


def disc_of(win_rates: Array) -> Disc:
    """The two leading eigenvectors of the antisymmetric part of a table of win rates, scaled so that gains are areas.

    An antisymmetric matrix is a sum of w (x y' - y x') over pairs of orthonormal vectors, w > 0. The pair of the
    largest w is the best approximation of rank two. It is turned so that the mean point lies on the first axis.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1].
    Raises:
      ValueError: not square, or empty.
    Source: Balduzzi et al. 2019, Open-ended learning in symmetric zero-sum games, section 3 (gamescapes, disc game).
    """
    gains = gains_of(win_rates)
    total = float((gains**2).sum())
    if np.abs(gains).max() <= FLAT:
        return Disc(np.zeros((len(gains), 2)), 1.0)
    # i times an antisymmetric matrix is Hermitian: its eigenvalues come in pairs of w and -w, its vectors conjugated.
    values, vectors = np.linalg.eigh(1j * gains)
    size, vector = float(values[-1]), vectors[:, -1]
    # For i G v = w v and v = (x + i y) / sqrt(2): G x = w y and G y = -w x, so that G holds w (y x' - x y').
    points = np.sqrt(2.0 * size) * np.stack([vector.imag, vector.real], axis=1)
    return Disc(_turned(points), min(2.0 * size**2 / total, 1.0))


def _turned(points: Array) -> Array:
    """The same points with their mean on the positive first axis: an eigenvector may come back turned by any angle."""
    mean = points.mean(axis=0)
    length = float(np.hypot(*mean))
    if length <= FLAT:  # a ring round the origin: the farthest point takes the place of the mean
        mean = points[int(np.argmax((points**2).sum(axis=1)))]
        length = float(np.hypot(*mean))
    cosine, sine = mean / length
    turned: Array = points @ np.array([[cosine, -sine], [sine, cosine]])
    return turned
