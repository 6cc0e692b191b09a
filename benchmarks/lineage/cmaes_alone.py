"""The package `cmaes` on CartPole as its users call it: one env, one network in numpy, no batches."""

from __future__ import annotations

import importlib
import importlib.util
import time

import gymnasium
import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report

INPUTS, HIDDEN, ACTIONS = 4, 16, 2
SIGMA, EPISODES, RETURN, JUDGED_GAMES, JUDGED_EVERY = 0.5, 2, 475.0, 50, 4
SEED = 0


def add_rows(report: Report, *, longest: float) -> None:
    """Its core-seconds to the return; not measured where it is not installed."""
    found = None if importlib.util.find_spec("cmaes") is None else core_s_to_return(longest)
    report.add(f"cmaes alone: CartPole to a return of {RETURN:g}, within {longest:g}", found, "core-s")


def core_s_to_return(longest: float) -> float | None:
    """Without the judgements; None where the return is not reached."""
    env = gymnasium.make("CartPole-v1")
    size = (INPUTS + 1) * HIDDEN + (HIDDEN + 1) * ACTIONS
    search = importlib.import_module("cmaes").CMA(mean=np.zeros(size), sigma=SIGMA, seed=SEED)
    spent, seed, updates = 0.0, SEED, 0
    while spent < longest:
        begun, told = time.process_time(), []
        for _ in range(search.population_size):
            candidate = search.ask()
            told.append((candidate, -float(np.mean([played(env, candidate, seed + i) for i in range(EPISODES)]))))
            seed += EPISODES
        search.tell(told)
        spent, updates = spent + time.process_time() - begun, updates + 1
        if updates % JUDGED_EVERY == 0:
            games = [played(env, search.mean, 10**6 + game) for game in range(JUDGED_GAMES)]
            if float(np.mean(games)) >= RETURN:
                return spent
    return None


def played(env: gymnasium.Env[NDArray[np.float32], np.int64], weights: NDArray[np.float64], seed: int) -> float:
    """The return of one episode with the likeliest actions of an MLP with tanh."""
    first = INPUTS * HIDDEN
    into, bias = weights[:first].reshape(INPUTS, HIDDEN), weights[first : first + HIDDEN]
    last = weights[first + HIDDEN :].reshape(HIDDEN + 1, ACTIONS)
    obs, _ = env.reset(seed=seed)
    earned, over = 0.0, False
    while not over:
        outputs = np.tanh(obs @ into + bias) @ last[:HIDDEN] + last[HIDDEN]
        obs, reward, terminated, truncated, _ = env.step(outputs.argmax())
        earned, over = earned + float(reward), terminated or truncated
    return earned
