"""Which Ray a run uses, by its configuration and RAY_ADDRESS."""

from __future__ import annotations

import pytest

from league.config.ray_address import is_ray_address, joins_cluster, ray_address
from league.errors import LeagueError


@pytest.mark.parametrize(
    ("configured", "environment", "expected"),
    [
        ("auto", {}, "local"),
        ("auto", {"RAY_ADDRESS": ""}, "local"),
        ("auto", {"RAY_ADDRESS": "10.0.0.1:6379"}, "10.0.0.1:6379"),
        ("auto", {"RAY_ADDRESS": "ray://head:10001"}, "ray://head:10001"),
        ("auto", {"RAY_ADDRESS": "auto"}, "auto"),
        ("auto", {"RAY_ADDRESS": "local"}, "local"),
        ("local", {"RAY_ADDRESS": "10.0.0.1:6379"}, "local"),
        ("other:1", {"RAY_ADDRESS": "10.0.0.1:6379"}, "other:1"),
    ],
)
def test_the_configuration_wins_and_auto_is_what_ray_address_names(
    configured: str, environment: dict[str, str], expected: str
) -> None:
    assert ray_address(configured, environment) == expected
    assert joins_cluster(configured, environment) == (expected != "local")


@pytest.mark.parametrize(
    ("named", "words"),
    [("http://head:8265", "ray job submit"), ("nowhere", "neither HOST:PORT"), ("a:b:1", "neither HOST:PORT")],
)
def test_a_ray_address_that_is_no_cluster_is_one_sentence(named: str, words: str) -> None:
    with pytest.raises(LeagueError, match=words) as raised:
        ray_address("auto", {"RAY_ADDRESS": named})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["auto", "local", "h:1", "ray://h:1", "[::1]:6379", "ray://[fe80::1]:10001"])
def test_addresses_that_a_configuration_may_have(text: str) -> None:
    assert is_ray_address(text)


@pytest.mark.parametrize("text", ["", "h", "h:", "h:port", "http://h:1", "ray://", "h:1/x", "rays://h:1", "h:123456"])
def test_other_texts_are_no_ray_address(text: str) -> None:
    assert not is_ray_address(text)
