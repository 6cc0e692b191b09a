"""Random games whose states are rendered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import BatchedEnv, EnvConfig, Turn
from league.envs.registry import make
from league.envs.rendering.renderer import Moment, Scene
from league.envs.rendering.renderers import renderer_for
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions

HIDDEN_STREAMS = ("rng", "dealt", "openings")
"""Arrays of a saved game that are no part of its position."""


def random_actions(env: BatchedEnv, turn: Turn, rng: np.random.Generator) -> NDArray[np.generic]:
    actions, count = env.spec.actions, len(turn.seat)
    if actions.kind == "box":
        return rng.uniform(actions.low, actions.high, (count, *actions.shape)).astype(np.float32)
    if actions.kind == "multi_categorical":
        return draw_sub_actions(actions, count, mask=turn.action_mask, rng=rng)
    mask = np.ones((count, actions.num_actions), np.bool_) if turn.action_mask is None else turn.action_mask
    return uniform_legal(mask, rng)


def position_of(env: Any) -> tuple[Any, ...] | None:
    """All that an env saves of its games, random streams left out; None where it saves nothing."""
    if not hasattr(env, "save"):
        return None
    return tuple((name, array.tobytes()) for name, array in sorted(env.save().items()) if name not in HIDDEN_STREAMS)


def _kept(turn: Turn) -> Turn:
    """A turn whose observations stay when the env steps on."""
    return replace(turn, obs={name: field.copy() for name, field in turn.obs.items()})


def rendered(config: EnvConfig, *, seed: int, seat: int | None = None) -> Iterator[tuple[Scene, Any, Turn]]:
    """Scene, position and turn of each state of one random game; the last scene is of the ended game."""
    rng = np.random.default_rng(seed)
    with closing(make(config, num_envs=1)) as env:
        renderer, turn = renderer_for(env.spec), env.reset(seed)
        state = renderer.begin(Moment(env, turn, 0))
        yield renderer.scene(state, seat=seat), position_of(env), _kept(turn)
        while not turn.ended[0]:
            actions = random_actions(env, turn, rng)
            taken = dict(zip(turn.seat.tolist(), actions, strict=True))
            assert all(renderer.action_name(state, seat, action) for seat, action in taken.items())
            turn = env.step(actions)
            state = renderer.after(state, taken, Moment(env, turn, 0, bool(turn.ended[0])))
            yield renderer.scene(state, seat=seat), position_of(env), _kept(turn)
