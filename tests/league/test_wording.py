"""Numbers of things and values of settings, as people read them."""

from __future__ import annotations

import pytest

from league.envs.text.number_text import number_text
from league.wording import clock_text, counted, p_text, setting_text, short_count


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


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (107.3, 2, "110"),
        (3_871.0, 1, "4,000"),
        (26_837_104.0, 5, "26,837,000"),
        (2e-08, 4, "0"),
        (-1.964e-08, 4, "0"),
        (-0.0, 3, "0"),
        (0.00025, 3, "0.00025"),
        (0.0999999, 2, "0.1"),
        (-1.5, 3, "-1.5"),
        (99.96, 3, "100"),
        (1e12, 3, "1,000,000,000,000"),
        (float("inf"), 3, "inf"),
    ],
)
def test_a_number_is_never_shown_with_an_exponent(value: float, digits: int, text: str) -> None:
    assert number_text(value, digits) == text


def test_a_sign_is_shown_where_it_is_asked_for() -> None:
    assert [number_text(value, sign=True) for value in (1_234.0, -0.5, 1e-9)] == ["+1,230", "-0.5", "+0"]


def test_a_small_p_value_is_a_bound() -> None:
    assert [p_text(value) for value in (0.0312, 1e-7, 0.0)] == ["p 0.031", "p below 0.0001", "p below 0.0001"]


def test_counts_keep_three_digits_over_unit_borders() -> None:
    values = [0, 999, 999.4, 999.6, 1000, 12_345, 999_499, 999_999, 1_234_567, 999_000_000, 1e9, 5e12]
    assert [short_count(value) for value in values] == [
        "0", "999", "999", "1k", "1k", "12.3k", "999k", "1M", "1.23M", "999M", "1G", "5000G"
    ]  # fmt: skip
    assert (clock_text(0), clock_text(59.9), clock_text(3600 * 30 + 61)) == ("0:00:00", "0:00:59", "30:01:01")
