"""A number in a sentence: rounded, and never with an exponent."""

from __future__ import annotations

import math

NO_NUMBER = 1e-6
"""Amounts below this are what is left of rounding, and shown as 0."""


def number_text(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """A number with so many significant digits and never with an exponent: 0.00025, 1.5, 110, 26,840,000.

    Args:
      sign: whether one above 0 has a plus.
    """
    plus = "+" if sign else ""
    if not math.isfinite(value) or value == 0.0 or abs(value) < NO_NUMBER:
        return f"{value if math.isnan(value) or math.isinf(value) else 0.0:{plus}g}"
    rounded = float(f"{value:.{digits}g}")
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    text = f"{rounded:{plus},.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
