"""Plays a game on a device and the same game in numpy side by side, and compares every bit.

`python -m tests.agents.device_games.conformance --plies 1000000 --device cuda` is the long form of the test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.device_games.device_games import DEVICE_GAMES
from league.agents.device_games.game import DeviceGame, DeviceTurn
from league.agents.device_games.making import make_device_game
from league.envs.protocol import BatchedEnv, EnvConfig, Turn
from league.envs.registry import make

OPTIONS: Mapping[str, tuple[dict[str, object], ...]] = {
    "connect_four": ({}, {"opening_plies": 5}),
    "tic_tac_toe": ({}, {"opening_plies": 3}),
    "othello": ({}, {"opening_plies": 4}),
    "matrix_game": (
        {},
        {"payoffs": [[3.0, 0.1], [-2.0, 0.7], [1.5, 1.0]], "rounds": 7},
        {"payoffs": [[3.0, 0.1], [5.0, 1.0]], "second_payoffs": [[3.0, 5.0], [0.1, 1.0]], "rounds": 3},
    ),
    "rock_paper_scissors": ({"stakes": [1.0, 2.0, 0.3], "rounds": 2},),
}
CASES = [EnvConfig(id=game, kwargs=options) for game in DEVICE_GAMES for options in OPTIONS.get(game, ({},))]


def differences(turn: Turn, found: DeviceTurn, *, seats: int) -> list[str]:
    """What of two turns is not the same, bit for bit."""
    pairs = {
        "rows": (turn.env_index * seats + turn.seat, found.rows),
        "rewards": (turn.rewards, found.rewards),
        "terminated": (turn.terminated, found.terminated),
        "returns": (turn.returns, found.returns),
        **{f"obs.{name}": (array, found.obs[name]) for name, array in turn.obs.items()},
    }
    if turn.action_mask is not None or found.action_mask is not None:
        pairs["action_mask"] = (turn.action_mask, found.action_mask)
    different = []
    for name, (expected, tensor) in pairs.items():
        array = None if tensor is None else tensor.cpu().numpy()
        if array is None or array.dtype != expected.dtype or array.shape != expected.shape:
            different.append(f"{name} is {None if array is None else (array.dtype, array.shape)}")
        elif array.tobytes() != np.ascontiguousarray(expected).tobytes():
            different.append(name)
    return different


def play_both(config: EnvConfig, *, num_envs: int, steps: int, device: torch.device, seed: int = 3) -> int:
    """Random legal play in both; returns the decisions taken. Raises AssertionError where the two differ."""
    game = make_device_game(config, num_envs=num_envs, device=device, seed=seed)
    without = {name: value for name, value in config.kwargs.items() if name != "opening_plies"}
    env = make(EnvConfig(id=config.id, kwargs=without), num_envs=num_envs)
    env.reset(0)
    found, rng = game.reset(), np.random.default_rng(seed)
    turn = follow(env, game)
    for step in range(steps):
        different = differences(turn, found, seats=game.spec.num_seats)
        assert not different, f"{config.id} {config.kwargs}, step {step}: {different}"
        actions = random_actions(turn, rng, num_actions=game.spec.actions.num_actions)
        found = game.step(torch.from_numpy(actions).to(device))
        turn = with_restarts(env.step(actions), env, game)
    return steps * len(turn.seat)


def random_actions(turn: Turn, rng: np.random.Generator, *, num_actions: int) -> NDArray[np.int64]:
    """A legal action for each slot."""
    if turn.action_mask is None:
        return rng.integers(num_actions, size=len(turn.seat))
    return (rng.random(turn.action_mask.shape) * turn.action_mask).argmax(axis=1)


def follow(env: BatchedEnv, game: DeviceGame) -> Turn:
    """Put the games in numpy where those on the device are."""
    saved, state = env.save(), {name: tensor.cpu().numpy() for name, tensor in game.state().items()}
    if "situation" in state:
        return env.load({**saved, "situation": state["situation"], "deal": state["deal"]})
    if "stones" in state:
        own, other = state["stones"].astype(np.uint64)
        return env.load({**saved, "own": own, "other": other})
    if "discs" in state:
        own, other = np.ascontiguousarray(state["discs"]).view(np.uint64)
        return env.load({**saved, "own": own, "other": other, "seat": state["seat"]})
    return env.load(saved)


def with_restarts(turn: Turn, env: BatchedEnv, game: DeviceGame) -> Turn:
    """The turn of the game in numpy, whose new episodes start as those on the device did: chance is replayed."""
    if not turn.terminated.any() or not any(name in game.state() for name in ("deal", "stones", "discs")):
        return turn
    mine = env.save()
    theirs = follow(env, game)
    kept, state = ~turn.terminated, env.save()
    for name in ("own", "other", "seat", "situation", "deal"):
        if name in mine:  # only chance may differ: games in progress stand where they stood
            assert (np.asarray(mine[name])[kept] == np.asarray(state[name])[kept]).all(), name
    return Turn(
        env_index=theirs.env_index,
        seat=theirs.seat,
        obs=theirs.obs,
        action_mask=theirs.action_mask,
        rewards=turn.rewards,
        terminated=turn.terminated,
        truncated=turn.truncated,
        returns=turn.returns,
    )


def main() -> None:
    """Compare all games over so many plies each, and print the time of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plies", type=int, default=1_000_000)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    for config in CASES:
        begun, played = time.perf_counter(), 0
        for seed in range(10**6):
            if played >= options.plies:
                break
            steps = min(512, 1 + (options.plies - played) // options.num_envs)
            played += play_both(
                config, num_envs=options.num_envs, steps=steps, device=torch.device(options.device), seed=seed
            )
        print(
            f"{config.id} {dict(config.kwargs)}: {played} plies equal, {time.perf_counter() - begun:.1f} s", flush=True
        )


if __name__ == "__main__":
    main()
