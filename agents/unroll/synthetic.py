"""Made-up unrolls of a game's shape, for timing blocks and comparing gradients before any game has been played.

Shape letters: B rows, T unroll length, A actions, C core state size, H parts of an action, n choices of one part.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from agents.nets.entities import MASK_ENDING
from agents.unroll.unroll import Unrolls, action_dtype
from envs.protocol import ActionSpec, EnvSpec


def synthetic_unrolls(spec: EnvSpec, *, core_size: int, rows: int, steps: int, seed: int) -> Unrolls:
    """Random unrolls with legal actions, resets, ends, invalid steps and core states that are not zero.

    Args:
      spec: the game whose observations and actions are imitated.
      core_size: C; rows: B; steps: T.
      seed: equal seeds give equal unrolls.
    """
    rng = np.random.default_rng(seed)
    ends = rng.random((rows, steps)) < 0.2
    resets = np.zeros((rows, steps + 1), np.bool_)
    resets[:, 1:] = ends
    valid = rng.random((rows, steps)) < 0.9
    valid[:, 0] = True
    mask: NDArray[np.bool_] | None = None
    if spec.has_mask:
        mask = rng.random((rows, steps + 1, spec.actions.num_actions)) < 0.7
        mask[..., _always_legal(spec.actions)] = True
    obs = {
        name: _observations(rng, (rows, steps + 1, *array.shape), np.dtype(array.dtype))
        for name, array in spec.observations.items()
    }
    log_probs = (-1.0 + 0.5 * rng.normal(size=(rows, steps))).astype(np.float32)
    by_sub_action: NDArray[np.float32] | None = None
    if spec.actions.kind == "multi_categorical":
        num_sub_actions = len(spec.actions.nvec)
        by_sub_action = (-1.0 + 0.5 * rng.normal(size=(rows, steps, num_sub_actions))).astype(np.float32)
        log_probs = by_sub_action.sum(-1)
    return Unrolls(
        obs=obs,
        action_mask=mask,
        resets=resets,
        actions=_actions(rng, spec, rows, steps, mask, obs),
        log_probs=log_probs,
        sub_action_log_probs=by_sub_action,
        rewards=rng.normal(size=(rows, steps)).astype(np.float32),
        discounts=np.where(ends, 0.0, 1.0).astype(np.float32),
        valid=valid,
        versions=np.zeros((rows, steps), np.int32),
        core=(0.5 * rng.normal(size=(rows, core_size))).astype(np.float32),
    )


def _observations(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    if dtype.kind == "b":
        flags: NDArray[np.bool_] = rng.random(shape) < 0.3
        flags[..., :1] = True  # where the field says which entities are there, the first one is
        return flags
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def _always_legal(actions: ActionSpec) -> list[int]:
    """Entries of the action mask without which a row would have no legal action: the first choice of every part."""
    if actions.kind == "categorical":
        return [0]
    return [
        sub_action.start + row * sub_action.size
        for sub_action in actions.sub_action_masks
        for row in range(sub_action.rows)
    ]


def _actions(
    rng: np.random.Generator,
    spec: EnvSpec,
    rows: int,
    steps: int,
    mask: NDArray[np.bool_] | None,
    obs: Mapping[str, NDArray[np.generic]],
) -> NDArray[np.generic]:
    """Any legal choice, or one of every part where there are several; any number of a box."""
    if spec.actions.kind == "box":
        return rng.normal(size=(rows, steps, *spec.actions.shape)).astype(np.float32)
    if spec.actions.kind == "multi_categorical":
        return _parts(rng, spec.actions, (rows, steps), mask, obs)
    scores = rng.random((rows, steps, spec.actions.num_actions))
    if mask is not None:
        scores *= mask[:, :steps]
    actions: NDArray[np.generic] = scores.argmax(-1).astype(action_dtype(spec.actions))
    return actions


def _parts(
    rng: np.random.Generator,
    actions: ActionSpec,
    shape: tuple[int, int],
    mask: NDArray[np.bool_] | None,
    obs: Mapping[str, NDArray[np.generic]],
) -> NDArray[np.generic]:
    """Whole numbers [B, T, H], legal choices of every part given those before it; 0 where it has none."""
    steps = shape[1]
    chosen = np.zeros((*shape, len(actions.nvec)), action_dtype(actions))
    for sub_action, (place, name) in enumerate(zip(actions.sub_action_masks, actions.points_at, strict=True)):
        legal = np.ones((*shape, place.size), np.bool_)
        if mask is not None:
            table = mask[:, :steps, place.start : place.start + place.rows * place.size]
            table = table.reshape(*shape, place.rows, place.size)
            row = np.zeros(shape, np.int64) if place.given < 0 else chosen[..., place.given].astype(np.int64)
            legal &= np.take_along_axis(table, row[..., None, None], axis=-2)[..., 0, :]
        if name and f"{name}{MASK_ENDING}" in obs:
            legal &= obs[f"{name}{MASK_ENDING}"][:, :steps].astype(np.bool_)
        chosen[..., sub_action] = (rng.random(legal.shape) * legal).argmax(-1)
    return chosen
