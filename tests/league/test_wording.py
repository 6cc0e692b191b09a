"""Numbers of things and values of settings, as people read them."""

from __future__ import annotations

import pytest

from league.wording import counted, setting_text


def test_one_thing_has_no_s() -> None:
    assert [counted(number, "snapshot") for number in (0, 1, 1200)] == ["0 snapshots", "1 snapshot", "1,200 snapshots"]
    assert [counted(number, "batch", "batches") for number in (1, 2)] == ["1 batch", "2 batches"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (0.25, "0.25"),
        ("mlp", '"mlp"'),
        ([128, 128], "[128, 128]"),
        ([], "[]"),
        ({}, "{}"),
        ([{"role": "main_agent", "count": 2, "name": ""}, {"role": "x", "count": 1}], "2 x main_agent, x"),
        ({"kind": "pfsp", "weighting": "hard", "pfsp": 0.5}, "pfsp: weighting hard, pfsp 0.5"),
        (
            {"test": {"kind": "posterior", "margin": 0.05}, "name": "", "to": []},
            'test (posterior: margin 0.05), name "", to []',
        ),
        ({"kind": "uniform"}, "uniform"),
        ([{"gpu": 1}], '[{"gpu": 1}]'),
    ],
)
def test_a_setting_reads_as_people_would_write_it(value: object, text: str) -> None:
    assert setting_text(value) == text
