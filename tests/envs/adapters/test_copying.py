"""Copies of envs that would begin again when they are copied as they ask to be."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from gymnasium import spaces
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv

from league.envs.adapters.copying import copy_game


class Inner(AECEnv, EzPickle):  # type: ignore[type-arg]
    """Counts its steps, and pickles without them."""

    def __init__(self) -> None:
        EzPickle.__init__(self)
        self.steps = [0]


class Outer(AECEnv, EzPickle):  # type: ignore[type-arg]
    """Keeps another env under a name of its own."""

    def __init__(self) -> None:
        EzPickle.__init__(self)
        self.played_inside = Inner()
        self.seen: list[Any] = []


def test_an_env_inside_an_env_keeps_its_state() -> None:
    env = Outer()
    env.played_inside.steps[0] = 7
    env.seen.append(env.played_inside.steps)
    copied = copy_game(env)
    assert copied.played_inside.steps == [7]
    assert copied.seen[0] is copied.played_inside.steps
    assert copied.played_inside.steps is not env.played_inside.steps


class Emulator:
    """Holds memory that Python does not know, and frees it."""

    freed: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.address = 7

    def __del__(self) -> None:
        self.freed.append(self.address)


class Knowing(Emulator):
    """Says how it is copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Knowing:
        copied = Knowing()
        copied.address = self.address + 1
        return copied


def test_what_a_finaliser_frees_is_never_copied_and_so_never_freed_twice() -> None:
    Emulator.freed.clear()
    env = Outer()
    env.played_inside.seen = {"consoles": [Emulator()]}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Emulator releases what it holds"):
        copy_game(env)
    assert Emulator.freed == []
    env.played_inside.seen = [Knowing()]  # type: ignore[attr-defined]
    assert copy_game(env).played_inside.seen[0].address == 8


def test_copies_share_spaces_but_not_their_draws() -> None:
    env = Outer()
    undrawn, drawn, other = (
        spaces.Dict({"x": spaces.Box(0, 1)}),
        spaces.Discrete(1_000),
        spaces.Sequence(spaces.Text(2)),
    )
    drawn.seed(3)
    env.seen = [undrawn, drawn, other]
    copied = copy_game(env)
    assert [mine is theirs for mine, theirs in zip(env.seen, copied.seen, strict=True)] == [True, False, False]
    draws = [int(drawn.sample()) for _ in range(5)]
    assert [int(copied.seen[1].sample()) for _ in range(5)] == draws
