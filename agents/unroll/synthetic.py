"""Synthetic unrolls of a game's shape, to time blocks and compare gradients before any game has been played.

Shape letters: B rows, T unroll length, A actions, C core state size, H sub-actions, n choices of one sub-action.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.padding import group_mask
from league.envs.protocol import MASK_ENDING, SEAT_GROUP, ActionSpec


def synthetic_unrolls(spec: UnrollSpec, *, rows: int, seed: int) -> Unrolls:
    """Random unrolls with legal actions, resets, ends, invalid steps and core states that are not zero.

    Args:
      spec: of the imitated unrolls.
      rows: B.
      seed: equal seeds give equal unrolls.
    """
    rng = np.random.default_rng(seed)
    game, steps = spec.game, spec.unroll_length
    ends = rng.random((rows, steps)) < 0.2
    resets = np.zeros((rows, steps + 1), np.bool_)
    resets[:, 1:] = ends
    valid = rng.random((rows, steps)) < 0.9
    valid[:, 0] = True
    mask: NDArray[np.bool_] | None = None
    if game.has_mask:
        mask = rng.random((rows, steps + 1, game.actions.num_actions)) < 0.7
        mask[..., _always_legal(game.actions)] = True
    groups = rng.integers(len(game.seat_groups), size=rows) if game.seat_groups else None
    if groups is not None and mask is not None:
        own = np.stack([group_mask(group, game.actions) for group in game.seat_groups])
        mask &= own[groups, None]
    obs = {
        name: _numbers(rng, (rows, steps + 1, *array.shape), np.dtype(array.dtype))
        for name, array in game.observations.items()
    }
    if groups is not None:
        obs[SEAT_GROUP][:] = np.eye(len(game.seat_groups), dtype=np.bool_)[groups, None]
    log_probs = (-1.0 + 0.5 * rng.normal(size=(rows, steps))).astype(np.float32)
    by_sub_action: NDArray[np.float32] | None = None
    if spec.num_sub_actions:
        by_sub_action = (-1.0 + 0.5 * rng.normal(size=(rows, steps, spec.num_sub_actions))).astype(np.float32)
        log_probs = by_sub_action.sum(-1)
    made = {
        "action_mask": mask,
        "sub_action_log_probs": by_sub_action,
        "resets": resets,
        "actions": _actions(rng, spec, rows, mask, obs),
        "log_probs": log_probs,
        "rewards": rng.normal(size=(rows, steps)).astype(np.float32),
        "discounts": np.where(ends, 0.0, 1.0).astype(np.float32),
        "valid": valid,
        "versions": np.zeros((rows, steps), np.int32),
        "core": (0.5 * rng.normal(size=(rows, spec.core_size))).astype(np.float32),
    }
    if "search_policy" in spec.recorded:
        chances = rng.random((rows, steps, game.actions.num_actions)).astype(np.float32)
        chances *= 1.0 if mask is None else mask[:, :steps]
        made["search_policy"] = chances / chances.sum(axis=-1, keepdims=True)
    rest = [line for line in spec.fields if line.name not in made]
    made.update({line.name: _numbers(rng, spec.shape(line, rows), np.dtype(line.dtype)) for line in rest})
    return Unrolls(obs=obs, **made)  # type: ignore[arg-type]  # every field of the table is there


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    if dtype.kind == "b":
        flags: NDArray[np.bool_] = rng.random(shape) < 0.3
        flags[..., :1] = True  # if the field marks present entities, the first one is present
        return flags
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2, shape, dtype)  # the type at once: numbers of 8 bytes would take eight times as long


def _always_legal(actions: ActionSpec) -> list[int]:
    """Entries of the action mask that are always legal, so that each row has an action: each sub-action's first."""
    if actions.kind == "categorical":
        return [0]
    return [
        sub_action.start + row * sub_action.size
        for sub_action in actions.sub_action_masks
        for row in range(sub_action.rows)
    ]


def _actions(
    rng: np.random.Generator,
    spec: UnrollSpec,
    rows: int,
    mask: NDArray[np.bool_] | None,
    obs: Mapping[str, NDArray[np.generic]],
) -> NDArray[np.generic]:
    """Draw legal choices, one per sub-action if there are any; normal numbers for a box."""
    game, steps = spec.game.actions, spec.unroll_length
    if game.kind == "box":
        return rng.normal(size=(rows, steps, *game.shape)).astype(np.float32)
    if game.kind == "multi_categorical":
        return _sub_actions(rng, spec, rows, mask, obs)
    scores = rng.random((rows, steps, game.num_actions))
    if mask is not None:
        scores *= mask[:, :steps]
    actions: NDArray[np.generic] = scores.argmax(-1).astype(spec.action_dtype)
    return actions


def _sub_actions(
    rng: np.random.Generator,
    spec: UnrollSpec,
    rows: int,
    mask: NDArray[np.bool_] | None,
    obs: Mapping[str, NDArray[np.generic]],
) -> NDArray[np.generic]:
    """Integers [B, T, H], a legal choice of each sub-action given those before it; 0 if there is none."""
    steps, actions = spec.unroll_length, spec.game.actions
    shape = (rows, steps)
    chosen = np.zeros((*shape, len(actions.nvec)), spec.action_dtype)
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
