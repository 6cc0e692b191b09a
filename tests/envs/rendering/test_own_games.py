"""Games of others in words: they draw themselves and name their actions."""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from league.envs.protocol import EnvConfig
from league.envs.rendering.frames import make_shown
from league.envs.rendering.renderer import Moment
from league.envs.rendering.renderers import renderer_for


class Duel(ParallelEnv):
    """Both choose once, and draw what was chosen."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "duel",
        "render_modes": ["ansi"],
        "action_names": {"red": ["stay", "strike"], "blue": ["wait"]},
    }
    possible_agents: ClassVar[list[str]] = ["red", "blue"]

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.chosen = render_mode, ""

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.chosen = ["red", "blue"], "nothing"
        return dict.fromkeys(self.agents, 0), {}

    def step(self, actions: dict[str, Any]) -> Any:
        self.chosen, self.agents = str([int(action) for action in actions.values()]), []
        both = ("red", "blue")
        return (
            dict.fromkeys(both, 1),
            dict.fromkeys(both, 0.0),
            dict.fromkeys(both, True),
            dict.fromkeys(both, False),
            {},
        )

    def render(self) -> str:
        return f"drawn: {self.chosen}"


def with_parameter(render_mode: str | None = None) -> Duel:
    return Duel(render_mode)


def without_parameter() -> Duel:
    return Duel(render_mode="ansi")


def not_drawn() -> Duel:
    return Duel()


def scenes(game: str, **kwargs: Any) -> tuple[str, str, str, str]:
    """Text before and after the only step, and the names of what was chosen."""
    with closing(make_shown(EnvConfig(f"{__name__}:{game}", kwargs), num_envs=1)) as env:
        renderer, turn = renderer_for(env.spec), env.reset(0)
        first = renderer.begin(Moment(env, turn, 0))
        names = [renderer.action_name(first, seat, np.int64(1)) for seat in (0, 1)]
        turn = env.step(np.ones(2, np.int64))
        last = renderer.after(first, {0: 1, 1: 1}, Moment(env, turn, 0, ended=True))
        return renderer.scene(first).text, renderer.scene(last).text, names[0], names[1]


@pytest.mark.parametrize(
    ("game", "kwargs"),
    [("with_parameter", {}), ("without_parameter", {}), ("Duel", {}), ("with_parameter", {"render_mode": "ansi"})],
)
def test_a_game_is_shown_as_it_draws_itself_wherever_its_render_mode_is_set(game: str, kwargs: dict[str, Any]) -> None:
    first, last, *_ = scenes(game, **kwargs)
    assert "drawn: nothing" in first
    assert "drawn: [1, 1]" in last, "the end, although the next game has begun"


def test_a_game_that_does_not_draw_itself_is_its_observations() -> None:
    assert "observation" in scenes("not_drawn")[0]


def test_actions_have_the_names_of_the_metadata_and_numbers_without() -> None:
    _, last, red, blue = scenes("not_drawn")
    assert (red, blue) == ("strike", "1"), "of blue only the first action has a name"
    assert "red: strike, blue: 1" in last


@pytest.mark.parametrize(("names", "expected"), [(["a", "b"], "b"), (None, "1"), (3, "1"), ({}, "1"), ([0, 1], "1")])
def test_names_may_be_those_of_all_seats_or_none(names: Any, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Duel.metadata, "action_names", names)
    assert scenes("not_drawn")[2:] == (expected, expected)
