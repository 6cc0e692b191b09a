"""Trees that are visited in a child process are those of this one; a game that ends or hangs there costs the visit."""

from __future__ import annotations

import dataclasses
import time
from contextlib import closing

import numpy as np
import pytest

from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.envs.search.known_tree import KnownTree, known_tree, tree_from_bytes, tree_to_bytes
from league.envs.workers import tree_visit
from league.envs.workers.tree_visit import tree_in_child
from league.policies.exact.behaviours import uniform
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import NoExactValue, small_game
from tests.envs.search import auctions
from tests.envs.workers.forked_games import forked_games  # noqa: F401 - a fixture

AUCTION = f"{auctions.__name__}:auction"


def assert_equal(one: KnownTree, other: KnownTree) -> None:
    assert one.deals == other.deals
    for part in ("info_states", "endings"):
        arrays, others = (dataclasses.asdict(getattr(known.tree, part)) for known in (one, other))
        fields, other_fields = arrays.pop("fields", {}), others.pop("fields", {})
        assert list(fields) == list(other_fields)
        for left, right in zip(
            (*arrays.values(), *fields.values()), (*others.values(), *other_fields.values()), strict=True
        ):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("game", [AUCTION, "kuhn_poker", "rock_paper_scissors"])
def test_a_child_finds_the_tree_that_is_found_here(game: str) -> None:
    with closing(make(EnvConfig(game), num_envs=1)) as env:
        here = known_tree(env, limit_s=60.0)
    assert_equal(tree_in_child(EnvConfig(game, workers=2), limit_s=60.0), here)
    assert_equal(tree_from_bytes(tree_to_bytes(dataclasses.replace(here, deals=3))), dataclasses.replace(here, deals=3))


def test_what_is_no_tree_is_refused() -> None:
    with closing(make(EnvConfig("kuhn_poker"), num_envs=1)) as env:
        payload = tree_to_bytes(known_tree(env, limit_s=60.0))
    for damaged in (b"", payload[:-100], b"no tree"):
        with pytest.raises(ValueError, match=r"tree is damaged|pickle"):
            tree_from_bytes(damaged)


@pytest.mark.usefixtures("forked_games")
def test_games_in_child_processes_have_their_exact_value() -> None:
    assert nash_conv(EnvConfig("kuhn_poker", workers=2), uniform) == pytest.approx(nash_conv("kuhn_poker", uniform))
    auctions.made.clear()
    assert nash_conv(EnvConfig(AUCTION, workers=1), uniform) > 0.0 and not auctions.made


def test_a_game_is_made_once_for_all_that_is_asked_of_it() -> None:
    auctions.made.clear()
    small_game(AUCTION)
    assert len(auctions.made) == 1


@pytest.mark.usefixtures("forked_games")
def test_a_game_that_ends_its_process_has_no_exact_value() -> None:
    with pytest.raises(NoExactValue, match=r"failed: it ended its process \(exit code 3\)\.$"):
        small_game(EnvConfig(f"{auctions.__name__}:dying", workers=1))


@pytest.mark.usefixtures("forked_games")
def test_a_game_that_hangs_is_ended_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_visit, "GRACE_S", 0.0)
    begun = time.monotonic()
    with pytest.raises(EnvError, match=r"it had not visited every history after 0\.5 s"):
        tree_in_child(EnvConfig(f"{auctions.__name__}:hanging", workers=1), limit_s=0.5)
    assert time.monotonic() - begun < 60.0


@pytest.mark.usefixtures("forked_games")
def test_a_game_that_is_too_large_says_so_in_a_child_too() -> None:
    with pytest.raises(EnvError, match="far too large"):
        tree_in_child(EnvConfig("connect_four", workers=1), limit_s=5.0)
