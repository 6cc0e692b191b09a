"""The pictures of the page on leagues show the figures that are kept."""

from __future__ import annotations

import pytest

from benchmarks.strength.why import PICTURES, Compared, _svg, pictures


@pytest.mark.parametrize(("name", "text"), pictures().items())
def test_a_picture_is_drawn_from_the_figures(name: str, text: str) -> None:
    assert (PICTURES / name).read_text() == text, "run `python -m benchmarks.strength.why`"


def test_every_seed_has_a_dot_at_its_place() -> None:
    text = _svg("a < b", [Compared("one", [0.0, 1.0], [0.5])])
    assert [text.count(f'cx="{x}"') for x in ("290.0", "720.0", "505.0")] == [2, 1, 1], "one dot is of the legend"
    assert "<title>a &lt; b</title>" in text
