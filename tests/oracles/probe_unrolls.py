"""The unrolls of the probe games by hand: one game at a time, one seat at a time, one dict per decision.

Only the rules of the probes (`reward_of`, `is_legal`, the lengths) and the rule of the acting side (`action_of`,
`log_prob_of`) are shared with the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.envs.counting_games import NUM_ACTIONS, is_legal, reward_of

CORE_SIZE = 2


@dataclass(frozen=True)
class Rules:
    """Which probe: kind is "turns", "simultaneous", "mask" or "last_move"."""

    kind: str = "turns"
    num_seats: int = 2
    lengths: Sequence[int] = (5, 3, 4, 1)
    truncate: bool = False


def action_of(*, env: int, episode: int, step: int, seat: int, masked: bool) -> int:
    """What the acting side does: depends on everything that could be mixed up, and is legal."""
    action = (3 * env + 5 * episode + 7 * step + 2 * seat) % NUM_ACTIONS
    while masked and not is_legal(action, episode=episode, step=step, seat=seat):
        action = (action + 1) % NUM_ACTIONS
    return action


def log_prob_of(*, env: int, episode: int, step: int, seat: int) -> float:
    """An exact float32 that names the decision."""
    return -(env + 1) - seat / 8 - step / 128 - (episode % 16) / 4096


def who(log_prob: float) -> tuple[int, int]:
    """(env, seat) of a decision from its log-probability."""
    env = int(-log_prob) - 1
    return env, int((-log_prob - env - 1) * 8)


def expected_unrolls(
    rules: Rules,
    *,
    env: int,
    steps: int,
    unroll_length: int,
    version_of: Callable[[int], int],
    records: Callable[[int, int], bool] = lambda episode, seat: True,
) -> dict[int, list[dict[str, Any]]]:
    """Seat -> its complete unrolls in order, after the arena has stepped `steps` times.

    Args:
      version_of: step of the arena (from 0) -> version of the weights that act in it.
      records: (episode, seat) -> whether the seat is recorded in that episode.
    """
    sequences = _sequences(rules, env=env, steps=steps, version_of=version_of, records=records)
    return {seat: _cut(items, unroll_length) for seat, items in sequences.items()}


def expected_games(rules: Rules, *, env: int, steps: int) -> list[tuple[int, list[int]]]:
    """(decisions, returns per seat) of each episode that ended within `steps` steps of the arena."""
    games, turn, episode = [], 0, 0
    while True:
        length = rules.lengths[(episode + env) % len(rules.lengths)]
        if turn + length > steps:
            return games
        earned = [sum(_reward(rules, step, length, seat) for step in range(length)) for seat in range(rules.num_seats)]
        games.append((length * (rules.num_seats if rules.kind == "simultaneous" else 1), earned))
        turn, episode = turn + length, episode + 1


def _acts(rules: Rules, step: int, seat: int) -> bool:
    return rules.kind == "simultaneous" or step % rules.num_seats == seat


def _reward(rules: Rules, step: int, length: int, seat: int) -> int:
    if rules.kind != "last_move":
        return reward_of(step, seat)
    if step + 1 < length:
        return 0
    return 1 if _acts(rules, step, seat) else -1


def _sequences(
    rules: Rules, *, env: int, steps: int, version_of: Callable[[int], int], records: Callable[[int, int], bool]
) -> dict[int, list[dict[str, Any]]]:
    sequences: dict[int, list[dict[str, Any]]] = {seat: [] for seat in range(rules.num_seats)}
    turn, episode = 0, 0
    while turn < steps:
        length = rules.lengths[(episode + env) % len(rules.lengths)]
        for seat in range(rules.num_seats):
            if records(episode, seat):
                sequences[seat] += _one_episode(
                    rules, env, episode, seat, length=length, first_turn=turn, steps=steps, version_of=version_of
                )
        turn, episode = turn + length, episode + 1
    return sequences


def _one_episode(
    rules: Rules,
    env: int,
    episode: int,
    seat: int,
    *,
    length: int,
    first_turn: int,
    steps: int,
    version_of: Callable[[int], int],
) -> list[dict[str, Any]]:
    """One seat's decisions in one episode, and the marker where it was truncated; nothing after `steps`."""
    items: list[dict[str, Any]] = []
    for step in range(length):
        if first_turn + step == steps:
            return items
        if _acts(rules, step, seat):
            place = {"env": env, "episode": episode, "step": step, "seat": seat}
            items.append(
                {
                    "counter": [episode, step, seat],
                    "echo": [items[-1]["action"] if items else -1],
                    "mask": _mask(rules, episode, step, seat),
                    "reset": not items,
                    "action": action_of(**place, masked=rules.kind == "mask"),
                    "log_prob": log_prob_of(**place),
                    "reward": 0,
                    "discount": 1,
                    "valid": True,
                    "version": version_of(first_turn + step),
                    "core": [len(items)] * CORE_SIZE,
                }
            )
        if items:
            items[-1]["reward"] += _reward(rules, step, length, seat)
    if items and not rules.truncate:
        items[-1]["discount"] = 0
    elif items:
        items.append(_marker(items[-1], episode, length, seat))
    return items


def _marker(last: dict[str, Any], episode: int, length: int, seat: int) -> dict[str, Any]:
    return {
        **last,
        "counter": [episode, length, seat],
        "echo": [last["action"]],
        "mask": [True] * NUM_ACTIONS,
        "reset": False,
        "action": 0,
        "log_prob": 0,
        "reward": 0,
        "discount": 0,
        "valid": False,
    }


def _mask(rules: Rules, episode: int, step: int, seat: int) -> list[bool]:
    if rules.kind != "mask":
        return [True] * NUM_ACTIONS
    return [is_legal(action, episode=episode, step=step, seat=seat) for action in range(NUM_ACTIONS)]


def _cut(items: list[dict[str, Any]], unroll_length: int) -> list[dict[str, Any]]:
    """Unrolls of T items and the observation after them; a marker in that place ends the sequence's overlap."""
    unrolls, start = [], 0
    while start + unroll_length < len(items):
        steps, after = items[start : start + unroll_length], items[start + unroll_length]
        shown = [*steps, after]
        unrolls.append(
            {
                "counter": np.array([item["counter"] for item in shown], np.float32),
                "echo": np.array([item["echo"] for item in shown], np.float32),
                "action_mask": np.array([item["mask"] for item in shown], np.bool_),
                "resets": np.array([item["reset"] for item in shown], np.bool_),
                "actions": np.array([item["action"] for item in steps], np.int16),
                "log_probs": np.array([item["log_prob"] for item in steps], np.float32),
                "rewards": np.array([item["reward"] for item in steps], np.float32),
                "discounts": np.array([item["discount"] for item in steps], np.float32),
                "valid": np.array([item["valid"] for item in steps], np.bool_),
                "versions": np.array([item["version"] for item in steps], np.int32),
                "core": np.array(steps[0]["core"], np.float32),
            }
        )
        start += unroll_length if after["valid"] else unroll_length + 1
    return unrolls
